"""Slips in an encoding of one's own: each is said in words that tell what to do, and none is silent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import structpe
from structpe.encodings import ENCODINGS, Column, Encoded, Encoding
from structpe.errors import EncodingError, PositionError
from structpe.positions import Dims, build
from structpe.positions.batch import fitting
from structpe.structure import Structure
from tests.datasets import SAMPLES
from tests.together import together

GRAPH = structpe.path(["a", "b", "c"])


@pytest.fixture(autouse=True)
def forgetting() -> Iterator[None]:
    """What a test registers goes again."""
    known = set(ENCODINGS)
    yield
    for name in set(ENCODINGS) - known:
        ENCODINGS.forget(name)


def own(arity: Any, made: Callable[[int], Any], sparse: bool = False) -> Encoding:
    """An encoding that gives what ``made`` makes of the number of units."""

    def one(self: Encoding, structure: Structure) -> Any:
        return made(structure.unit_count)

    cls = type("Own", (Encoding,), {"arity": arity, "one": one, "sparse": sparse})
    return dataclass(frozen=True)(cls)()


def square(u: int) -> NDArray[Any]:
    return np.zeros((u, u), dtype=np.int64)


SLIPS: dict[str, tuple[Any, Callable[[int], Any], str]] = {
    "array": (
        2,
        square,
        r"one must return an Encoded, Encoded.of_pairs\(matrix\), and returns an array of shape \(3, 3\)",
    ),
    "array of units": (
        1,
        np.arange,
        r"one must return an Encoded, Encoded\(values\), and returns an array of shape \(3,\); wrap it",
    ),
    "none": (1, lambda u: None, r"and returns None; is there a return missing\?"),
    "list": (1, lambda u: [1] * u, "and returns list; wrap it"),
    "no index": (2, lambda u: Encoded(np.arange(u)), "it has arity 2, a value per pair, but no index; use"),
    "an index": (1, lambda u: Encoded.of_pairs(square(u)), "it has arity 1, a value per unit, but also an index"),
    "nodes": (
        1,
        lambda u: Encoded(np.arange(2)),
        r"it has 2 values for 3 units; give one for each unit, in their order \(unit_owner\)",
    ),
    "scalar": (1, lambda u: Encoded(3), "a NumPy array of numbers with a row for each; they are int"),  # type: ignore[arg-type]
    "list of values": (1, lambda u: Encoded([1] * u), "they are list"),  # type: ignore[arg-type]
    "text": (1, lambda u: Encoded(np.array(["a"] * u)), "they are an array of <U1"),
    "objects": (1, lambda u: Encoded(np.array([None] * u)), "they are an array of object"),
    "complex": (1, lambda u: Encoded(np.ones(u) * 1j), "they are an array of complex128"),
    "longdouble": (1, lambda u: Encoded(np.ones(u, dtype=np.longdouble)), "they are an array of float128"),
    "tensor": (1, lambda u: Encoded(torch.arange(u)), "they are Tensor"),  # type: ignore[arg-type]
    "real index": (
        2,
        lambda u: Encoded(np.arange(2), square(u) + 0.5),
        "its index must be a NumPy array of whole numbers, .* it is of float64",
    ),
    "index far": (
        2,
        lambda u: Encoded(np.arange(2), square(u) + 5),
        "the index names value 5, and there are 2 values, from 0 on",
    ),
    "index negative": (2, lambda u: Encoded(np.arange(2), square(u) - 1), "the index names value -1, and there are 2"),
    "index form": (
        2,
        lambda u: Encoded(np.arange(2), square(u)[:, :2]),
        r"its index has shape \(3, 2\) for 3 units; it must be \(3, 3\)",
    ),
    "real pairs": (
        2,
        lambda u: Encoded.of_pairs(square(u) + 0.5),
        r"of_pairs takes a NumPy matrix \(u, u\) of whole numbers, and was given shape \(3, 3\) of float64",
    ),
    "flat pairs": (2, lambda u: Encoded.of_pairs(np.arange(u)), r"and was given shape \(3,\) of int64"),
    "listed pairs": (2, lambda u: Encoded.of_pairs([[1]]), "and was given list"),  # type: ignore[arg-type]
    "listed": (2, lambda u: Encoded.of_list(np.array([[0, 1]]), np.array([3]), u), "it lists pairs; set sparse = True"),
    "nan": (1, lambda u: Encoded(np.full(u, np.nan)), "its values have NaN or infinity, .*; give a finite number"),
    "infinite pairs": (2, lambda u: Encoded(np.array([0, -np.inf]), square(u)), "its values have NaN or infinity"),
    "no arity": (
        None,
        lambda u: Encoded(np.arange(u)),
        "'Own' does not say whether it is of units or of pairs; add to the class arity = 1",
    ),
    "arity 3": (3, lambda u: Encoded(np.arange(u)), "does not say whether it is of units or of pairs"),
}


@together("arity, made, message", SLIPS.values())
def test_what_one_gives(arity: Any, made: Callable[[int], Any], message: str) -> None:
    with pytest.raises(EncodingError, match=message):
        structpe.encode([GRAPH], [own(arity, made)])


def test_a_sparse_one_lists_pairs() -> None:
    with pytest.raises(
        EncodingError, match=r"it is sparse but lists no pairs; use Encoded.of_list, or leave out sparse"
    ):
        structpe.encode([GRAPH], [own(2, lambda u: Encoded.of_pairs(square(u)), sparse=True)])


@pytest.mark.parametrize(("nodes", "units"), [(20_001, 20_001), (20_001, 2), (1, 20_001)])
def test_all_pairs_of_a_large_structure_are_refused_before_they_fill_the_memory(nodes: int, units: int) -> None:
    def never(u: int) -> Encoded:
        raise AssertionError("one is not called")

    large = Structure(("",) * nodes, np.empty((0, 2), int), units=("",) * units, owner=np.zeros(units, int))
    mine = own(2, never)
    for encode in (mine.one, lambda each: mine.many([each]), lambda each: structpe.encode([each], [mine])):
        with pytest.raises(EncodingError, match=r"for 20001 nodes 3 GiB of doubles; 20000 nodes at most. Encode parts"):
            encode(large)
    linear = type("Linear", (type(mine),), {"quadratic": lambda self, structure: False})()
    with pytest.raises(AssertionError, match="one is not called"):
        linear.one(large)


def test_other_errors_are_unchanged() -> None:
    with pytest.raises(ZeroDivisionError):
        structpe.encode([GRAPH], [own(1, lambda u: 1 / 0)])


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (lambda each: Column.of(each[:1]), "it returns one of 1"),
        (list, "it returns list"),
        (lambda each: None, "it returns NoneType"),
    ],
)
def test_many_gives_a_column_of_all(found: Callable[[Any], Any], problem: str) -> None:
    class Many(Encoding):
        arity = 1

        def one(self, structure: Structure) -> Encoded:
            return Encoded(np.arange(structure.unit_count))

        def many(self, structures: Any) -> Any:
            return found([self.one(each) for each in structures])

    with pytest.raises(
        EncodingError, match=rf"many must return a Column of the 2 structures, such as Column\.of\(.*\); {problem}"
    ):
        structpe.encode([GRAPH, GRAPH], [Many()])


def test_many_alone_suffices_and_is_checked() -> None:
    class Many(Encoding):
        arity = 1

        def many(self, structures: Any) -> Any:
            return Column.of([Encoded(np.arange(2)) for _ in structures])

    assert structpe.encode([structpe.path(["a", "b"])], [Many()])[Many()].tolist() == [[0, 1]]
    with pytest.raises(EncodingError, match="it has 2 values for 3 units; give one for each unit"):
        Many().one(GRAPH)

    class Neither(Encoding):
        arity = 1

    with pytest.raises(EncodingError, match=r"'Neither' defines neither one nor many; define one\(self, structure\)"):
        structpe.encode([GRAPH], [Neither()])


def test_what_many_gives_is_finite() -> None:
    class Shares(Encoding):
        arity = 1

        def many(self, structures: Any) -> Any:
            values = [np.full(each.unit_count, np.inf if each.name == "bad" else 1.0) for each in structures]
            return Column.of_units(np.array([len(each) for each in values]), np.concatenate(values))

    with pytest.raises(EncodingError, match=r"^bad: encoding 'Shares': its values have NaN or infinity"):
        structpe.encode([GRAPH, structpe.path(["a"], name="bad")], [Shares()])


def test_a_matrix_of_pairs_is_not_a_vector_of_each_unit() -> None:
    """With one size of all structures it could be; a model that reads numbers, or another size, tells."""
    pairs = own(1, lambda u: Encoded(square(u)))
    with pytest.raises(EncodingError, match="as pairs have: set arity = 2 and return Encoded"):
        structpe.encode([GRAPH, structpe.path(["a"])], [pairs])
    model = build({"name": "rotary", "encoding": pairs}, Dims(8, 2, 1))
    with pytest.raises(PositionError, match=r"gives \(3,\) numbers; 'dwivedi', .*; numbers of pairs need arity = 2"):
        model.prepare(structpe.encode([GRAPH], [pairs]))


def test_code_that_reads_units_that_are_none_is_told_of_unit_texts() -> None:
    class Letters(Encoding):
        arity = 1

        def one(self, structure: Structure) -> Encoded:
            return Encoded(np.array([len(unit) for unit in structure.units]))  # type: ignore[union-attr]

    with pytest.raises(TypeError, match="NoneType") as error:
        structpe.encode([GRAPH], [Letters()])
    assert error.value.__notes__ == ["of this structure, units is None, use unit_texts; owner is None, use unit_owner"]


VECTORS = own(1, lambda u: Encoded(np.ones((u, 4))))
LISTED = own(2, lambda u: Encoded.of_list(np.array([[0, 0]]), np.array([1]), u), sparse=True)


@together("encoding", [own(1, lambda u: Encoded(np.arange(u))), own(2, lambda u: Encoded.of_pairs(square(u))), LISTED])
def test_the_models_that_an_error_names_fit(encoding: Encoding) -> None:
    told = fitting(encoding)
    for name in re.findall("'([a-z0-9-]+)'", told.partition("; 'dwivedi'")[0]):
        model = build({"name": name, "encoding": encoding}, Dims(8, 2, 1))
        model.prepare(structpe.encode([GRAPH], model.encodings))
    for name in [*re.findall("'([a-z0-9-]+)'", told.partition("; 'dwivedi'")[2]), "dwivedi"]:
        model = build({"name": name, "encoding": VECTORS}, Dims(8, 2, 1))
        model.prepare(structpe.encode([GRAPH], model.encodings))


def test_options_must_be_keys() -> None:
    @dataclass(frozen=True)
    class Keyed(Encoding, name="keyed-of-a-test"):
        keys: list[str]
        arity = 1

        def one(self, structure: Structure) -> Encoded:
            return Encoded(np.arange(structure.unit_count))

    message = (
        "option 'keys' is of type list, which has no hash, and encodings are keys; give a tuple in place of a list"
    )
    with pytest.raises(EncodingError, match=message):
        structpe.encode([GRAPH], [Keyed(["a"])])
    with pytest.raises(EncodingError, match=message):
        build({"name": "learned", "encoding": Keyed(["a"])}, Dims(8, 2, 1))


class Base(Encoding):
    """One number per unit."""

    arity = 1

    def one(self, structure: Structure) -> Encoded:
        return Encoded(np.arange(structure.unit_count))


def test_a_class_that_is_no_dataclass_has_no_options() -> None:
    class Undecorated(Base, name="undecorated-of-a-test"):
        limit: int = 3

    message = r"limit is not a field of the dataclass, .*; write @dataclass\(frozen=True\) above the class"
    with pytest.raises(EncodingError, match=message):
        Undecorated(limit=4)  # type: ignore[call-arg]
    with pytest.raises(EncodingError, match=message):
        structpe.encode([GRAPH], [Undecorated()])
    with pytest.raises(EncodingError, match=message):
        build({"name": "learned", "encoding": "undecorated-of-a-test"}, Dims(8, 2, 1))
    with pytest.raises(PositionError, match="has no option 'limit', nor any other; leave it out"):
        build({"name": "learned", "encoding": {"name": "undecorated-of-a-test", "limit": 4}}, Dims(8, 2, 1))


def test_a_constructor_of_ones_own_hides_its_options() -> None:
    class Hand(Base):
        def __init__(self, limit: int = 3) -> None:
            object.__setattr__(self, "limit", limit)

    assert Hand(3) == Hand(4), "which is why it is refused: one would be taken for the other"
    with pytest.raises(EncodingError, match="limit is not a field of the dataclass, and encodings are compared"):
        structpe.encode([GRAPH], [Hand(4)])


def test_without_a_name_it_works_too() -> None:
    assert structpe.encode([GRAPH], [Base()])[Base()].tolist() == [[0, 1, 2]]
    assert Base.name == "Base"


def test_names_are_texts_that_are_free() -> None:
    with pytest.raises(
        EncodingError, match=r"two encodings are named 'distance': structpe.encodings.distance.Distance and "
    ):

        class Distance(Base, name="distance"):
            pass

    with pytest.raises(EncodingError, match=r'is 3; give a text, such as name="own-encoding"'):

        class Third(Base, name=3):  # type: ignore[arg-type]
            pass


@pytest.mark.parametrize("given", [None, GRAPH, "a b", [], iter([GRAPH])])
def test_encode_takes_a_list_of_structures(given: Any) -> None:
    with pytest.raises(EncodingError, match="encode takes a list of structures, one at least"):
        structpe.encode(given, [Base()])


def test_encode_takes_structures_and_encodings() -> None:
    items = structpe.read(SAMPLES / "amr_sample" / "test.txt")
    with pytest.raises(EncodingError, match=r"and Item is not one; .* an item that was read has item.structure"):
        structpe.encode(items, [Base()])  # type: ignore[arg-type]
    with pytest.raises(EncodingError, match=r"encode takes a list of encodings, .*; given is None"):
        structpe.encode([GRAPH], None)  # type: ignore[arg-type]


def test_every_encoding_of_ours_passes() -> None:
    """The checks see all of them: a class's own ``one`` is wrapped, and so is its own ``many``."""
    own = [vars(cls)[method] for cls in ENCODINGS.values() for method in ("one", "many") if method in vars(cls)]
    assert all(method.__wrapped__ for method in own)

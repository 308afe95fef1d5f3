"""What holds for every encoding of the registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import structpe.encodings
from structpe.encodings import (
    ENCODINGS,
    WITHIN,
    Adjacency,
    Depth,
    Distance,
    Eigenpairs,
    Eigenvalues,
    Electrostatic,
    Encoded,
    Encoding,
    HeatKernel,
    Laplacian,
    Neighbours,
    Offset,
    Order,
    RandomWalk,
    SPRRelative,
    Tabular,
    UndirectedDistance,
    UnitCount,
    Window,
)
from structpe.encodings.compiled import slow
from structpe.errors import EncodingError
from structpe.positions.batch import join
from structpe.structure import Structure, path
from structpe.terms import Lookup
from tests.encodings.asking import asked, unpadded
from tests.examples import examples
from tests.strategies import paths, relabelled, structures, trees
from tests.together import together

NAMES = list(ENCODINGS)
# Eigenvectors of a repeated eigenvalue, which trees often have, are the solver's choice.
OF_SOME_BASIS = {"eigenpairs", "laplacian", "magnetic-laplacian", "multi-q-magnetic", "tabular"}
OF_ANY_GRAPH = [Adjacency(), Depth(), Distance(), Eigenvalues(), Electrostatic(), HeatKernel(), Neighbours(), Offset(),
                Order(), RandomWalk(), UnitCount(), SPRRelative(), UndirectedDistance(), Window(2)]  # fmt: skip


def fitted(name: str, given: Sequence[Structure]) -> Encoding:
    return asked(name).fit(given)


@together("name", NAMES)
def test_real_numbers_are_declared(name: str) -> None:
    """Position models with a table refuse them."""
    encoding = fitted(name, [path("ab")])
    assert (encoding.one(path("ab")).values.dtype.kind == "f") == encoding.real


def attempt(encode: Callable[[], Encoded]) -> Encoded | None:
    """None if the structure lacks what the encoding needs; any other error is a failure."""
    try:
        return encode()
    except EncodingError:
        return None


def meaning(encoded: Encoded, units: int) -> np.ndarray:
    """What each of the units has, or each pair of them: -1 where an encoding of listed pairs is silent."""
    if encoded.index is None:
        return encoded.values
    if encoded.listed is None:
        return unpadded(encoded.pairs())
    whole = np.full((units, units), -1)
    whole[tuple(encoded.listed.T)] = encoded.values[encoded.index]
    return whole


@examples(16)
@given(drawn=st.lists(structures(), min_size=1, max_size=5))
@together("name", NAMES)
def test_many_is_one_by_one(name: str, drawn: list[Structure]) -> None:
    encoding = fitted(name, drawn)
    singly = [(s, e) for s in drawn if (e := attempt(lambda s=s: encoding.one(s))) is not None]
    together = encoding.many([s for s, _ in singly])
    assert len(together) == len(singly)
    for (s, one), many in zip(singly, together, strict=True):
        np.testing.assert_array_equal(meaning(many, s.unit_count), meaning(one, s.unit_count))
        assert many.values.dtype == one.values.dtype


@examples(32)
@given(structure=structures())
@together("name", NAMES)
def test_it_encodes_every_unit_or_says_what_is_missing(name: str, structure: Structure) -> None:
    encoding = fitted(name, [structure])
    encoded = attempt(lambda: encoding.one(structure))
    if encoded is None:
        with pytest.raises(EncodingError, match=repr(name)):
            encoding.one(structure)
        return
    u = structure.unit_count
    if encoding.arity == 1:
        assert encoded.index is None
        assert len(encoded.values) == u
    else:
        assert encoded.index is not None
        assert (encoded.listed is not None) == encoding.sparse
        if encoded.listed is None:
            assert encoded.index.shape in ((u, u), (2 * u - 1,))
            assert encoded.matrix().shape == (u, u)
        else:
            assert encoded.listed.shape == (len(encoded.index), 2)
            assert len(np.unique(encoded.listed, axis=0)) == len(encoded.listed)
            assert ((encoded.listed >= 0) & (encoded.listed < u)).all()
        assert encoded.index.dtype.kind == "u"
        repeats = encoding.real and not encoding.recurs
        assert repeats or len(np.unique(encoded.values, axis=0)) == len(encoded.values)
    assert np.isfinite(encoded.values).all()


@together("name", NAMES)
def test_it_reaches_trees_and_paths(name: str) -> None:
    """The laws here would hold for an encoding that refuses everything."""
    assert len(fitted(name, [path("abcd")]).one(path("abcd")).values)


@st.composite
def numbered(draw: st.DrawFn, of: st.SearchStrategy[Structure]) -> tuple[Structure, np.ndarray]:
    """A structure, and new numbers of its nodes."""
    structure = draw(of)
    return structure, np.array(draw(st.permutations(range(structure.size))))


@examples(40)
@given(drawn=numbered(trees()))
@together("name", [name for name in NAMES if name not in OF_SOME_BASIS])
def test_relabelling_the_nodes_of_a_tree_permutes(name: str, drawn: tuple[Structure, np.ndarray]) -> None:
    tree, number = drawn
    _assert_permuted(fitted(name, [tree]), tree, number)


@examples(60)
@given(drawn=numbered(structures()))
@together("encoding", OF_ANY_GRAPH)
def test_relabelling_the_nodes_of_a_graph_permutes(encoding: Encoding, drawn: tuple[Structure, np.ndarray]) -> None:
    _assert_permuted(encoding, *drawn)


@together("name", NAMES)
def test_options_make_it_again(name: str) -> None:
    encoding = fitted(name, [path("abc")])
    again = ENCODINGS[name](**encoding.options())
    assert again == encoding
    assert hash(again) == hash(encoding)


@examples(40)
@given(n=st.integers(1, 12), more=st.integers(1, 4))
@together("name", [name for name in NAMES if fitted(name, [path("ab")]).causal])
def test_causal_ones_do_not_move_when_a_path_grows(name: str, n: int, more: int) -> None:
    short, long = path(["x"] * n), path(["x"] * (n + more))
    encoding = fitted(name, [long])
    grown = meaning(encoding.one(long), n + more)
    first = grown[:n] if encoding.arity == 1 else grown[:n, :n]
    first = unpadded(first) if encoding.ragged else first  # longer values were padded for
    np.testing.assert_array_equal(first, meaning(encoding.one(short), n))


@examples(60)
@given(structure=structures())
@together("encoding", [Depth(), RandomWalk(), Laplacian(), Eigenvalues(), Eigenpairs(), HeatKernel(), Tabular()])
def test_units_have_what_their_node_has(encoding: Encoding, structure: Structure) -> None:
    units = attempt(lambda: encoding.one(structure))
    if units is None:
        return
    nodes = encoding.one(_without_units(structure))
    np.testing.assert_array_equal(units.values, nodes.values[structure.unit_owner])


@examples(40)
@given(structure=structures())
@together("encoding", [Distance(), UndirectedDistance(), Adjacency(), SPRRelative()])
def test_pairs_of_units_have_what_their_nodes_have(encoding: Encoding, structure: Structure) -> None:
    encoded = attempt(lambda: encoding.one(structure))
    if encoded is None:
        return
    nodes, units = encoding.one(_without_units(structure)).pairs(), encoded.pairs()
    for i, mine in enumerate(structure.unit_owner):
        for j, other in enumerate(structure.unit_owner):
            inside = mine == other and i != j and "within" in encoding.codes
            assert units[i, j] == (WITHIN + j - i if inside else nodes[mine, other])


@examples(12)
@given(tokens=paths(most=20, units=False))
def test_on_a_path_structure_is_sequence(tokens: Structure) -> None:
    np.testing.assert_array_equal(Distance().one(tokens).pairs(), Offset().one(tokens).pairs())
    np.testing.assert_array_equal(SPRRelative().one(tokens).pairs(), -Offset().one(tokens).pairs())
    np.testing.assert_array_equal(Depth().one(tokens).values, Order().one(tokens).values)


def test_every_class_can_be_imported_from_the_package() -> None:
    for cls in ENCODINGS.values():
        assert getattr(structpe.encodings, cls.__name__) is cls
        assert cls.__name__ in dir(structpe.encodings)


def test_an_unknown_class_is_named_with_the_nearest_known_one() -> None:
    with pytest.raises(AttributeError, match=r"no encoding class named 'Distanse'. Did you mean 'Distance'"):
        structpe.encodings.Distanse  # noqa: B018


def _assert_permuted(encoding: Encoding, old: Structure, number: np.ndarray) -> None:
    new, p = relabelled(old, number)
    there, here = attempt(lambda: encoding.one(new)), attempt(lambda: encoding.one(old))
    if here is None or there is None:
        assert here is there
        return
    mine, other = meaning(there, len(p)), meaning(here, len(p))
    expected = other[p] if encoding.arity == 1 else other[p][:, p]
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(mine, expected, atol=2e-6)
    else:
        np.testing.assert_array_equal(mine, expected)


def _without_units(structure: Structure) -> Structure:
    return Structure(
        structure.nodes,
        structure.edges,
        directed=structure.directed,
        order=structure.order,
        root=structure.root,
    )


@examples(16)
@given(drawn=st.lists(structures(), min_size=1, max_size=5))
@together("name", NAMES)
def test_a_batch_is_what_it_was_made_from(name: str, drawn: list[Structure]) -> None:
    """The padded values are those of each structure, from a column as from what was encoded one by one."""
    encoding = fitted(name, drawn)
    kept = [s for s in drawn if attempt(lambda s=s: encoding.one(s)) is not None]
    if not kept:
        return
    column = encoding.many(kept)
    with slow():
        plain = join({encoding: column})
    for batch in (join({encoding: column}), plain, join({encoding: [encoding.one(s) for s in kept]})):
        for number, structure in enumerate(kept):
            u, wanted = structure.unit_count, meaning(column[number], structure.unit_count)
            np.testing.assert_array_equal(in_batch(batch[encoding], number, u), wanted)
        places = np.arange(max(s.unit_count for s in kept)) < np.array([[s.unit_count] for s in kept])
        assert (batch.present is None) == places.all()
        assert batch.present is None or np.array_equal(batch.present, places)
        assert encoding.arity == 2 or not batch[encoding][torch.from_numpy(~places)].any()


def in_batch(values: Any, number: int, units: int) -> np.ndarray:
    """The meaning of a structure of a batch."""
    if isinstance(values, torch.Tensor):
        return values[number, :units].numpy()
    if isinstance(values, Lookup):
        return unpadded(values.dense()[number, :units, :units].numpy())
    whole, mine = np.full((units, units), -1), (values.pairs.batch == number).numpy()
    whole[values.pairs.query[mine], values.pairs.key[mine]] = values.table[values.index[mine]]
    return whole


@together("name", NAMES)
def test_parts_of_a_column_are_columns(name: str) -> None:
    given = [path("abc"), path("ab"), path("abcd"), path("a"), path("abcde")]
    encoding = fitted(name, given)
    kept = [s for s in given if attempt(lambda s=s: encoding.one(s)) is not None]
    column = encoding.many(kept)
    for first in range(len(kept)):
        for end in range(first + 1, len(kept) + 1):
            for mine, part, s in zip(list(column)[first:end], column[first:end], kept[first:end], strict=True):
                np.testing.assert_array_equal(meaning(part, s.unit_count), meaning(mine, s.unit_count))
    with pytest.raises(IndexError, match="consecutive"):
        column[::2]

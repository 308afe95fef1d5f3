"""An encoding describes where units are. It has one definition and no parameters.

An encoding of arity 1 has an integer or a vector of numbers per unit. An encoding of arity 2 has r distinct *values*
and an index of them per pair of units. r is small (distances, tree relations, distinct label paths), the n x n index
has a narrow dtype, and position models learn parameters per value, not per pair.

Offsets are signed integers. Two special values are outside their range: :data:`UNREACHABLE`, and :data:`WITHIN` + k
for a unit k places later in the same node (survey, eq. 31).

``one`` and ``many`` of a class are wrapped once, when the class is defined, and mistakes in your own encoding raise
clear errors. Types and shapes are checked for each structure, which takes microseconds; indices only if the class
defines ``one`` and not ``many``. Before ``one`` computes all pairs, it is checked that they fit into memory; ``many``
checks this itself, by ``check_all_pairs`` or ``check_matrices``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, wraps
from inspect import isfunction, signature
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.code import source_of_class
from structpe.encodings.columns import Column, Encoded
from structpe.errors import EncodingError, PositionError, StructPEError
from structpe.plain.options import OPTION, Builder, Checked, hints_of, options_of
from structpe.registry import Registry
from structpe.structure import Ids, Structure

__all__ = [
    "ENCODINGS",
    "FIT",
    "UNREACHABLE",
    "WITHIN",
    "Asked",
    "Column",
    "Encoded",
    "Encoding",
    "as_encoding",
    "as_encodings",
    "builder",
    "check_fields",
    "check_hashable",
    "check_hints",
    "check_largest",
    "guard",
    "no_dataclass",
    "options",
    "split",
    "within",
]

FIT = (
    "fit the position model to the training structures first: model = model.fit(structures), as structpe.build(name, "
    "dims, fit=structures) does; or an encoding by itself: encoding = encoding.fit(structures)"
)
"""The remedy in errors about an encoding that has learned nothing yet: a line to paste, for each of the two."""


def guard(cls: type, kind: type, column: type) -> None:
    """Wrap the methods that a class defines itself.

    Args:
        cls: a subclass of ``Encoding``.
        kind: ``Encoded``.
        column: ``Column``.
    """
    methods = {name: method for name, method in vars(cls).items() if isfunction(method)}
    if "one" in methods:
        setattr(cls, "one", _one(methods["one"], kind))  # noqa: B010, mypy refuses the plain assignment
    if "many" in methods:
        setattr(cls, "many", _many(methods["many"], kind, column))  # noqa: B010


def check_hashable(encoding: Encoding) -> None:
    """Check that an encoding can be a key of positions.

    Raises:
        EncodingError: its class has no arity; an option is not a field; or an option has no hash, such as a list.
    """
    _check_arity(type(encoding), encoding.name)
    if "__dataclass_fields__" not in vars(type(encoding)):
        check_fields(encoding)
    try:
        hash(encoding)
    except TypeError:
        wrong = next(f.name for f in fields(encoding) if not _hashable(getattr(encoding, f.name)))
        kind = type(getattr(encoding, wrong)).__name__
        raise EncodingError(
            f"encoding {encoding.name!r}: option {wrong!r} is of type {kind}, which has no hash, and encodings are "
            f"keys; give a tuple in place of a list, of pairs in place of a dict, and give the option such a type in "
            f"the class: {wrong}: tuple[int, ...]"
        ) from None


def _check_arity(kind: type[Encoding], name: str) -> None:
    if getattr(kind, "arity", None) not in (1, 2):
        raise EncodingError(
            f"encoding {name!r} does not say whether it is of units or of pairs; add to the class arity = 1, "
            f"or arity = 2"
        )


def check_fields(encoding: Encoding) -> None:
    """Check that all options are fields, as needed to create an encoding from its options.

    Raises:
        EncodingError: an argument of the constructor is not a field.
    """
    if lost := _lost(type(encoding)):
        raise EncodingError(no_dataclass(encoding.name, lost))


@cache
def _lost(kind: type[Encoding]) -> str:
    """An argument of the constructor that is not a field; empty if all are."""
    known = {field.name for field in fields(kind)}
    annotated = {} if "__dataclass_fields__" in vars(kind) else vars(kind).get("__annotations__", {})
    bare = [name for name, hint in annotated.items() if name not in known and "ClassVar" not in str(hint)]
    taken = [name for name, p in signature(kind).parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return next(iter([name for name in taken if name not in known] or bare), "")


def no_dataclass(name: str, option: str) -> str:
    """The message if an option is not a field."""
    return (
        f"encoding {name!r}: {option} is not a field of the dataclass, and encodings are compared and created by their "
        f"fields; write @dataclass(frozen=True) above the class, and each option in it as NAME: TYPE = DEFAULT"
    )


def within(encoding: Encoding, structure: Structure, encoded: Any) -> Any:
    """Check that each index is that of a value.

    Raises:
        EncodingError: an index is out of range.
    """
    index = encoded.index
    if index is not None and index.size and not (index.min() >= 0 and index.max() < len(encoded.values)):
        wrong = int(index.max()) if index.max() >= len(encoded.values) else int(index.min())
        raise encoding.error(
            structure, f"the index names value {wrong}, and there are {len(encoded.values)} values, from 0 on"
        )
    return encoded


def _one(method: Callable[..., Any], kind: type) -> Callable[..., Any]:
    own = _is_own(method)

    @wraps(method)
    def one(self: Encoding, structure: Structure) -> Any:
        if max(structure.size, structure.unit_count) > MOST_NODES and self.quadratic(structure):
            check_all_pairs(self, [structure])
        try:
            encoded = _checked(self, structure, method(self, structure), kind)
        except (TypeError, AttributeError) as error:
            _note_none(error, structure)
            raise
        if own and not _finite(encoded.values):
            raise _not_finite(self, structure)
        return encoded

    return one


def _many(method: Callable[..., Any], kind: type, column: type) -> Callable[..., Any]:
    own = _is_own(method)

    @wraps(method)
    def many(self: Encoding, structures: Sequence[Structure]) -> Any:
        found: Any = method(self, structures)
        right = isinstance(found, column)
        if not right or len(found.sizes) != len(structures):
            made = f"one of {len(found)}" if right else type(found).__name__
            raise EncodingError(
                f"encoding {self.name!r}: many must return a Column of the {len(structures)} structures, such as "
                f"Column.of([self.one(s) for s in structures]); it returns {made}"
            )
        if own and not _finite(found.values):
            each = zip(structures, found, strict=True)
            raise _not_finite(self, next((s for s, encoded in each if not _finite(encoded.distinct)), structures[0]))
        return found

    return many


def _is_own(method: Callable[..., Any]) -> bool:
    """Whether a user has written it; the values of ours are finite, and large ones are not read once more."""
    return not str(method.__module__).startswith("structpe.")


def _finite(values: NDArray[Any]) -> bool:
    return values.dtype.kind != "f" or bool(np.isfinite(values).all())


def _not_finite(encoding: Encoding, structure: Structure) -> EncodingError:
    return encoding.error(
        structure,
        "its values have NaN or infinity, which no model can learn from; give a finite number instead, such as -1 for "
        "a value that is missing, and check divisions by zero",
    )


def _note_none(error: Exception, structure: Structure) -> None:
    """Add to an error about None which fields of the structure are None, and what to use instead."""
    never = {"units": "unit_texts", "owner": "unit_owner", "order": "reading"}
    instead = [f"{name} is None, use {other}" for name, other in never.items() if getattr(structure, name) is None]
    if "NoneType" in str(error) and instead:
        error.add_note(f"of this structure, {'; '.join(instead)}")


def _checked(encoding: Encoding, structure: Structure, encoded: Any, kind: type) -> Any:
    """Check that the result for one structure has the form that the arity requires."""
    if not isinstance(encoded, kind):
        raise encoding.error(structure, _not_encoded(encoding, encoded))
    if problem := _problem(encoding, structure, encoded):
        raise encoding.error(structure, problem)
    return encoded


def _not_encoded(encoding: Encoding, given: Any) -> str:
    needed = "Encoded.of_pairs(matrix)" if encoding.arity == 2 else "Encoded(values)"
    kind = f"an array of shape {given.shape}" if isinstance(given, np.ndarray) else type(given).__name__
    kind = "None; is there a return missing?" if given is None else f"{kind}; wrap it"
    return f"one must return an Encoded, {needed}, and returns {kind}"


def _problem(encoding: Encoding, structure: Structure, encoded: Any) -> str:
    """What is wrong with values and index; empty if nothing."""
    values, index, units = encoded.values, encoded.index, structure.unit_count
    if (
        not isinstance(values, np.ndarray)
        or values.ndim == 0
        or values.dtype.kind not in "biuf"
        or values.dtype.itemsize > 8
    ):
        kind = f"an array of {values.dtype}" if isinstance(values, np.ndarray) else type(values).__name__
        return f"its values must be a NumPy array of numbers with a row for each; they are {kind}"
    if encoding.arity == 1:
        if index is not None:
            return "it has arity 1, a value per unit, but also an index of pairs; set arity = 2"
        if len(values) != units:
            return f"it has {len(values)} values for {units} units; give one for each unit, in their order (unit_owner)"
        return ""
    if index is None:
        return "it has arity 2, a value per pair, but no index; use Encoded.of_pairs(matrix), or set arity = 1"
    if not isinstance(index, np.ndarray) or index.dtype.kind not in "iu":
        kind = f"of {index.dtype}" if isinstance(index, np.ndarray) else type(index).__name__
        return f"its index must be a NumPy array of whole numbers, the rows of values; it is {kind}"
    if encoded.listed is None and index.shape not in ((units, units), (2 * units - 1,)):
        return (
            f"its index has shape {index.shape} for {units} units; it must be ({units}, {units}), of units, not nodes, "
            f"or ({2 * units - 1},), of offsets"
        )
    if (encoded.listed is not None) != encoding.sparse:
        wanted = (
            "set sparse = True" if encoded.listed is not None else "use Encoded.of_list, or leave out sparse = True"
        )
        return f"it {'lists pairs' if encoded.listed is not None else 'is sparse but lists no pairs'}; {wanted}"
    return ""


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


UNREACHABLE = 1 << 20
"""The value of a pair without a path."""

WITHIN = 1 << 22
"""WITHIN + k is the value of two units of one node, the second k places after the first (k may be negative)."""

MOST = 1 << 16
"""The largest number of steps, eigenvectors, ... of an encoding. More would fill the memory, and is a mistake."""

MOST_NODES = 20_000
"""The largest number of nodes for a matrix with a number per pair, which takes 3 GiB of doubles."""

ENCODINGS: Registry[type[Encoding]] = Registry("structpe.encodings", "encoding", EncodingError)
"""Every encoding by its name."""


@dataclass(frozen=True, init=False)
class Encoding(metaclass=Checked):
    """The base of all encodings; hashable, so that an encoding can be a key of a cache.

    A subclass is a frozen dataclass with a ``name``, an ``arity`` and the method :meth:`one`, or :meth:`many` if it can
    encode a list of structures faster. Each follows from the other; if a class defines both, they must agree.
    """

    name: ClassVar[str]
    arity: ClassVar[Literal[1, 2]]
    causal: ClassVar[bool] = False
    """Whether values of the first units of a path stay the same when units are appended, as a decoder needs."""
    sparse: ClassVar[bool] = False
    """Whether it lists some pairs only, such as the edges, in memory linear in their number (arity 2)."""
    real: ClassVar[bool] = False
    """Whether its values are real numbers, so that a table cannot have a row for each."""
    recurs: ClassVar[bool] = False
    """Whether real values of one structure are found in others too, so that they get one row (arity 2). Equal whole
    numbers always do; among other real numbers nobody looks for equal ones, which takes longer than computing them."""
    ragged: ClassVar[bool] = False
    """Whether values are sequences of different lengths, such as paths, padded with -1 at the end (arity 2)."""
    codes: ClassVar[tuple[Literal["unreachable", "within"], ...]] = ()
    """Which special values may occur besides offsets."""
    version: ClassVar[int] = 1
    """Increased when its values change; values stored by another version are not used. For a class outside structpe, a
    digest of its source counts as well, where that can be read."""
    _source: ClassVar[str] = ""

    def __init__(self, *given: Any, **named: Any) -> None:
        """The constructor of a subclass that is not decorated as a dataclass; it takes no options."""
        if given or named:
            raise EncodingError(no_dataclass(self.name, next(iter(named), repr(given[0]) if given else "")))

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._source = source_of_class(cls)
        if name:
            _check_arity(cls, name)
            ENCODINGS.add(name, cls)
        if name or "name" not in dir(cls):
            cls.name = name or cls.__name__
        if vars(cls).keys() & {"one", "many"} and "padded" not in vars(cls):  # the one that is inherited may differ
            setattr(cls, "padded", Encoding.padded)  # noqa: B010
        guard(cls, Encoded, Column)

    @classmethod
    def _bound(cls, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The arguments of the constructor, checked as plain data are."""
        found = builder(EncodingError).bound(cls.__init__, given, options, f"encoding {cls.name!r}")
        check_largest(EncodingError, f"encoding {cls.name!r}", found.arguments)
        return found

    def quadratic(self, structure: Structure) -> bool:
        """Whether it takes memory for each pair of units of the structure."""
        del structure
        return self.arity == 2 and not self.sparse

    def one(self, structure: Structure) -> Encoded:
        """Encode one structure, per unit.

        Raises:
            EncodingError: the structure lacks what the encoding needs (an order, a root, a tree).
        """
        if type(self).many is Encoding.many:
            raise EncodingError(f"encoding {self.name!r} defines neither one nor many; define one(self, structure)")
        encoded: Encoded = _checked(self, structure, self.many([structure])[0], Encoded)
        return encoded

    def many(self, structures: Sequence[Structure]) -> Column:
        """Encode a list of structures to one column, whose parts equal ``self.one(s)`` for each of them."""
        return Column.of([within(self, structure, self.one(structure)) for structure in structures], self)

    def padded(self, structures: Sequence[Structure], widths: Ids) -> Column:
        """As :meth:`many`, for a batch: an encoding may write the index of pairs into padded squares.

        Args:
            structures: to encode.
            widths: (g,) of the square of each structure, which may have more places than the structure has units.
        """
        del widths
        return self.many(structures)

    def fit(self, structures: Sequence[Structure]) -> Encoding:
        """The same encoding with a vocabulary of the structures, such as their labels; itself if it needs none."""
        del structures
        return self

    @property
    def learns(self) -> bool:
        """Whether :meth:`fit` learns from structures, which are then needed before any is encoded."""
        return type(self).fit is not Encoding.fit

    def options(self) -> dict[str, Any]:
        """Its fields as plain data: ``ENCODINGS[e.name](**e.options())`` is ``e`` again.

        Raises:
            EncodingError: an argument of the constructor is not a field.
        """
        check_fields(self)
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def versions(self) -> dict[str, int | str]:
        """The version of its definition, and those of the encodings among its options, by name.

        For a class outside structpe, ``version+digest`` with a digest of the source of its file, and of the files
        beside it that this imports, as they were when it was defined: an edit is another version. Where no source can
        be read, as of a class in a notebook, the version alone counts, and is to be raised by hand.
        """
        inner = [getattr(self, field.name) for field in fields(self)]
        of_inner = [each.versions() for each in inner if isinstance(each, Encoding)]
        mine: dict[str, int | str] = {self.name: f"{self.version}+{self._source}" if self._source else self.version}
        return {name: version for each in (*of_inner, mine) for name, version in each.items()}

    def error(self, structure: Structure, message: str) -> EncodingError:
        """An :class:`EncodingError` that names this encoding and the structure."""
        error = EncodingError(message).at(f"encoding {self.name!r}")
        return error.at(structure.name) if structure.name else error


def check_limits(encoding: Encoding, **limits: int | None) -> None:
    """Check that limits, options by name, are None, or 1 or more.

    Raises:
        EncodingError: a limit is less than 1.
    """
    for name, limit in limits.items():
        if limit is not None and limit < 1:
            raise EncodingError(f"encoding {encoding.name!r}: {name} is {limit}; give 1 or more, or None for no limit")


def check_sizes(encoding: Encoding, **sizes: int) -> None:
    """Check that sizes are between 1 and ``MOST``.

    Args:
        encoding: the encoding, for errors.
        sizes: options by name.

    Raises:
        EncodingError: a size is out of range.
    """
    for name, size in sizes.items():
        if size < 1:
            raise EncodingError(f"encoding {encoding.name!r}: {name} is {size}; give 1 or more")
        if size > MOST:
            raise EncodingError(f"encoding {encoding.name!r}: {name} is {size}; give {MOST} at most")


def check_matrices(encoding: Encoding, nodes: int, numbers: int = 1) -> None:
    """Check that a matrix with some numbers per pair of nodes fits into memory.

    Args:
        encoding: the encoding, for errors.
        nodes: the number of nodes.
        numbers: how many numbers a pair has.

    Raises:
        EncodingError: more nodes than 20,000 / sqrt(numbers), for which the numbers take 3 GiB.
    """
    most = math.isqrt(MOST_NODES**2 // numbers)
    if nodes > most:
        each = "a number" if numbers == 1 else f"{numbers} numbers"
        raise EncodingError(
            f"encoding {encoding.name!r} takes a matrix with {each} for each pair of nodes, for {nodes} nodes "
            f"{nodes**2 * numbers / 2**27:.0f} GiB of doubles; {most} nodes at most. Encode parts of the graph, or "
            f"choose an encoding that is linear in its size, such as 'degree' or 'neighbours'"
        )


def check_all_pairs(encoding: Encoding, structures: Sequence[Structure], numbers: int = 1) -> None:
    """The same for an encoding with matrices both per pair of nodes and per pair of units.

    Raises:
        EncodingError: a structure has too many nodes or units.
    """
    check_matrices(encoding, max((max(each.size, each.unit_count) for each in structures), default=0), numbers)


def check_pairs(structures: Sequence[Structure], encodings: Sequence[Encoding]) -> None:
    """Check that the pairs of each structure fit in memory, if an encoding needs all pairs.

    Raises:
        EncodingError: a structure is too large.
    """
    large = [
        s for s in structures if len(s.nodes if s.units is None else s.units) > MOST_NODES
    ]  # in most batches, none
    for encoding in encodings if large else ():
        if encoding.arity == 2 and not encoding.sparse:
            check_matrices(encoding, max((s.unit_count for s in large if encoding.quadratic(s)), default=0))


def check_key(encoding: Encoding, key: str) -> None:
    """Check that a feature belongs to nodes.

    Raises:
        EncodingError: its name is that of a feature of edges.
    """
    if key.startswith("edge_"):
        raise EncodingError(
            f"encoding {encoding.name!r}: features that begin with 'edge_', as {key!r} does, are of edges; name one of "
            f"the nodes"
        )


def flags(encoding: Encoding, structure: Structure, key: str) -> NDArray[np.bool_]:
    """(n,) which nodes a feature marks; no node if the structure lacks the feature.

    Raises:
        EncodingError: the feature has several numbers per node.
    """
    given = np.asarray(structure.features.get(key, np.zeros(structure.size)))
    if given.ndim != 1:
        raise encoding.error(
            structure, f"feature {key!r} has shape {given.shape}; it marks nodes, so give one number for each: 1, or 0"
        )
    marked: NDArray[np.bool_] = given != 0
    return marked


Asked: TypeAlias = Encoding | str | Mapping[str, Any]
"""An encoding, its name, or ``name`` and options."""


def as_encoding(
    given: Asked,
    what: str = "the encoding",
    kind: type[Encoding] = Encoding,
    error: type[StructPEError] = EncodingError,
) -> Encoding:
    """The encoding itself, or the one that plain data describes.

    Args:
        given: an encoding, its name, or a mapping with ``name`` and options.
        what: what it is, in errors.
        kind: class that it must be of.
        error: class of the errors.

    Raises:
        StructPEError: of class ``error``; there is no such encoding or option, or an option is of another type.
    """
    if isinstance(given, kind):
        return given
    name, given_options = split(given, f"{what}, an encoding,", "an Encoding", error)
    if name not in ENCODINGS:
        raise error(f"{what}: {ENCODINGS.unknown(name)}")
    chosen = ENCODINGS[name]
    if not issubclass(chosen, kind):
        raise error(f"{what} takes an encoding of the class {kind.__name__}; {name!r} is not one")
    return chosen(**options(error, f"encoding {name!r}", chosen.__init__, given_options, 1))


def as_encodings(given: Any, whose: str) -> tuple[Encoding, ...]:
    """The encodings of a list of encodings, names, and mappings with ``name`` and options.

    Args:
        given: the list.
        whose: the function that takes it, in errors.

    Raises:
        EncodingError: it is not such a list, or an encoding cannot be a key.
        PositionError: there is no encoding of a name, or no such option.
    """
    example = "such as [Order(), Distance(max_distance=8)]"
    if isinstance(given, (str, Mapping)) or not isinstance(given, Collection):  # an iterator could be read only once
        raise EncodingError(f"{whose} takes a list of encodings, {example}; given is {given!r}")
    for each in given:
        if not isinstance(each, (Encoding, str, Mapping)):
            raise EncodingError(
                f"{whose} takes a list of encodings, {example}, and {each!r} is not one; a name such as 'distance' "
                f"makes one with its defaults, {{'name': 'distance', 'max_distance': 8}} with options"
            )
    made = tuple(each if isinstance(each, Encoding) else as_encoding(each, error=PositionError) for each in given)
    for encoding in made:
        check_hashable(encoding)
    return made


@cache
def builder(error: type[StructPEError]) -> Builder:
    """What checks options, some of which are encodings in any form; its errors are of this class."""
    return Builder(error, Encoding, lambda kind, value, what: as_encoding(value, what, kind, error))


def options(error: type[StructPEError], whose: str, init: Any, given: Mapping[str, Any], skip: int) -> dict[str, Any]:
    """Options from plain data as a constructor wants them.

    Args:
        error: class of the errors.
        whose: owner of the options in errors.
        init: the constructor.
        given: options by name.
        skip: how many parameters come before the options.

    Raises:
        StructPEError: of class ``error``; an option is unknown, missing, too large, of another type, or has no hint.
    """
    check_hints(error, whose, init, given, skip)
    check_largest(error, whose, given)
    return builder(error).arguments(init, given, whose, skip)  # type: ignore[arg-type]  # classes are hashable


def check_hints(error: type[StructPEError], whose: str, init: Any, given: Mapping[str, Any], skip: int) -> None:
    """Check that options from plain data have type hints.

    Raises:
        StructPEError: of class ``error``; one has none.
    """
    hints = hints_of(init)
    for option in options_of(init, skip):
        if option in given and option not in hints:
            raise error(
                f"option {option!r} of {whose} has no type hint, so that plain data cannot be checked; annotate it, "
                f"such as encoding: Encoding = ..."
            )


def check_largest(error: type[StructPEError], whose: str, given: Mapping[str, Any]) -> None:
    """Check that whole numbers, those in lists too, are none that memory could not hold; seeds may be any.

    Raises:
        StructPEError: of class ``error``; one is larger.
    """
    for option, value in given.items():
        for each in value if isinstance(value, (list, tuple)) else (value,):
            if option != "seed" and type(each) is int and abs(each) > OPTION:
                what = f"option {option!r} of {whose} is {each}"
                raise error(f"{what}; at most {OPTION} is allowed, give a smaller number")


def split(config: Any, what: str, other: str, error: type[StructPEError]) -> tuple[str, dict[str, Any]]:
    """Name and options of a name, or of a mapping that has one.

    Raises:
        StructPEError: of class ``error``; it is neither.
    """
    if isinstance(config, str):
        return config, {}
    if isinstance(config, Mapping) and isinstance(config.get("name"), str):
        return config["name"], {key: value for key, value in config.items() if key != "name"}
    raise error(
        f"{what} is described by its name, by a mapping with 'name' and options, or by {other}; given is {config!r}"
    )

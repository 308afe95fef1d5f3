"""An encoding describes where units are. It has one definition and no parameters.

An encoding of arity 1 has an integer or a vector of numbers per unit. An encoding of arity 2 has r distinct *values*
and an index of them per pair of units. r is small (distances, tree relations, distinct label paths), the n x n index
has a narrow dtype, and position models learn parameters per value, not per pair.

Offsets are signed integers. Two special values are outside their range: :data:`UNREACHABLE`, and :data:`WITHIN` + k
for a unit k places later in the same node (survey, eq. 31).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._guards import check_fields, guard, no_dataclass, within
from structpe.errors import EncodingError
from structpe.registry import Registry
from structpe.structure import Structure

__all__ = ["ENCODINGS", "UNREACHABLE", "WITHIN", "Encoded", "Encoding"]

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


@dataclass(frozen=True, eq=False)
class Encoded:
    """An encoding of one structure of u units.

    Attributes:
        values: arity 1: (u, ...) the value of each unit; arity 2: (r, ...) the distinct values, in no particular order.
        index: arity 2: (u, u) index of the value of each pair (query, key), in the narrowest unsigned dtype; (e,) of
            each listed pair if the encoding is sparse. None for arity 1.
        listed: (e, 2) the listed pairs (query, key) of units, each once; None unless the encoding is sparse.
        units: u, the number of units; None unless the encoding is sparse.
    """

    values: NDArray[Any]
    index: NDArray[Any] | None = None
    listed: NDArray[Any] | None = None
    units: int | None = None

    @property
    def count(self) -> int:
        """u, the number of units."""
        if self.units is not None:
            return self.units
        return len(self.values if self.index is None else self.index)

    @classmethod
    def of_list(cls, listed: NDArray[Any], values: NDArray[Any], units: int) -> Self:
        """From (e, 2) distinct pairs of units, in any order, and the integer (e,) of each."""
        distinct, index = np.unique(values, return_inverse=True)
        return cls(distinct, narrow(index), listed, units)

    @classmethod
    def of_pairs(cls, pairs: NDArray[Any]) -> Self:
        """From the (u, u) matrix of integer values.

        Raises:
            EncodingError: it is not such a matrix.
        """
        given: Any = pairs
        if not isinstance(given, np.ndarray) or given.ndim != 2 or given.dtype.kind not in "biu":
            kind = f"shape {given.shape} of {given.dtype}" if isinstance(given, np.ndarray) else type(given).__name__
            raise EncodingError(
                f"of_pairs takes a NumPy matrix (u, u) of whole numbers, and was given {kind}; for real numbers create "
                f"Encoded(values, index)"
            )
        low, span = int(pairs.min()), int(np.ptp(pairs))
        if span > 4 * pairs.size:  # special values are far from offsets
            values, index = np.unique(pairs, return_inverse=True)
            return cls(values, narrow(index.reshape(pairs.shape)))
        seen = np.zeros(span + 1, dtype=np.bool_)  # counting is faster than sorting
        seen[pairs - low] = True
        values = (np.flatnonzero(seen) + low).astype(pairs.dtype)
        return cls(values, narrow(np.cumsum(seen) - 1)[pairs - low])

    def pairs(self) -> NDArray[Any]:
        """The (u, u, ...) matrix of values, the inverse of :meth:`of_pairs`; for inspection and tests."""
        if self.index is None:
            raise EncodingError("this encoding has one value per unit, not per pair; use .values")
        if self.listed is not None:
            raise EncodingError("this encoding lists some pairs only; use .listed and .values[.index]")
        result: NDArray[Any] = self.values[self.index]
        return result


@dataclass(frozen=True, init=False)
class Encoding(ABC):
    """The base of all encodings; hashable, so that an encoding can be a key of a cache.

    A subclass is a frozen dataclass with a ``name``, an ``arity`` and the method :meth:`one`. It may also define
    :meth:`many` if it can encode a list of structures faster; both must agree.
    """

    name: ClassVar[str]
    arity: ClassVar[Literal[1, 2]]
    causal: ClassVar[bool] = False
    """Whether values of the first units of a path stay the same when units are appended, as a decoder needs."""
    sparse: ClassVar[bool] = False
    """Whether it lists some pairs only, such as the edges, in memory linear in their number (arity 2)."""
    real: ClassVar[bool] = False
    """Whether its values are real numbers, so that a table cannot have a row for each."""
    codes: ClassVar[tuple[Literal["unreachable", "within"], ...]] = ()
    """Which special values may occur besides offsets."""
    version: ClassVar[int] = 1
    """Increased when its values change; values stored by another version are not used."""

    def __init__(self, *given: Any, **named: Any) -> None:
        """The constructor of a subclass that is not decorated as a dataclass; it takes no options."""
        if given or named:
            raise EncodingError(no_dataclass(self.name, next(iter(named), repr(given[0]) if given else "")))

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if name:
            ENCODINGS.add(name, cls)
        if name or "name" not in dir(cls):
            cls.name = name or cls.__name__
        guard(cls, Encoded)

    @abstractmethod
    def one(self, structure: Structure) -> Encoded:
        """Encode one structure, per unit.

        Raises:
            EncodingError: the structure lacks what the encoding needs (an order, a root, a tree).
        """

    def many(self, structures: Sequence[Structure]) -> list[Encoded]:
        """Encode each of the structures; equal to ``[self.one(s) for s in structures]``."""
        return [within(self, structure, self.one(structure)) for structure in structures]

    def fit(self, structures: Sequence[Structure]) -> Encoding:
        """The same encoding with a vocabulary of the structures, such as their labels; itself if it needs none."""
        del structures
        return self

    def options(self) -> dict[str, Any]:
        """Its fields as plain data: ``ENCODINGS[e.name](**e.options())`` is ``e`` again.

        Raises:
            EncodingError: an argument of the constructor is not a field.
        """
        check_fields(self)
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def versions(self) -> dict[str, int]:
        """The version of its definition, and those of the encodings among its options, by name."""
        inner = [getattr(self, field.name) for field in fields(self)]
        of_inner = [each.versions() for each in inner if isinstance(each, Encoding)]
        return {name: version for each in (*of_inner, {self.name: self.version}) for name, version in each.items()}

    def error(self, structure: Structure, message: str) -> EncodingError:
        """An :class:`EncodingError` that names this encoding and the structure."""
        error = EncodingError(message).at(f"encoding {self.name!r}")
        return error.at(structure.name) if structure.name else error


def narrow(index: NDArray[Any]) -> NDArray[Any]:
    """Convert non-negative integers to the narrowest unsigned dtype."""
    return index.astype(np.min_scalar_type(int(index.max(initial=0))))


def same_shape(values: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Pad values, such as label paths, with -1 so that all rows have the same shape."""
    shape = tuple(np.max([v.shape[1:] for v in values], axis=0).tolist()) if values[0].ndim > 1 else ()
    return [v if v.shape[1:] == shape else _padded(v, shape) for v in values]


def _padded(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    result = np.full((len(values), *shape), -1, dtype=values.dtype)
    result[tuple(map(slice, values.shape))] = values
    return result


def check_limit(encoding: Encoding, limit: int | None, what: str = "the limit") -> None:
    """Check that a limit, such as that of a length, is None, or 1 or more.

    Raises:
        EncodingError: it is less than 1.
    """
    if limit is not None and limit < 1:
        raise EncodingError(f"encoding {encoding.name!r}: {what} is {limit}; give 1 or more, or None for no limit")


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

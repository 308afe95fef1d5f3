"""An encoding says where things are: one definition, no parameter, the same for every user of it.

An encoding of arity 1 gives each unit an integer or a vector of numbers. An encoding of arity 2 gives each pair of
units one of r distinct *values* and says which pair has which: r is small (distances, tree relations, distinct label
paths), the n x n index is narrow, and whatever is learned later is learned per value and not per pair.

Values that are offsets are signed integers. What an offset cannot say has code points of its own, far outside:
:data:`UNREACHABLE`, and :data:`WITHIN` + k for a unit k places further on in the same node (survey, eq. 31).
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
"""The value of a pair between which there is no way."""

WITHIN = 1 << 22
"""WITHIN + k is the value of two units of one node, the second k places after the first (k may be negative)."""

MOST = 1 << 16
"""The most steps, eigenvectors, ... that an encoding computes: more is a slip, and would fill the memory."""

MOST_NODES = 20_000
"""The most nodes of which matrices with a number for each pair are made: one of doubles takes 3 GiB then."""

ENCODINGS: Registry[type[Encoding]] = Registry("structpe.encodings", "encoding", EncodingError)
"""Every encoding by its name."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """An encoding of one structure of u units.

    Attributes:
        values: arity 1: (u, ...) what each unit has; arity 2: (r, ...) the distinct values, in no particular order.
        index: arity 2: (u, u) which value the pair (query, key) has, in the narrowest unsigned dtype; otherwise None.
            Of a sparse encoding: (e,) which value each listed pair has.
        listed: of a sparse encoding: (e, 2) the pairs (query, key) of units that it speaks of, each once.
        units: of a sparse encoding: u, which its pairs do not say.
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
        """From (e, 2) pairs of units, in any order but each once, and the integer (e,) that each has."""
        distinct, index = np.unique(values, return_inverse=True)
        return cls(distinct, narrow(index), listed, units)

    @classmethod
    def of_pairs(cls, pairs: NDArray[Any]) -> Self:
        """From the (u, u) matrix of integer values itself: keep each distinct value once.

        Raises:
            EncodingError: it is no such matrix.
        """
        given: Any = pairs
        if not isinstance(given, np.ndarray) or given.ndim != 2 or given.dtype.kind not in "biu":
            told = f"shape {given.shape} of {given.dtype}" if isinstance(given, np.ndarray) else type(given).__name__
            raise EncodingError(
                f"of_pairs takes a NumPy matrix (u, u) of whole numbers, and was given {told}; for real numbers give "
                f"Encoded(values, index) yourself"
            )
        low, span = int(pairs.min()), int(np.ptp(pairs))
        if span > 4 * pairs.size:  # code points lie far from offsets
            values, index = np.unique(pairs, return_inverse=True)
            return cls(values, narrow(index.reshape(pairs.shape)))
        seen = np.zeros(span + 1, dtype=np.bool_)  # counting beats sorting
        seen[pairs - low] = True
        values = (np.flatnonzero(seen) + low).astype(pairs.dtype)
        return cls(values, narrow(np.cumsum(seen) - 1)[pairs - low])

    def pairs(self) -> NDArray[Any]:
        """The (u, u, ...) matrix of values itself; the inverse of :meth:`of_pairs`. For looking and for tests."""
        if self.index is None:
            raise EncodingError("this encoding has one value per unit, not per pair; use .values")
        if self.listed is not None:
            raise EncodingError("this encoding speaks of listed pairs only; use .listed and .values[.index]")
        result: NDArray[Any] = self.values[self.index]
        return result


@dataclass(frozen=True, init=False)
class Encoding(ABC):
    """One definition of "where", hashable: it is its own cache key, whole.

    A subclass is a frozen dataclass with a ``name``, an ``arity`` and the method :meth:`one`; :meth:`many` may be
    given too where a list of structures can be encoded faster at once. Both must agree.
    """

    name: ClassVar[str]
    arity: ClassVar[Literal[1, 2]]
    causal: ClassVar[bool] = False
    """Whether nothing changes for the first units of a path when more are added, so that a decoder may use it."""
    sparse: ClassVar[bool] = False
    """Whether, of arity 2, it speaks of listed pairs only, such as the edges: linear in their number."""
    real: ClassVar[bool] = False
    """Whether its values are real numbers, floats, of which no table has a row for each."""
    codes: ClassVar[tuple[Literal["unreachable", "within"], ...]] = ()
    """Which code points beside plain offsets its values may hold."""
    version: ClassVar[int] = 1
    """Raised when its numbers change: what was stored by another version is not used any more."""

    def __init__(self, *given: Any, **named: Any) -> None:
        """Of a class that is no dataclass of its own, which has no options."""
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
        """This encoding of one structure, per unit.

        Raises:
            EncodingError: the structure lacks what the encoding needs (an order, a root, a tree).
        """

    def many(self, structures: Sequence[Structure]) -> list[Encoded]:
        """This encoding of each of the structures; equal to ``[self.one(s) for s in structures]``."""
        return [within(self, structure, self.one(structure)) for structure in structures]

    def fit(self, structures: Sequence[Structure]) -> Encoding:
        """The same encoding with what it must learn of a data set, its labels say; itself where there is nothing."""
        del structures
        return self

    def options(self) -> dict[str, Any]:
        """Its fields as plain data: ``ENCODINGS[e.name](**e.options())`` is ``e`` again.

        Raises:
            EncodingError: the constructor takes what is no field.
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
    """Non-negative integers in the narrowest unsigned dtype that holds them."""
    return index.astype(np.min_scalar_type(int(index.max(initial=0))))


def same_shape(values: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Values whose rows have the same shape: shorter ones, such as shorter label paths, are padded with -1."""
    shape = tuple(np.max([v.shape[1:] for v in values], axis=0).tolist()) if values[0].ndim > 1 else ()
    return [v if v.shape[1:] == shape else _padded(v, shape) for v in values]


def _padded(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    result = np.full((len(values), *shape), -1, dtype=values.dtype)
    result[tuple(map(slice, values.shape))] = values
    return result


def check_limit(encoding: Encoding, limit: int | None, what: str = "the limit") -> None:
    """Check that a limit, of lengths say, is none, or 1 or more.

    Raises:
        EncodingError: it is less.
    """
    if limit is not None and limit < 1:
        raise EncodingError(f"encoding {encoding.name!r}: {what} is {limit}; give 1 or more, or None for no limit")


def check_sizes(encoding: Encoding, **sizes: int) -> None:
    """Check that sizes of what is computed are 1 or more, and not so many that memory or patience would end.

    Args:
        encoding: whose they are.
        sizes: options by name.

    Raises:
        EncodingError: one is less or more.
    """
    for name, size in sizes.items():
        if size < 1:
            raise EncodingError(f"encoding {encoding.name!r}: {name} is {size}; give 1 or more")
        if size > MOST:
            raise EncodingError(f"encoding {encoding.name!r}: {name} is {size}; give {MOST} at most")


def check_matrices(encoding: Encoding, nodes: int, numbers: int = 1) -> None:
    """Check that matrices with one or more numbers for each pair of nodes do not fill the memory.

    Args:
        encoding: who makes them.
        nodes: how many there are.
        numbers: how many numbers each pair has.

    Raises:
        EncodingError: more nodes than 20,000 / sqrt(numbers), of which the numbers take 3 GiB.
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
    """The same for an encoding that has one or more numbers for each pair of nodes and for each pair of units.

    Raises:
        EncodingError: a structure has too many nodes or units.
    """
    check_matrices(encoding, max((max(each.size, each.unit_count) for each in structures), default=0), numbers)


def check_key(encoding: Encoding, key: str) -> None:
    """Check that a feature is one of nodes.

    Raises:
        EncodingError: its name says that it is of edges.
    """
    if key.startswith("edge_"):
        raise EncodingError(
            f"encoding {encoding.name!r}: features that begin with 'edge_', as {key!r} does, are of edges; name one of "
            f"the nodes"
        )


def flags(encoding: Encoding, structure: Structure, key: str) -> NDArray[np.bool_]:
    """(n,) which nodes a feature marks; none where the structure does not have it.

    Raises:
        EncodingError: it has several numbers per node.
    """
    given = np.asarray(structure.features.get(key, np.zeros(structure.size)))
    if given.ndim != 1:
        raise encoding.error(
            structure, f"feature {key!r} has shape {given.shape}; it marks nodes, so give one number for each: 1, or 0"
        )
    marked: NDArray[np.bool_] = given != 0
    return marked

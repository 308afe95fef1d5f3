"""An encoding describes where units are. It has one definition and no parameters.

An encoding of arity 1 has an integer or a vector of numbers per unit. An encoding of arity 2 has r distinct *values*
and an index of them per pair of units. r is small (distances, tree relations, distinct label paths), the n x n index
has a narrow dtype, and position models learn parameters per value, not per pair.

Offsets are signed integers. Two special values are outside their range: :data:`UNREACHABLE`, and :data:`WITHIN` + k
for a unit k places later in the same node (survey, eq. 31).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._encoded import Column, Encoded
from structpe.encodings._guards import check_fields, guard, no_dataclass, within
from structpe.errors import EncodingError
from structpe.plain.typed import Checked
from structpe.registry import Registry
from structpe.structure import Structure

__all__ = ["ENCODINGS", "UNREACHABLE", "WITHIN", "Column", "Encoded", "Encoding"]

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
    recurs: ClassVar[bool] = False
    """Whether real values of one structure are found in others too, so that they get one row (arity 2). Equal whole
    numbers always do; among other real numbers nobody looks for equal ones, which takes longer than computing them."""
    ragged: ClassVar[bool] = False
    """Whether values are sequences of different lengths, such as paths, padded with -1 at the end (arity 2)."""
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
        guard(cls, Encoded, Column)

    @classmethod
    def _bound(cls, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The arguments of the constructor, checked as plain data are."""
        from structpe.encodings.named import builder, check_sizes  # which names encodings

        found = builder(EncodingError).bound(cls.__init__, given, options, f"encoding {cls.name!r}")
        check_sizes(EncodingError, f"encoding {cls.name!r}", found.arguments)
        return found

    def quadratic(self, structure: Structure) -> bool:
        """Whether it takes memory for each pair of units of the structure."""
        del structure
        return self.arity == 2 and not self.sparse

    @abstractmethod
    def one(self, structure: Structure) -> Encoded:
        """Encode one structure, per unit.

        Raises:
            EncodingError: the structure lacks what the encoding needs (an order, a root, a tree).
        """

    def many(self, structures: Sequence[Structure]) -> Column:
        """Encode a list of structures to one column, whose parts equal ``self.one(s)`` for each of them."""
        return Column.of([within(self, structure, self.one(structure)) for structure in structures], self)

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

    def versions(self) -> dict[str, int]:
        """The version of its definition, and those of the encodings among its options, by name."""
        inner = [getattr(self, field.name) for field in fields(self)]
        of_inner = [each.versions() for each in inner if isinstance(each, Encoding)]
        return {name: version for each in (*of_inner, {self.name: self.version}) for name, version in each.items()}

    def error(self, structure: Structure, message: str) -> EncodingError:
        """An :class:`EncodingError` that names this encoding and the structure."""
        error = EncodingError(message).at(f"encoding {self.name!r}")
        return error.at(structure.name) if structure.name else error


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


def check_pairs(structures: Sequence[Structure], encodings: Sequence[Encoding]) -> None:
    """Check that the pairs of each structure fit in memory, if an encoding needs all pairs.

    Raises:
        EncodingError: a structure is too large.
    """
    for encoding in encodings:
        if encoding.arity == 2 and not encoding.sparse:
            large = [each for each in structures if each.unit_count > MOST_NODES and encoding.quadratic(each)]
            check_matrices(encoding, max((each.unit_count for each in large), default=0))


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

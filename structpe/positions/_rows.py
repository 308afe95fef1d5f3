"""From values of positions to rows of a table, and the tables, with their sharing over heads and layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.errors import PositionError
from structpe.positions.base import Dims
from structpe.structure import path
from structpe.terms import Lookup

__all__ = [
    "Rows",
    "Sharing",
    "Table",
    "Window",
    "check_offsets",
    "holds",
    "indices",
    "is_plain",
    "numbers",
    "of_all_pairs",
    "of_arity",
    "of_whole",
    "offsets",
    "width_of",
]

Sharing: TypeAlias = Literal["none", "head-wise", "layer-wise", "both"]
"""Which parameters are one and the same (Chen et al. 2021, section 4.4): ``head-wise`` for all heads of a layer,
``layer-wise`` for all layers, each head having its own."""

_HALF = (WITHIN - UNREACHABLE) // 2


def is_plain(values: Tensor) -> Tensor:
    """Where values are offsets, and not code points."""
    return values < UNREACHABLE - _HALF // 2


def holds(condition: Tensor) -> bool:
    """Whether a condition of refusing a batch holds, such as a place beyond a table.

    While torch.compile or torch.export trace a model no number is known, and none is refused: what is compiled must be
    given what the model knows. To look up a row that is not there fails by itself.
    """
    return not torch.compiler.is_compiling() and bool(condition)


def check_offsets(encoding: Encoding) -> None:
    """See to it that what an encoding says of pairs can be rows of a table.

    Raises:
        PositionError: it gives real numbers.
    """
    if encoding.real:
        raise PositionError(
            f"a table has a row for each offset or distance, whole numbers; encoding {encoding.name!r} gives real "
            f"ones; choose another, 'distance' say, or a position model without a table"
        )


@dataclass(frozen=True)
class Rows:
    """Which row of a table stands for a value: offsets by a rule, then one row for "unreachable", then "within".

    Args:
        encoding: where the values come from; code points that it never uses get no row.
        offsets: number of rows for offsets.
        within: units of one node this far apart have a row each, on both sides; those farther apart share the last.

    Raises:
        PositionError: the encoding gives real numbers.
    """

    encoding: Encoding
    offsets: int
    within: int = 8

    def __post_init__(self) -> None:
        check_offsets(self.encoding)

    @property
    def size(self) -> int:
        """Number of rows, R."""
        codes = self.encoding.codes
        return self.offsets + ("unreachable" in codes) + ("within" in codes) * (2 * self.within + 1)

    def of(self, values: Tensor, rule: Callable[[Tensor], Tensor]) -> Tensor:
        """Row of each value; ``rule`` maps offsets to rows 0..offsets-1."""
        rows = rule(torch.where(is_plain(values), values, 0))
        if "unreachable" in self.encoding.codes:
            rows = torch.where(values == UNREACHABLE, self.offsets, rows)
        if "within" in self.encoding.codes:
            first = self.size - 2 * self.within - 1
            inner = (values - WITHIN).clamp(-self.within, self.within) + self.within + first
            rows = torch.where(values > UNREACHABLE, inner, rows)
        return rows


@dataclass(frozen=True)
class Window:
    """A row for each offset from -reach to reach; offsets farther away share the row at their end (Shaw et al. 2018).

    Args:
        encoding: where the values come from.
        reach: the farthest offset that has a row of its own, 1 or more.
        within: as in :class:`Rows`.
    """

    encoding: Encoding
    reach: int
    within: int = 8

    def __post_init__(self) -> None:
        if self.reach < 1 or self.within < 1:
            raise PositionError(
                f"a table of offsets needs a row on each side: reach {self.reach}, within {self.within}; give 1 or more"
            )

    @property
    def size(self) -> int:
        """Number of rows, R: 2 reach + 1, and those of the code points."""
        return self._rows.size

    def of(self, values: Tensor) -> Tensor:
        """Row of each value."""
        return self._rows.of(values, lambda offsets: offsets.clamp(-self.reach, self.reach) + self.reach)

    @property
    def _rows(self) -> Rows:
        return Rows(self.encoding, 2 * self.reach + 1, self.within)


class Table(nn.Module):
    """A learned table per layer and head, or shared over either.

    Args:
        dims: sizes of the Transformer.
        rows: R, number of rows.
        sharing: which layers and heads have the same numbers.
        width: width of each entry; None for a scalar.
        std: deviation of the normal distribution that they start from; 0 starts at zero.
    """

    def __init__(self, dims: Dims, rows: int, sharing: Sharing, width: int | None = None, std: float = 0.02) -> None:
        super().__init__()
        self.layers = dims.layers
        layers = 1 if sharing in ("layer-wise", "both") else dims.layers
        heads = 1 if sharing in ("head-wise", "both") else dims.heads
        shape = (layers, rows, heads) if width is None else (layers, rows, heads, width)
        self.weight = nn.Parameter(torch.randn(shape) * std)

    def at(self, layer: int) -> Tensor:
        """(R, h or 1) scalars or (R, h or 1, width) vectors of a layer.

        Raises:
            PositionError: there is no such layer.
        """
        if not 0 <= layer < self.layers:
            last = self.layers - 1
            raise PositionError(f"this model was built for {self.layers} layers, 0..{last}; layer {layer} asks")
        own: Tensor = self.weight[layer if len(self.weight) > 1 else 0]
        return own

    @staticmethod
    def copies(sharing: Sharing, dims: Dims) -> int:
        """How many tables there are: the factor of a formula of parameters."""
        return (1 if sharing in ("layer-wise", "both") else dims.layers) * (
            1 if sharing in ("head-wise", "both") else dims.heads
        )


def numbers(model: str, encoding: Encoding, of_units: Tensor) -> Tensor:
    """What an encoding of arity 1 says of each unit, if it is one number.

    Raises:
        PositionError: it is a vector, such as a path or eigenvectors.
    """
    if of_units.ndim != 2:
        raise PositionError(
            f"position model {model!r} needs one number per unit (order, depth, ...); "
            f"{encoding.name!r} gives {tuple(of_units.shape[2:])} numbers"
        )
    return of_units


def offsets(model: str, encoding: Encoding, of_pairs: Lookup) -> Lookup:
    """What an encoding of arity 2 says of each pair, if it is one number.

    Raises:
        PositionError: it is a sequence, such as the labels along a path.
    """
    if of_pairs.table.ndim != 1:
        raise PositionError(
            f"position model {model!r} needs one integer per pair (offset, distance, ...); "
            f"{encoding.name!r} gives {tuple(of_pairs.table.shape[1:])} numbers"
        )
    return of_pairs


def of_arity(model: str, encoding: Encoding, arity: Literal[1, 2]) -> Encoding:
    """The encoding, if it is of the arity that a model needs.

    Raises:
        PositionError: it is of the other one.
    """
    if encoding.arity != arity:
        needed = "pairs of units (offset, distance, ...)" if arity == 2 else "single units (order, depth, ...)"
        raise PositionError(f"position model {model!r} needs an encoding of {needed}; {encoding.name!r} is not one")
    return encoding


def of_whole(model: str, encoding: Encoding) -> Encoding:
    """The encoding, if it gives units whole numbers, which can be rows of a table.

    Raises:
        PositionError: it is of pairs, or gives real numbers.
    """
    if of_arity(model, encoding, 1).real:
        raise PositionError(
            f"position model {model!r} has a table, a row for each whole number; encoding {encoding.name!r} gives real "
            f"ones; choose another, 'order' say, or a model without a table"
        )
    return encoding


def indices(model: str, encoding: Encoding, of_units: Tensor) -> Tensor:
    """What an encoding of arity 1 says of each unit, if it is one whole number, 0 or more: the row of a table.

    Raises:
        PositionError: it is not.
    """
    rows = numbers(model, encoding, of_units)
    if rows.is_floating_point() or holds((rows < 0).any()):
        given = "real numbers" if rows.is_floating_point() else f"{int(rows.min())}"
        raise PositionError(
            f"position model {model!r} has a table, a row for each whole number from 0; {encoding.name!r} gives {given}"
        )
    return rows


def of_all_pairs(model: str, encoding: Encoding) -> Encoding:
    """The encoding, if it says something of every pair of units.

    Raises:
        PositionError: it is of units, or lists few pairs.
    """
    if of_arity(model, encoding, 2).sparse:
        raise PositionError(f"position model {model!r} needs an encoding of all pairs; {encoding.name!r} lists a few")
    return encoding


def width_of(model: str, encoding: Encoding) -> int:
    """How many numbers an encoding of arity 1 gives each unit; a path, which every encoding takes, shows it.

    Raises:
        PositionError: it gives one integer, not a vector.
    """
    shape = of_arity(model, encoding, 1).one(path(["a", "b"])).values.shape
    if len(shape) != 2:
        raise PositionError(
            f"position model {model!r} needs a vector per unit (laplacian, random-walk, ...); "
            f"{encoding.name!r} gives one number"
        )
    return int(shape[1])

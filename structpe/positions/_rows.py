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

__all__ = ["Rows", "Sharing", "Table", "is_plain", "of_arity"]

Sharing: TypeAlias = Literal["none", "head-wise", "layer-wise", "both"]
"""Which parameters are one and the same (seed study 002, section 4.4): ``head-wise`` for all heads of a layer,
``layer-wise`` for all layers, each head having its own."""

_HALF = (WITHIN - UNREACHABLE) // 2


def is_plain(values: Tensor) -> Tensor:
    """Where values are offsets, and not code points."""
    return values < UNREACHABLE - _HALF // 2


@dataclass(frozen=True)
class Rows:
    """Which row of a table stands for a value: offsets by a rule, then one row for "unreachable", then "within".

    Args:
        encoding: where the values come from; code points that it never uses get no row.
        offsets: number of rows for offsets.
        within: units of one node this far apart have a row each, on both sides; those farther apart share the last.
    """

    encoding: Encoding
    offsets: int
    within: int = 8

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
        layers = 1 if sharing in ("layer-wise", "both") else dims.layers
        heads = 1 if sharing in ("head-wise", "both") else dims.heads
        shape = (layers, rows, heads) if width is None else (layers, rows, heads, width)
        self.weight = nn.Parameter(torch.randn(shape) * std)

    def at(self, layer: int) -> Tensor:
        """(R, h or 1) scalars or (R, h or 1, width) vectors of a layer."""
        own: Tensor = self.weight[layer if len(self.weight) > 1 else 0]
        return own

    @staticmethod
    def copies(sharing: Sharing, dims: Dims) -> int:
        """How many tables there are: the factor of a formula of parameters."""
        return (1 if sharing in ("layer-wise", "both") else dims.layers) * (
            1 if sharing in ("head-wise", "both") else dims.heads
        )


def of_arity(model: str, encoding: Encoding, arity: Literal[1, 2]) -> Encoding:
    """The encoding, if it is of the arity that a model needs.

    Raises:
        PositionError: it is of the other one.
    """
    if encoding.arity != arity:
        needed = "pairs of units (offset, distance, ...)" if arity == 2 else "single units (order, depth, ...)"
        raise PositionError(f"position model {model!r} needs an encoding of {needed}; {encoding.name!r} is not one")
    return encoding

"""Learned tables, with their sharing over heads and layers."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from structpe.errors import PositionError
from structpe.positions._dims import Dims
from structpe.precision import wide

__all__ = ["Sharing", "Table"]

Sharing: TypeAlias = Literal["none", "head-wise", "layer-wise", "both"]
"""Which parameters are one and the same (Chen et al. 2021, section 4.4): ``head-wise`` for all heads of a layer,
``layer-wise`` for all layers, each head having its own."""


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
        """(R, h or 1) scalars or (R, h or 1, width) vectors of a layer, in float32 at least.

        Raises:
            PositionError: there is no such layer.
        """
        if not 0 <= layer < self.layers:
            last = self.layers - 1
            raise PositionError(f"this model was built for {self.layers} layers, 0..{last}; there is no layer {layer}")
        own: Tensor = self.weight[0 if self.common else layer]
        return wide(own)

    @property
    def common(self) -> bool:
        """Whether all layers have the same numbers."""
        return len(self.weight) == 1

    @staticmethod
    def copies(sharing: Sharing, dims: Dims) -> int:
        """How many tables there are: the factor of a formula of parameters."""
        return (1 if sharing in ("layer-wise", "both") else dims.layers) * (
            1 if sharing in ("head-wise", "both") else dims.heads
        )

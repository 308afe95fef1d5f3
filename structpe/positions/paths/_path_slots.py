"""Embedded labels in their order, and the convolution over them: what zhu-cnn and zhu-self share."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.dropout import Dropout
from structpe.positions import Dims
from structpe.positions.paths._path_attention import Slots, waves

__all__ = ["Convolutions", "OrderedSlots"]


class OrderedSlots(nn.Module):
    """x_c = sqrt(w) E[c-th label of the path] + P_c, P the interleaved sinusoid.

    Args:
        labels: embeds the labels of a path.
        dropout: of x.
    """

    def __init__(self, labels: Slots, dropout: float) -> None:
        super().__init__()
        self.labels = labels
        self.waves: Tensor
        self.register_buffer("waves", waves(labels.slots, labels.table.embedding_dim), persistent=False)
        self.dropout = Dropout(dropout)

    def forward(self, paths: Tensor) -> Tensor:
        """(R, c, w) from paths (R, c or less)."""
        embedded: Tensor = self.dropout(self.labels(paths) + self.waves)
        return embedded


class Convolutions(nn.Module):
    """r = relu(sum_c F_c x_c + f), of each layer: one step of a convolution as wide as the path has slots.

    Args:
        dims: sizes of the Transformer.
        slots: c.
        dropout: of r.
    """

    def __init__(self, dims: Dims, slots: int, dropout: float) -> None:
        super().__init__()
        self.filters = nn.ModuleList(nn.Conv1d(dims.head, dims.head, slots) for _ in range(dims.layers))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, layer: int) -> Tensor:
        """(R, w) from (R, c, w)."""
        r: Tensor = self.dropout(torch.relu(self.filters[layer](x.transpose(1, 2))[:, :, 0]))
        return r

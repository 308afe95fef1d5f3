"""Copying of source units: a pointer beside the vocabulary (See et al. 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

__all__ = ["Copy", "Source", "precise"]


@dataclass(frozen=True, eq=False)
class Source:
    """What can be copied.

    Attributes:
        keys: (b, n, d) one per source unit.
        units: (b, n) their ids.
    """

    keys: Float[Tensor, "b n d"]
    units: Int[Tensor, "b n"]

    def select(self, rows: Tensor) -> Source:
        """These rows of the batch, in this order."""
        return Source(self.keys[rows], self.units[rows])


class Copy(nn.Module):
    """p(y) = (1 - g) softmax(logits)_y + g sum_{i: unit_i = y} a_i, a = softmax(hW K^T/sqrt(d)), g = sigmoid(w.h + b).

    Source and target share their units, so a copied unit is a unit of the vocabulary. The gate starts near 0.12: the
    model learns to write before it copies. Log-probabilities are computed in float32 at least.

    Args:
        width: d.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key, self.gate = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 1)
        nn.init.constant_(self.gate.bias, -2.0)

    def start(self, memory: Float[Tensor, "b n d"], units: Int[Tensor, "b n"]) -> Source:
        """Read the encoder's output, once per batch."""
        return Source(self.key(memory), units)

    def forward(
        self,
        hidden: Float[Tensor, "b m d"],
        logits: Float[Tensor, "b m v"],
        source: Source,
        present: Bool[Tensor, "b n"],
    ) -> Float[Tensor, "b m v"]:
        """Log-probabilities of writing or copying each unit."""
        scores = self.query(hidden) @ source.keys.transpose(1, 2) / math.sqrt(hidden.shape[-1])
        attention = torch.softmax(precise(scores).masked_fill(~present[:, None], -math.inf), dim=-1)
        where = source.units[:, None].expand(-1, hidden.shape[1], -1)
        copied = torch.zeros_like(logits, dtype=attention.dtype).scatter_add(-1, where, attention)
        gate = precise(self.gate(hidden))
        written = nn.functional.logsigmoid(-gate) + torch.log_softmax(precise(logits), dim=-1)
        # A unit that cannot be copied has copied = 0: the tiny floor keeps its logarithm, and the gradient, finite.
        return torch.logaddexp(written, nn.functional.logsigmoid(gate) + torch.log(copied.clamp(min=1e-30)))


def precise(x: Tensor) -> Tensor:
    """In float32 at least: half precision is too coarse for logarithms of small probabilities."""
    return x.to(torch.promote_types(x.dtype, torch.float32))

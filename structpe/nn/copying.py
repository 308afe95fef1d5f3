"""Copying of source units by a pointer network (See et al. 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from structpe.precision import wide

__all__ = ["Copy", "CopySource", "mix"]


@dataclass(frozen=True, eq=False)
class CopySource:
    """The source units that can be copied.

    Attributes:
        keys: (b, n, d) a vector per source unit.
        units: (b, n) ids of the units.
    """

    keys: Float[Tensor, "b n d"]
    units: Int[Tensor, "b n"]

    def select(self, rows: Tensor) -> CopySource:
        """Reorder the batch to these rows."""
        return CopySource(self.keys[rows], self.units[rows])


class Copy(nn.Module):
    """p(y) = (1 - g) softmax(logits)_y + g sum_{i: unit_i = y} a_i, a = softmax(hW K^T/sqrt(d)), g = sigmoid(w.h + b).

    Source and target share their units, so a copied unit is a unit of the vocabulary. The gate starts near 0.12: the
    model learns to write before it copies. Log-probabilities are computed in float32 at least, since half precision is
    too coarse for logarithms of small probabilities.

    Args:
        width: d.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key, self.gate = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 1)
        nn.init.constant_(self.gate.bias, -2.0)

    def start(self, memory: Float[Tensor, "b n d"], units: Int[Tensor, "b n"]) -> CopySource:
        """Read the encoder's output, once per batch."""
        return CopySource(self.key(memory), units)

    def forward(
        self,
        hidden: Float[Tensor, "b m d"],
        logits: Float[Tensor, "b m v"],
        source: CopySource,
        present: Bool[Tensor, "b n"],
    ) -> Float[Tensor, "b m v"]:
        """Log-probabilities of writing or copying each unit."""
        attention = self._attention(hidden, source, present)
        where = source.units[:, None].expand(-1, hidden.shape[1], -1)
        copied = torch.zeros_like(logits, dtype=attention.dtype).scatter_add(-1, where, attention)
        return mix(wide(self.gate(hidden)), torch.log_softmax(wide(logits), dim=-1), copied)

    def likelihood(
        self,
        hidden: Float[Tensor, "b m d"],
        source: CopySource,
        present: Bool[Tensor, "b n"],
        target: Int[Tensor, "b m"],
    ) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b m"]]:
        """Score of the gate, and probability of copying the units of ``target``, for the loss."""
        same = source.units[:, None, :] == target[:, :, None]
        copied = (self._attention(hidden, source, present) * same).sum(dim=-1)
        return wide(self.gate(hidden)).squeeze(-1), copied

    def _attention(self, hidden: Tensor, source: CopySource, present: Tensor) -> Tensor:
        scores = self.query(hidden) @ source.keys.transpose(1, 2) / math.sqrt(hidden.shape[-1])
        return torch.softmax(wide(scores).masked_fill(~present[:, None], -math.inf), dim=-1)


def mix(gate: Tensor, written: Tensor, copied: Tensor) -> Tensor:
    """log((1 - g) exp(written) + g copied), g = sigmoid(gate); ``written`` is a log-probability.

    A unit that cannot be copied has copied = 0; a small floor keeps its logarithm and the gradient finite.
    """
    write, copy = nn.functional.logsigmoid(-gate), nn.functional.logsigmoid(gate)
    return torch.logaddexp(write + written, copy + torch.log(copied.clamp(min=1e-30)))

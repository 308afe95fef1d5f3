"""What TokenGT adds to tokens: identifiers of their two ends, and whether these are the same."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Identify"]


class Identify(nn.Module):
    """W [P_u, P_v] + E[u = v]: W (d, 2k) without bias, E (2, d), its first row for edges, its second for nodes.

    Args:
        k: width of an identifier.
        width: d.
    """

    def __init__(self, k: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Linear(2 * k, width, bias=False)
        self.types = nn.Parameter(torch.randn(2, width) * 0.02)
        nn.init.normal_(self.embed.weight, std=0.02)

    def forward(self, identifiers: Tensor, ends: Tensor) -> Tensor:
        """(b, n, d) from [P_u, P_v] (b, n, 2k) and (u, v) (b, n, 2)."""
        added: Tensor = self.embed(identifiers)
        return added + self.types[(ends[..., 0] == ends[..., 1]).long()]

"""Directional self-attention with a weight per channel (Shen et al. 2018, DiSAN)."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Block, Cells, Dims, Positions, Site, Spec
from structpe.positions._checks import numbers, of_arity
from structpe.positions.blocks._attention import allowed, softmax, without_heads
from structpe.positions.windows._directions import visible
from structpe.terms import Terms

__all__ = ["DiSANBlock"]


class DiSANBlock(Block, name="disan-block"):
    """Directional self-attention with a weight per channel (Shen et al. 2018, DiSAN).

    o_i = g_i h_i + (1 - g_i) sum_j softmax_j(5 tanh((W_1 h_j + W_2 h_i + b) / 5)) h_j, a softmax for each channel.

    h = elu(W x + c) (b, n, d); g_i = sigmoid(W_h h_i + b_h + W_s s_i + b_s + b_o), s_i being that sum. Keys are those
    before the query (``forward``), after it (``backward``), or all but itself (``diagonal``); without such keys, s_i =
    0. W, W_1, W_2, W_h, W_s are (d, d), all else (d), of each layer. (Shen et al. 2018, sections 3.2 and 4.1; the
    authors' code, which has the biases b_h and b_s in addition to b_o.)

    There are no heads. DiSAN concatenates a forward and a backward one, and pools the result into one vector: neither
    fits a layer whose output is as wide as its input. Memory grows with n^2 d. Dropout of the code is left to layers.

    Args:
        dims: sizes of the Transformer.
        encoding: one number per unit: its place, its depth in a tree, ...
        direction: which keys units attend to.

    Raises:
        PositionError: the encoding gives a vector per unit.
        UnsupportedTerm: something else than which pairs attend is to act on attention, or that differs by head.
    """

    heads = False
    drops = True
    spec = Spec(
        "shen2018",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="(5*d*d + 5*d)*l"),
        note="a block counts its projections; its masks are its only position information",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        direction: Literal["forward", "backward", "diagonal"] = "forward",
    ) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        self.direction = direction
        self.attentions = nn.ModuleList(_Attention(dims.width) for _ in range(dims.layers))

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, n) which keys are in the direction."""
        (encoding,) = self.encodings
        places = numbers(self.name, encoding, positions[encoding])
        return visible(self.direction, places, places)

    def attend(self, x: Tensor, prepared: Tensor, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        among = without_heads(self.name, allowed(self.name, terms, x))
        return self.attentions[site.layer](x, prepared & among, site.dropout), prepared


class _Attention(nn.Module):
    """One layer of it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)
        self.query = nn.Linear(width, width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))
        self.gate_hidden = nn.Linear(width, width)
        self.gate_sum = nn.Linear(width, width)
        self.gate_bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor, seen: Tensor, dropped: float) -> Tensor:
        """(b, n, d) from x (b, n, d) and (b or 1, n, n) which keys are attended to."""
        h = functional.elu(self.hidden(x))
        score = 5 * torch.tanh((self.key(h)[:, None] + self.query(h)[:, :, None] + self.bias) / 5)
        weights = softmax(score, seen[..., None], dropped, dim=2)
        s = torch.einsum("bnmd,bmd->bnd", weights, h.to(weights.dtype))
        g = torch.sigmoid(self.gate_hidden(h) + self.gate_sum(s) + self.gate_bias)
        out: Tensor = g * h + (1 - g) * s
        return out

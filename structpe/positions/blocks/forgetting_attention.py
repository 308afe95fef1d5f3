"""Forgetting attention: scores fall by the forget gates of the units between query and key (Lin et al. 2025)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, Positions, Site, Spec
from structpe.positions._checks import of_arity
from structpe.positions.blocks._attention import of_layers, softmax
from structpe.positions.blocks._cached import CachedBlock, ranks

__all__ = ["ForgettingAttention"]


class ForgettingAttention(CachedBlock, name="forgetting-attention"):
    """Forgetting attention: scores fall by the forget gates of the units between query and key (Lin et al. 2025).

    s_ij = q_i.k_j / sqrt(d_h) + sum of log f_t over the units t with j < t <= i,  f_t = sigmoid(w.x_t + b).

    FoX, the forgetting Transformer: f is a gate of each unit and head, computed from what the layer reads; w (d) and b
    are learned for each head of each layer. With equal gates for all units this is ``alibi-causal`` with learned
    slopes. (Lin et al. 2025, section 3, equations 5 to 7; gates and bias "full" in their code.)

    As in their code, queries, keys, values and output are projected without biases, b starts from 0, and sums are in
    float32. Not included: the parts of their "Pro" block that have nothing to do with gates (norms of queries and keys,
    an output gate, shifts of keys and values). Compared with the reference of flash-linear-attention in float64.

    The model is causal by itself: keys after the query do not attend. The encoding defines before and after, so that
    in a tree gates can add up along the depth; of units with the same number those stored later are later. Gates of
    units that a mask hides still count, as in a sliding window; those of padding do not. A decoder keeps log f as one
    more channel of the keys.

    Args:
        dims: sizes of the Transformer.
        encoding: one number per unit, by which units are ordered.

    Raises:
        PositionError: the encoding gives a vector per unit.
        UnsupportedTerm: something else than which pairs attend is to act on attention.
    """

    spec = Spec(
        "lin2025",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="(4*d*d + d*h + h)*l"),
        note="a block counts its projections",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order()) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        self.gates = of_layers(dims, dims.heads)

    def prepare(self, positions: Positions) -> Tensor:
        """(b or 1, m) the rank of each unit."""
        return ranks(self.name, self.encodings[0], positions)

    def project(self, x: Tensor, site: Site) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(x, site)
        gates = functional.logsigmoid(self.gates[site.layer](x)).transpose(1, 2)
        return q, torch.cat([k, gates[..., None].to(k.dtype)], dim=-1), v

    def mixed(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, prepared: Tensor, site: Site) -> Tensor:
        k, gates = k[..., :-1], k[..., -1]
        score = self.scores(q, k)
        rank, own = prepared[:, None], prepared[:, None, -q.shape[2] :]
        order = rank.argsort(dim=-1).expand(gates.shape)
        total = gates.to(score.dtype).gather(-1, order).cumsum(dim=-1).gather(-1, rank.expand(gates.shape))
        score = score + total[..., -q.shape[2] :, None] - total[..., None, :]
        return softmax(score, seen & (rank[..., None, :] <= own[..., None]), site.dropout).to(v.dtype) @ v

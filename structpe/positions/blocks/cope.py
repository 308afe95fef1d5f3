"""Contextual positions: each query counts the keys that are relevant to it (Golovneva et al. 2024, CoPE)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Block, Cells, Dims, Positions, Site, Spec
from structpe.positions._checks import numbers, of_arity
from structpe.positions._tables import Sharing, Table
from structpe.positions.blocks._attention import allowed, joined, of_layers, products, softmax, split
from structpe.terms import Terms

__all__ = ["CoPE"]


class CoPE(Block, name="cope"):
    """Contextual positions: each query counts the keys that are relevant to it (Golovneva et al. 2024, CoPE).

    s_ij = q_i.k_j / sqrt(d_h) + q_i.e(p_ij),  p_ij = sum of sigmoid(q_i.k_u / sqrt(d_h)) over keys u from j to i.

    p is the number of keys from j on that the query counts, at most T - 1, and in general not a whole number: e(p) is
    interpolated between the vectors E[floor p] and E[ceil p]. E (T, d_h) is learned and starts from zero. Queries, keys
    and values are projected as usual. (Golovneva et al. 2024, section 4, equations 3 to 5; the listing of their
    appendix.)

    As in that listing gates use scaled products and the term of positions is not scaled; T is far below the length of a
    text. It has one table for all heads of a layer. The model is causal by itself: keys after the query neither count
    nor attend, as well as those that are masked. The encoding defines before and after, so that in a tree a unit can
    count its ancestors, for example; of units with the same number those stored later are later.

    Args:
        dims: sizes of the Transformer.
        encoding: one number per unit, by which units are counted.
        length: T, number of positions, 2 or more.
        sharing: ``head-wise`` as in the listing.

    Raises:
        PositionError: fewer than 2 positions, or the encoding gives a vector per unit.
        UnsupportedTerm: something else than which pairs attend is to act on attention.
    """

    drops = True
    spec = Spec(
        "golovneva2024",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="4*(d*d + d)*l + T*dh*copies"),
        note="a block counts its projections",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Order(), length: int = 64, sharing: Sharing = "head-wise"
    ) -> None:
        if length < 2:
            raise PositionError(f"position model 'cope' needs 2 positions or more; given is a length of {length}")
        super().__init__(dims, [of_arity(self.name, encoding, 1)], T=length, copies=Table.copies(sharing, dims))
        self.length, self.table = length, Table(dims, length, sharing, width=dims.head, std=0)
        self.projections, self.outs = of_layers(dims, 3 * dims.width), of_layers(dims, dims.width)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n) the units in their order."""
        return numbers(self.name, self.encodings[0], positions[self.encodings[0]]).argsort(dim=1, stable=True)

    def attend(self, x: Tensor, prepared: Tensor, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        among = allowed(self.name, terms, x).expand(len(x), -1, -1, -1)
        # Everything is put in order and back: sums over later keys then run along an axis.
        pairs = among.gather(2, _like(prepared[:, None, :, None], among))
        pairs = pairs.gather(3, _like(prepared[:, None, None], among))
        ordered = x.gather(1, _like(prepared[..., None], x))
        q, k, v = (split(each, self.dims.heads) for each in self.projections[site.layer](ordered).chunk(3, dim=-1))
        out = joined(self._attended(q, k, v, pairs.tril(), self.table.at(site.layer), site.dropout))
        back = torch.empty_like(out).scatter(1, _like(prepared[..., None], out), out)
        return self.outs[site.layer](back), prepared

    def _attended(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, table: Tensor, dropped: float) -> Tensor:
        """(b, h, n, d_h) of units in order; table (T, h or 1, d_h)."""
        score = products(q, k) / math.sqrt(self.dims.head)
        gates = torch.sigmoid(score).masked_fill(~seen, 0)
        position = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=self.length - 1)
        whole = products(q, table.transpose(0, 1))  # (b, h, n, T) q.E
        low, high = (whole.gather(-1, p.long()) for p in (position.floor(), position.ceil()))
        score = score + low + (high - low) * (position - position.floor())
        return softmax(score, seen, dropped).to(v.dtype) @ v


def _like(index: Tensor, of: Tensor) -> Tensor:
    return index.expand(of.shape)  # one structure may be for all rows of a batch

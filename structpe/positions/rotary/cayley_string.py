"""Cayley-STRING: rotary positions in a learned orthogonal basis (Schenck et al. 2025)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Coordinates
from structpe.positions import Cells, Dims, Site, Spec
from structpe.positions.rotary._lie import GridModel, Places, skew
from structpe.positions.rotary._turns import Turns, check_even
from structpe.terms import Map, Terms

__all__ = ["CayleyString"]


class CayleyString(GridModel, name="cayley-string"):
    """Cayley-STRING: rotary positions in a learned orthogonal basis (Schenck et al. 2025).

    (q_i, k_j) -> (T(x_i) P^T q_i, T(x_j) P^T k_j),  P = (I - S)(I + S)^(-1), S skew-symmetric and learned.

    T(x) turns the channels (2u, 2u+1) by sum_c v_uc x_c, v learned, so that q.k is that of R(x) = P T(x) P^T, and
    depends only on the offsets on all axes. Any rotations exp(sum_c A_c x_c) with A_c that commute are of this form.
    S (d_h, d_h) and v (d_h/2, axes) are those of each layer and head. (Schenck et al. 2025, theorem 3.2 and section
    3.2.1. No code by the authors is known: compared with the product of the matrices.)

    S starts from zero, where P = I, and v as in ``axial-rotary``: the pairs take turns over the axes, each with the
    frequencies base^(-i/p) of its p pairs. Both are our choices. A class token, without a place, is not turned.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: coordinates per unit; a sequence has one axis, the others are 0.
        axes: how many coordinates.
        base: of the frequencies that v starts from.

    Raises:
        PositionError: the width of a head is odd, or another number of coordinates.
    """

    spec = Spec(
        "schenck2025",
        "grid",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="l*d*(a + dh - 1)//2"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(), axes: int = 2, base: float = 100.0) -> None:
        check_even(self.name, dims)
        super().__init__(dims, encoding, axes, 1.0, a=axes)
        pairs = torch.arange(dims.head // 2)
        each = -(-len(pairs) // axes)  # pairs of an axis
        start = torch.zeros(len(pairs), axes)
        start[pairs, pairs % axes] = base ** (-(pairs // axes) / each)
        self.frequencies = nn.Parameter(start.repeat(dims.layers, dims.heads, 1, 1))
        self.basis = nn.Parameter(torch.zeros(dims.layers, dims.heads, dims.head * (dims.head - 1) // 2))

    def terms(self, prepared: Places, site: Site) -> Terms:
        own = self.frequencies[site.layer]
        angles = (torch.einsum("bnc,hpc->bhnp", places, own.double()) for places in (prepared.queries, prepared.keys))
        return Terms(maps=(_after(self.change(site.layer), Turns(*angles).neighbours),))

    def change(self, layer: int) -> Tensor:
        """(h, d_h, d_h) P, float32 at least."""
        exact = torch.promote_types(self.basis.dtype, torch.float32)
        s = skew(self.basis[layer].to(exact), self.dims.head)
        one = torch.eye(self.dims.head, dtype=exact, device=s.device)
        p: Tensor = torch.linalg.solve(one + s, one - s)  # they commute
        return p


def _after(change: Tensor, turn: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> Map:
    """Queries and keys in the other basis, then turned."""

    def mapped(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return turn(q @ change.to(q.dtype), k @ change.to(k.dtype))

    return mapped

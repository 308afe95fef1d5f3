"""PaTH attention: products of Householder-like matrices between query and key (Yang S. et al. 2025)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Positions, Site, Spec
from structpe.positions._checks import holds, of_arity
from structpe.positions.blocks._attention import of_layers, softmax, split
from structpe.positions.blocks._cached import CachedBlock, ranks

__all__ = ["PathAttention"]

_CHUNK = 64
"""Units whose matrices are multiplied together, as in the authors' kernel."""
_EPS = 1e-6


class PathAttention(CachedBlock, name="path-attention"):
    """PaTH attention: products of Householder-like matrices between query and key (Yang S. et al. 2025).

    s_ij = q_i^T H_i H_(i-1) ... H_(j+1) k_j / sqrt(d_h),  H_t = I - beta_t w_t w_t^T.

    PaTH: the matrix between two units is the product of one matrix for each unit after the key, up to the query, and
    depends on what these units contain. w_t (d_h) has length 1 and is read for each head from the unit and the two
    before it, w = U V x (V (r, d)), then a convolution over ``window`` units, channel by channel, and SiLU; beta_t =
    2 sigmoid(u.x_t + b), so that H may reflect. (Yang S. et al. 2025, sections 3.1 and 3.3, and the layer of
    flash-linear-attention.)

    As in that layer: projections have no biases, w is divided by sqrt(|w|^2 + 1e-6), and products are computed for 64
    units at a time by the inverse of a triangular matrix (section 3.2), so that time grows with n^2, not n^3. Not
    included: their forget gate (PaTH-FoX), norms of queries and keys, and shared keys. Compared with the reference of
    flash-linear-attention in float64.

    The model is causal by itself: keys after the query do not attend. The encoding defines before and after; of units
    with the same number those stored later are later. The matrices of units that a mask hides still count. A decoder
    keeps w and beta as more channels of the keys, and multiplies anew in each step; its units must come in their order.

    Args:
        dims: sizes of the Transformer.
        encoding: one number per unit, by which units are ordered.
        rank: r.
        window: units of the convolution.

    Raises:
        PositionError: the encoding gives a vector per unit; units of a decoder do not come in their order.
        UnsupportedTerm: something else than which pairs attend is to act on attention.
    """

    spec = Spec(
        "yang2025path",
        "sequence",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=True, params="(4*d*d + 2*d*r + d*k + d*h + h)*l"),
        note="a block counts its projections; relative but for the convolution, which reads units in front too",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), rank: int = 32, window: int = 3) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)], r=rank, k=window)
        self.down, self.strengths = of_layers(dims, rank, bias=False), of_layers(dims, dims.heads)
        self.up = nn.ModuleList(nn.Linear(rank, dims.width, bias=False) for _ in range(dims.layers))
        self.filters = nn.Parameter(torch.empty(dims.layers, dims.width, window).uniform_(-1, 1) * window**-0.5)

    def prepare(self, positions: Positions) -> Tensor:
        """(b or 1, m) the rank of each unit."""
        return ranks(self.name, self.encodings[0], positions)

    def project(self, x: Tensor, site: Site) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(x, site)
        w = split(self.up[site.layer](self.down[site.layer](x)), self.dims.heads)
        beta = 2 * torch.sigmoid(self.strengths[site.layer](x)).transpose(1, 2)[..., None]
        return q, torch.cat([k, w, beta.to(k.dtype)], dim=-1), v

    def mixed(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, prepared: Tensor, site: Site) -> Tensor:
        n, m = q.shape[2], k.shape[2]
        if n < m:
            if holds((prepared != torch.arange(m, device=k.device)).any()):
                raise PositionError(
                    f"position model {self.name!r} multiplies the matrices of units in their order, and here a unit "
                    f"comes before one that was written earlier; order them by {Order().name!r}"
                )
            return self._in_order(q, k, v, seen, site)
        order = prepared.argsort(dim=1)
        seen = _sorted(_sorted(seen, order).transpose(2, 3), order).transpose(2, 3)
        q, k, v = (_sorted(each, order) for each in (q, k, v))
        return _sorted(self._in_order(q, k, v, seen, site), prepared)

    def _in_order(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, site: Site) -> Tensor:
        n, m = q.shape[2], k.shape[2]
        exact = torch.promote_types(q.dtype, torch.float32)
        k, w, beta = torch.split(k.to(exact), [self.dims.head, self.dims.head, 1], dim=-1)
        with torch.autocast(q.device.type, enabled=False):  # there is no inverse in half precision
            score = products(q.to(exact), k, self._directions(w, site.layer), beta) / self.dims.head**0.5
        behind = torch.ones(n, m, dtype=torch.bool, device=q.device).tril(m - n)
        return softmax(score, seen & behind, site.dropout).to(v.dtype) @ v

    def _directions(self, w: Tensor, layer: int) -> Tensor:
        """The w_t (b, h, m, d_h) of length 1: convolved, activated, divided by their length."""
        channels = w.transpose(2, 3).flatten(1, 2)
        filters = self.filters[layer][:, None].to(w.dtype)
        padded = functional.pad(channels, (filters.shape[-1] - 1, 0))
        mixed = functional.silu(functional.conv1d(padded, filters, groups=len(filters)))
        w = split(mixed.transpose(1, 2), self.dims.heads)
        return w * (w.square().sum(-1, keepdim=True) + _EPS).rsqrt()


def products(q: Tensor, k: Tensor, w: Tensor, beta: Tensor) -> Tensor:
    """(b, h, n, m) q_i^T H_i ... H_(j+1) k_j for keys j <= i; numbers of other pairs mean nothing.

    Within a chunk, H_i ... H_(j+1) = I - sum_st w_s T_st beta_t w_t^T, T the inverse of I + the strictly lower triangle
    of beta_s w_s.w_t; whole chunks follow one by one, from the last to the first.

    Args:
        q: (b, h, n, d) of the last n units.
        k: (b, h, m, d).
        w: (b, h, m, d), of length 1.
        beta: (b, h, m, 1).
    """
    n, m = q.shape[2], k.shape[2]
    size = min(_CHUNK, m)
    first, after = (m - n) // size, -m % size
    q = _chunks(q, m - n - first * size, after, size)
    k, w, beta = (_chunks(each, 0, after, size) for each in (k, w, beta))
    weighted = beta * w
    within = (weighted @ w.mT).tril(-1) + torch.eye(size, dtype=w.dtype, device=w.device)
    solved = torch.linalg.solve_triangular(
        within, torch.cat([(weighted @ k.mT).tril(-1), weighted], dim=-1), upper=False, unitriangular=True
    )
    of_keys, of_chunk = solved[..., :size], solved[..., size:]
    crossed = (q @ w[:, :, first:].mT).tril()
    local = (q @ k[:, :, first:].mT).tril() - crossed @ of_keys[:, :, first:]
    q = q - crossed @ of_chunk[:, :, first:]  # turned back to the start of its chunk
    k = k - of_keys.mT @ w  # turned to the end of its chunk
    columns: list[Tensor] = []
    for chunk in reversed(range(k.shape[2])):
        own = max(chunk - first, -1)  # the chunk of the same units among those of the queries
        later = q[:, :, own + 1 :]
        blocks = [later @ k[:, :, chunk, None].mT]
        if own >= 0:
            blocks = [torch.zeros_like(local[:, :, :own]), local[:, :, own, None], *blocks]
        columns.append(torch.cat(blocks, dim=2).flatten(2, 3))
        turned = later - later @ (w[:, :, chunk, None].mT @ of_chunk[:, :, chunk, None])
        q = torch.cat([q[:, :, : own + 1], turned], dim=2)
    score = torch.cat(columns[::-1], dim=-1)
    return score[:, :, m - n - first * size :, :m][:, :, :n]


def _chunks(x: Tensor, before: int, after: int, size: int) -> Tensor:
    """(b, h, c, size, d) of (b, h, n, d), with so many zeros before and after."""
    padded = functional.pad(x, (0, 0, before, after))
    return padded.view(*x.shape[:2], -1, size, x.shape[-1])


def _sorted(x: Tensor, order: Tensor) -> Tensor:
    """(b, h, n, ...) rows of x in an order (b or 1, n)."""
    b = max(len(x), len(order))
    index = order[:, None, :, None].expand(b, x.shape[1], -1, x.shape[3])
    return x.expand(b, *x.shape[1:]).gather(2, index)

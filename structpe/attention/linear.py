"""Attention with a feature map in place of the exponential: linear in the number of units."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from structpe.attention.attend import Call, kernel
from structpe.attention.gather import mixed
from structpe.dropout import dropout as dropped
from structpe.errors import UnsupportedTerm
from structpe.terms import Terms

__all__ = ["linear"]

_CHUNK = 128
"""Units per chunk of causal attention. Memory: a state (f, d) per chunk and (chunk, chunk) products within it."""


def _cost(call: Call) -> float:
    b, h, n, m, d = call.shape
    return 2.0 * b * h * (n + m) * d


def _limits(call: Call) -> str | None:
    return "sums keys first, and a mask depends on the query" if call.by_query else None


@kernel(
    "linear",
    supports="maps mask causal feature_map projection",
    cost=_cost,
    needs="feature_map",
    limits=_limits,
)
def linear(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """f(q'_i).sum_j f(k'_j) v_j / f(q'_i).sum_j f(k'_j), with the sums first: nothing of shape (n, m).

    (Katharopoulos et al. 2020, eqs. 5 and 9.) Causal attention sums chunk by chunk. A mask may depend on keys, but not
    on queries. Since there are no weights, dropout drops a value for all queries of a head at once.

    Raises:
        UnsupportedTerm: a mask of pairs.
    """
    for change in terms.maps:
        q, k = change(q, k)
    k, v, terms = mixed(k, v, terms)
    assert terms.feature_map is not None  # a field it needs
    wide = torch.promote_types(v.dtype, torch.float32)
    features, of_keys = terms.feature_map(q).to(wide), terms.feature_map(k).to(wide)
    for mask in terms.mask:
        of_keys = of_keys * _keys(mask)
    ones = v.new_ones(*v.shape[:-1], 1, dtype=wide)
    values = v * dropped(ones, dropout) if dropout else v.to(wide)
    values = torch.cat([values, ones], dim=-1)  # the last column sums to the denominator
    sums = _causal(features, of_keys, values) if terms.causal else features @ (of_keys.transpose(-1, -2) @ values)
    out, total = sums[..., :-1], sums[..., -1:]
    return (out * _reciprocal(total)).to(v.dtype)


def _reciprocal(total: Tensor) -> Tensor:
    """1 / total, and 0 for a query that sees no key. One number per query is cheaper than a division per number."""
    seen = total >= torch.finfo(total.dtype).tiny
    total = torch.where(seen, total, 1)
    scale = (1 / total).detach()  # the gradient of 1 / total squares it, which overflows for small totals
    return torch.where(seen, scale / (total * scale), 0)


def _keys(mask: Tensor) -> Tensor:
    if mask.shape[-2] != 1:
        wrong = f"kernel 'linear' sums keys first, so a mask cannot depend on the query; one is {tuple(mask.shape)}"
        remedy = "give (b or 1, h or 1, 1, m), Terms(causal=True) for a causal mask, or listed pairs"
        raise UnsupportedTerm(f"{wrong}; {remedy}; or use kernel 'dense', whose time and memory are quadratic")
    return mask.transpose(-1, -2)


def _causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """(b, h, n, d) q_i . sum k_j v_j over the keys that query i sees; the last query sees all keys."""
    n, m = q.shape[2], k.shape[2]
    if n > m:  # the first queries see nothing
        return torch.cat([v.new_zeros(*q.shape[:2], n - m, v.shape[-1]), _causal(q[:, :, n - m :], k, v)], dim=2)
    first = k[:, :, : m - n].transpose(-1, -2) @ v[:, :, : m - n]  # the keys that all queries see
    q, k, v = (_chunks(x) for x in (q, k[:, :, m - n :], v[:, :, m - n :]))
    states = torch.cat([first[:, :, None], k.transpose(-1, -2) @ v], dim=2)[:, :, :-1].cumsum(2)
    out = q @ states + (q @ k.transpose(-1, -2)).tril() @ v
    return out.flatten(2, 3)[:, :, :n]


def _chunks(x: Tensor) -> Tensor:
    """(b, h, g, chunk, d), padded with zeros."""
    b, h, n, d = x.shape
    size = max(1, min(_CHUNK, n))
    return functional.pad(x, (0, 0, 0, -n % size)).reshape(b, h, -(-n // size), size, d)

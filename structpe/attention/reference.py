"""Attention written out, one tensor for all pairs: weights, and the additive mask that other libraries take."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from structpe.attention.attend import check_shapes
from structpe.attention.gather import gather_scalars, masks, multiplied, without_lists
from structpe.errors import StructPEError, UnsupportedTerm
from structpe.precision import wide
from structpe.terms import Lookup, Projection, SparsePairs, Terms

__all__ = ["additive", "all_weights", "log_total", "mixed_keys", "rounded", "vectors", "weights"]


def weights(q: Tensor, k: Tensor, terms: Terms | None = None) -> Tensor:
    """The weights with which :func:`structpe.attend` sums values: (b, h, n, m), each row sums to 1.

    softmax_j(s_ij) of the equation at the top of :mod:`structpe.terms`, or f(q_i).f(k_j) / sum_j f(q_i).f(k_j) with a
    feature map. With a projection they are (b, h, n, c), of its mixtures. A row is 0 if it attends to nothing. For
    inspection: all weights are written out.

    Args:
        q: (b, h, n, d) queries.
        k: (b, h, m, d) keys.
        terms: what position models add; None for plain attention.

    Raises:
        StructPEError: the shapes do not match.
    """
    terms = terms or Terms()
    if q.ndim != 4 or k.ndim != 4 or (*q.shape[:2], q.shape[3]) != (*k.shape[:2], k.shape[3]):
        shapes = f"{tuple(q.shape)} and {tuple(k.shape)}"
        raise StructPEError(f"weights takes q (b, h, n, d) and k (b, h, m, d); the shapes are {shapes}")
    b, h, n, d = q.shape
    check_shapes(terms, b, h, n, k.shape[2], d)
    return all_weights(q, k, terms).to(q.dtype)


def all_weights(q: Tensor, k: Tensor, terms: Terms) -> Tensor:
    """As :func:`weights`, in float32 at least, for terms that have been checked."""
    for change in terms.maps:
        q, k = change(q, k)
    if terms.projection is not None:
        k = mixed_keys(terms.projection, k, terms.mask)
    allowed = _allowed(terms, q, k.shape[2])
    if terms.feature_map is None:
        score = _scores(wide(q), wide(k), terms)
        return _softmax(score, allowed & (score != -math.inf))
    each = torch.einsum("bhnf,bhmf->bhnm", wide(terms.feature_map(q)), wide(terms.feature_map(k))) * allowed
    total = each.sum(-1, keepdim=True)
    return torch.where(total != 0, each / torch.where(total != 0, total, 1), 0)


def log_total(q: Tensor, k: Tensor, terms: Terms) -> Tensor:
    """Logarithm of sum_j exp(s_ij) (b, h, n), in float32 at least; -inf for a query that attends to nothing.

    Args:
        q: (b, h, n, d) queries.
        k: (b, h, m, d) keys.
        terms: checked, without a feature map or a projection.
    """
    for change in terms.maps:
        q, k = change(q, k)
    allowed, score = _allowed(terms, q, k.shape[2]), _scores(wide(q), wide(k), terms)
    score, somewhere = _closed(score, allowed & (score != -math.inf))
    return torch.where(somewhere[..., 0], score.logsumexp(-1), -math.inf)


def additive(terms: Terms, q: Float[Tensor, "b h n d"], keys: int) -> Float[Tensor, "b h n m"]:
    """The additive mask of terms: biases and factors; -inf for pairs that may not attend.

    A query that may attend to nothing, such as padding, has zeros, since the softmax of a row of -inf is NaN. In half
    precision the largest number of each query is 0, see :func:`rounded`.

    Args:
        terms: with biases, factors, masks, listed pairs and causal attention only.
        q: queries, or another tensor of this shape, dtype and device.
        keys: m.

    Raises:
        UnsupportedTerm: other terms, which are not additive, or depend on queries and keys.
        StructPEError: the shapes do not match.
    """
    if lost := terms.used() - {"bias", "factors", "mask", "pairs", "causal"}:
        wrong = f"a position model that acts by {', '.join(sorted(lost))} cannot be written as an additive mask"
        raise UnsupportedTerm(f"{wrong}; call structpe.attend, or choose one that acts by biases")
    (b, h, n, d), m = q.shape, keys
    check_shapes(terms, b, h, n, m, d)
    whole = wide(q.new_zeros(b, h, n, m))
    for bias in without_lists(terms, b, n, m).bias:
        whole = whole + gather_scalars(bias)
    for factor in terms.factors:
        whole = whole + multiplied(factor)
    allowed = whole != -math.inf
    for mask in (*masks(terms, q, q.new_empty(b, h, m, 0)), *(pairs.dense(b, n, m) for pairs in terms.pairs)):
        allowed = allowed & mask
    forbidden = torch.where(allowed.any(-1, keepdim=True), -math.inf, 0.0).to(whole.dtype)
    return rounded(torch.where(allowed, whole, forbidden), q.dtype)


def rounded(added: Tensor, dtype: torch.dtype) -> Tensor:
    """An additive mask (b or 1, h or 1, n or 1, m) in a dtype.

    In half precision the largest number of each query is subtracted first, which the softmax cancels: numbers of pairs
    with high scores are then near 0, and keep their digits.
    """
    if dtype.itemsize > 2:
        return added.to(dtype)
    highest = added.detach().amax(-1, keepdim=True)
    return (added - torch.where(highest == -math.inf, 0.0, highest)).to(dtype)


def mixed_keys(projection: Projection, k: Tensor, given: tuple[Tensor, ...], values: bool = False) -> Tensor:
    """The mixtures of keys, or of values; masked ones have no part."""
    for mask in given:
        k = k * mask.transpose(-1, -2)  # (b or 1, h or 1, m, 1), as attend() has checked
    return (projection.values if values else projection.keys).to(k.dtype) @ k


def vectors(x: Lookup | SparsePairs, q: Tensor, m: int) -> Tensor:
    """(b, h, n, m, d) the vector of each pair."""
    dense = _pairs(x, q, m).to(q.dtype).movedim(3, 1)  # (b, n, m, h, d) -> (b, h, n, m, d)
    return dense.expand(q.shape[0], q.shape[1], *dense.shape[2:])


def _scores(q: Tensor, k: Tensor, terms: Terms) -> Tensor:
    m = k.shape[2]
    score = torch.einsum("bhnd,bhmd->bhnm", q, k)
    for x in terms.key:
        score = score + torch.einsum("bhnd,bhnmd->bhnm", q, vectors(x, q, m))
    for x in terms.query:
        score = score + torch.einsum("bhnmd,bhmd->bhnm", vectors(x, q, m), k)
    for x in terms.product:
        # einsum would make this a product of matrices for each pair, which takes three times as long.
        score = score + (q[:, :, :, None] * k[:, :, None] * vectors(x, q, m)).sum(-1)
    score = score * (terms.scale / math.sqrt(q.shape[-1]))
    if terms.act is not None:
        score = terms.act(score)
    for gate in terms.gate:
        score = score * _scalars(gate, q, m)
    for factor in terms.factors:
        score = score + torch.einsum("bhnr,bhmr->bhnm", wide(factor.left), wide(factor.right))
    for bias in terms.bias:
        score = score + _scalars(bias, q, m)
    return score


def _softmax(score: Tensor, allowed: Tensor) -> Tensor:
    score, somewhere = _closed(score, allowed)
    return torch.where(somewhere, torch.softmax(score, dim=-1), torch.zeros((), dtype=score.dtype, device=score.device))


def _closed(score: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Scores, -inf where pairs do not attend, and which rows attend; other rows are 0: of -inf the gradient is NaN."""
    somewhere = allowed.any(-1, keepdim=True)
    return torch.where(allowed, score, torch.where(somewhere, -math.inf, 0.0).to(score.dtype)), somewhere


def _allowed(terms: Terms, q: Tensor, m: int) -> Tensor:
    """(b or 1, h or 1, n, m) which pairs attend."""
    n = q.shape[2]
    allowed = torch.ones(1, 1, n, m, dtype=torch.bool, device=q.device)
    # With a projection the mask has been applied to the mixtures.
    for mask in terms.mask if terms.projection is None else ():
        allowed = allowed & mask
    for pairs in terms.pairs:
        allowed = allowed & pairs.dense(q.shape[0], n, m)
    return allowed.tril(m - n) if terms.causal else allowed


def _scalars(x: Lookup | SparsePairs | Tensor, q: Tensor, m: int) -> Tensor:
    return x if isinstance(x, Tensor) else _pairs(x, q, m).movedim(3, 1)


def _pairs(x: Lookup | SparsePairs, q: Tensor, m: int) -> Tensor:
    return x.dense() if isinstance(x, Lookup) else x.dense(q.shape[0], q.shape[2], m)

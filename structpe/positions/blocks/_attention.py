"""What position models with their own attention share."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from structpe.dropout import dropout
from structpe.errors import UnsupportedTerm
from structpe.positions import Dims
from structpe.precision import exactly, wide
from structpe.terms import Terms

__all__ = ["allowed", "factored", "joined", "of_layers", "products", "softmax", "split", "without_heads"]

_HEEDED = frozenset({"mask", "pairs", "causal"})


def allowed(model: str, terms: Terms, x: Tensor, keys: int | None = None) -> Tensor:
    """(b or 1, h or 1, n, m) which pairs of the units x (b, n, d) attend; the terms may contain only masks.

    Args:
        model: name of the model, for errors.
        terms: of everything else that acts on attention.
        x: the units, which are the last n of the keys.
        keys: m; n by default.

    Raises:
        UnsupportedTerm: they do.
    """
    if lost := terms.used() - _HEEDED:
        raise UnsupportedTerm(
            f"position model {model!r} has its own attention, which does not support "
            f"{', '.join(sorted(lost))}; it goes with models that act at the input, or by {', '.join(sorted(_HEEDED))}"
        )
    b, n, _ = x.shape
    m = n if keys is None else keys
    result = torch.ones(1, 1, n, m, dtype=torch.bool, device=x.device)
    for mask in (*terms.mask, *(pairs.dense(b, n, m) for pairs in terms.pairs)):
        result = result & mask
    return result.tril(m - n) if terms.causal else result


@exactly
def products(q: Tensor, k: Tensor) -> Tensor:
    """(b, h, n, m) q.k of (b, h, n, d) and (b or 1, h or 1, m, d), in float32 at least: much may be added to them."""
    return wide(q) @ wide(k).mT


def without_heads(model: str, pairs: Tensor) -> Tensor:
    """(b or 1, n, n) what :func:`allowed` gives, for an attention without heads.

    Raises:
        UnsupportedTerm: there is a mask for each head.
    """
    if pairs.shape[1] > 1:
        raise UnsupportedTerm(
            f"position model {model!r} has no heads, so that a mask for each of {pairs.shape[1]} heads does not fit; "
            f"give one for all"
        )
    return pairs[:, 0]


def softmax(scores: Tensor, pairs: Tensor, dropped: float = 0.0, dim: int = -1) -> Tensor:
    """Weights of the pairs that attend, which sum to one along ``dim``; zeros in rows without such a pair.

    Then each is dropped with the probability ``dropped``, and the others are divided by the probability that they stay.
    """
    # The lowest finite number, not -inf: a row of only -inf would give NaN, in its gradient too.
    weights = scores.masked_fill(~pairs, torch.finfo(scores.dtype).min).softmax(dim)
    return dropout(weights.masked_fill(~pairs, 0.0), dropped)


def factored(scores: Tensor, factor: Tensor, v: Tensor, pairs: Tensor, dropped: float = 0.0) -> Tensor:
    """(b, n, d) heads side by side of sum_j factor_ij softmax_j(scores_ij) v_j: rows do not sum to one any more.

    Args:
        scores: (b, h, n, m).
        factor: (b or 1, h or 1, n, m).
        v: (b, h, m, d/h).
        pairs: (b or 1, h or 1, n, m) which attend.
        dropped: as of :func:`softmax`.
    """
    return joined((softmax(scores, pairs, dropped) * factor).to(v.dtype) @ v)


def split(x: Tensor, heads: int) -> Tensor:
    """(..., h, n, d/h) from (..., n, d)."""
    return x.view(*x.shape[:-1], heads, -1).transpose(-2, -3)


def joined(x: Tensor) -> Tensor:
    """(..., n, d) from (..., h, n, d/h): undoes :func:`split`."""
    return x.transpose(-2, -3).flatten(-2)


def of_layers(dims: Dims, out: int, bias: bool = True, std: float | None = None) -> nn.ModuleList:
    """A linear map from the width of the model for each layer, its bias zero at first.

    Its matrix is Glorot-uniform at first, or from N(0, std^2).
    """
    made = nn.ModuleList(nn.Linear(dims.width, out, bias=bias) for _ in range(dims.layers))
    start = nn.init.xavier_uniform_ if std is None else partial(nn.init.normal_, std=std)
    for parameter in made.parameters():
        start(parameter) if parameter.ndim > 1 else nn.init.zeros_(parameter)
    return made

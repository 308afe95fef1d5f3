"""Queries and keys as they were before a model rotated them, which position models meet.

Llama, Qwen2 and ModernBERT turn the i-th query and key by an angle of i: R_i q_i, R_j k_j. Their product depends on
j - i alone. That of a turned query and a vector of the pair would depend on i, the place in the row, padding included;
and so would what a map M makes of it, if M and R do not commute. So

    s_ij = scale/sqrt(d) [ (R_i M q_i).(R_j M k_j) + (M q_i).key_ij + query_ij.(M k_j) + product ] + ...
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from structpe.attention.gather import added, without_lists
from structpe.attention.reference import vectors
from structpe.errors import PositionError
from structpe.terms import Terms

__all__ = ["TURNED", "Turned", "Turning"]

TURNED = "structpe_turned"
"""The key of the arguments of an attention that says how its queries and keys are rotated."""
_PAIRS = frozenset({"key", "query", "product"})


class Turning:
    """A hook of an attention: hands on by which angles it rotates queries and keys, if it does."""

    def __call__(self, attending: Any, given: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        angles = named.get("position_embeddings")
        if not isinstance(angles, tuple):
            return given, named
        cache = named.get("past_key_values")
        number = getattr(attending, "layer_idx", 0)
        return given, {**named, TURNED: Turned(angles[0], angles[1], cache, number)}


class Turned:
    """How the queries and keys of one call are rotated.

    Args:
        cos, sin: (b or 1, n, d) of the angles of the new tokens; both halves of the channels have the same ones.
        cache: of keys; None for none.
        layer: number of the layer in the cache.
    """

    def __init__(self, cos: Tensor, sin: Tensor, cache: Any, layer: int) -> None:
        self.cos, self.sin, self.cache, self.layer = cos, sin, cache, layer

    def rewritten(self, q: Tensor, k: Tensor, terms: Terms) -> tuple[Tensor, Tensor, Terms]:
        """The same attention as rotated queries (b, h, n, d), keys (b, h, m, d) and terms that do not meet them.

        Raises:
            PositionError: terms change what is computed of the sum of both, rotate in other channels, or need the
                angles of keys in a cache that others filled.
        """
        used = terms.used()
        if not used & {*_PAIRS, "maps"}:
            return q, k, terms
        if used & _PAIRS and used & {"act", "gate"}:
            raise PositionError(
                "a position model with vectors of pairs and a function or gate of the whole score cannot enter a model "
                "that rotates queries and keys itself; choose one with biases"
            )
        of_queries = self.cos, self.sin
        of_keys = self._of_keys(k.shape[2]) if used & {"maps", "query", "product"} else None
        plain_q, plain_k = _turned(q, *of_queries, back=True), k if of_keys is None else _turned(k, *of_keys, back=True)
        for change in terms.maps:
            plain_q, plain_k = change(plain_q, plain_k)
        if terms.maps and of_keys is not None:
            q, k = _turned(plain_q, *of_queries), _turned(plain_k, *of_keys)
        return (
            q,
            k,
            replace(terms, maps=(), key=(), query=(), product=(), bias=(*terms.bias, *_met(plain_q, plain_k, terms))),
        )

    def _of_keys(self, m: int) -> tuple[Tensor, Tensor]:
        """The angles (b or 1, m, d) of all keys; those of earlier ones are kept beside these in the cache."""
        if self.cache is None:
            return self.cos, self.sin
        n, kept = self.cos.shape[1], self.cache.__dict__.setdefault(f"_{TURNED}", {})
        known = kept.get(self.layer)
        if n < m and (known is None or known[0].shape[1] < m - n):
            raise PositionError(
                "the keys in the cache were computed before the position model entered; begin with an empty cache"
            )
        cos, sin = self.cos, self.sin
        if n < m:
            times = max(1, len(cos) // len(known[0]))
            before = [x[:, : m - n].repeat_interleave(times, dim=0)[: len(cos)] for x in known]
            cos, sin = torch.cat([before[0], cos], dim=1), torch.cat([before[1], sin], dim=1)
        kept[self.layer] = cos, sin
        return cos, sin


def _turned(x: Tensor, cos: Tensor, sin: Tensor, back: bool = False) -> Tensor:
    """(b, h, n, d) rotated, or as it was before."""
    if x.shape[-1] != cos.shape[-1]:
        raise PositionError(
            f"the model rotates {cos.shape[-1]} of {x.shape[-1]} channels, so that a position model cannot meet "
            f"queries and keys as they were before; choose one with biases"
        )
    first, last = x.chunk(2, dim=-1)
    other = torch.cat([-last, first], dim=-1)
    c, s = cos[:, None].to(x.dtype), sin[:, None].to(x.dtype)
    return (x * c - other * s) / (c * c + s * s) if back else x * c + other * s


def _met(q: Tensor, k: Tensor, terms: Terms) -> list[Tensor]:
    """(b, h, n, m) what vectors of pairs add to the scores."""
    b, h, n, d = q.shape
    scale = terms.scale / math.sqrt(d)
    pairs = without_lists(Terms(key=terms.key, query=terms.query), b, n, k.shape[2])
    parts = [each.expand(b, h, n, k.shape[2]) for each in added(q, k, pairs, scale)]
    for x in terms.product:
        parts.append((q[:, :, :, None] * k[:, :, None] * vectors(x, q, k.shape[2])).sum(-1) * scale)
    return parts

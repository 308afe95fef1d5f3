"""Scores corrected by a network over the scores and biases of all heads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions import Dims, Positions, Site, build
from structpe.positions.blocks._attention import softmax
from structpe.positions.blocks._cached import CachedBlock
from structpe.precision import exactly
from structpe.terms import Lookup, SparsePairs

__all__ = ["KERPLE", "Bias", "ScoreModel"]

Bias: TypeAlias = str | dict[str, Any]
"""Plain data of a position model that gives biases."""

KERPLE: Bias = {"name": "kerple-log", "sharing": "none"}


class ScoreModel(CachedBlock):
    """s + b + f(s, b) for the scaled scores s and the biases b of a position model; a variant defines f.

    Args:
        dims: sizes of the Transformer.
        bias: the position model that gives b.
        encodings: further ones.
        sizes: see :class:`PositionModel`.
    """

    def __init__(self, dims: Dims, bias: Bias, encodings: Sequence[Encoding] = (), **sizes: int) -> None:
        inner = build(bias, dims)
        every = dict.fromkeys((*encodings, *inner.encodings))
        super().__init__(dims, list(every), bias=True, inner=inner.claimed_params(), **sizes)
        if inner.sites != {"terms"} or inner.own_attention:
            raise PositionError(
                f"position model {self.name!r} corrects the bias of another; {inner.name!r} gives none alone"
            )
        self.inner = inner

    def prepare(self, positions: Positions) -> Any:
        return self.inner.prepare(positions)

    def mixed(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, prepared: Any, site: Site) -> Tensor:
        score = self.scores(q, k)
        bias = self.biases(prepared, site, score)
        both = torch.cat([score, bias], dim=1)
        changed = score + bias + exactly(self.correction)(both, seen, prepared, site)
        return softmax(changed, seen, site.dropout).to(v.dtype) @ v

    def biases(self, prepared: Any, site: Site, score: Tensor) -> Tensor:
        """(b, h, n, m) the biases of a layer."""
        terms = self.inner.terms(prepared, replace(site, cache=None))
        if lost := terms.used() - {"bias"}:
            raise PositionError(
                f"position model {self.name!r} corrects the bias of another; {self.inner.name!r} gives "
                f"{', '.join(sorted(lost))} too"
            )
        whole = torch.zeros_like(score)
        for each in terms.bias:
            whole = whole + _dense(each, score)
        return whole

    @abstractmethod
    def correction(self, both: Tensor, seen: Tensor, prepared: Any, site: Site) -> Tensor:
        """(b, h, n, m) f of the scores and biases (b, 2h, n, m), which are of float32 at least."""


def _dense(bias: Lookup | SparsePairs | Tensor, like: Tensor) -> Tensor:
    if isinstance(bias, Tensor):
        return bias
    b, _, n, m = like.shape
    whole = bias.dense() if isinstance(bias, Lookup) else bias.dense(b, n, m)
    return whole.movedim(3, 1)

"""Multi-head self-attention within each structure, and cross-attention from a decoder to an encoder's output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from structpe.attention import attend, attend_ragged
from structpe.errors import PositionError
from structpe.nn.context import Context
from structpe.positions import Dims, Site, Sources
from structpe.terms import Terms

__all__ = ["Attention", "OwnAttention"]


class Attention(nn.Module):
    """softmax(QK^T / sqrt(d_h) ...) V with learned projections; the rest is in the terms.

    Args:
        dims: sizes of the Transformer.
        kernel: name of the attention kernel, or ``auto``.
        dropout: probability of dropping an attention weight in training.
        feature_map: replaces the exponential of a score, which makes attention linear; None for the exponential.
        zero_init: whether the weight of the output's projection begins at zero.
    """

    def __init__(
        self,
        dims: Dims,
        kernel: str = "auto",
        dropout: float = 0.0,
        feature_map: Callable[[Tensor], Tensor] | None = None,
        zero_init: bool = False,
    ) -> None:
        super().__init__()
        self.heads, self.kernel, self.dropout, self.feature_map = dims.heads, kernel, dropout, feature_map
        self.query = nn.Linear(dims.width, dims.width)
        self.key_value = nn.Linear(dims.width, 2 * dims.width)
        self.out = nn.Linear(dims.width, dims.width)
        for projection in (self.query, self.key_value, self.out):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)
        if zero_init:  # after the draw: a seed then gives all other weights the same values
            nn.init.zeros_(self.out.weight)

    def forward(
        self, x: Float[Tensor, "N d"], context: Context, site: Site, earlier: Float[Tensor, "b c d"] | None = None
    ) -> Float[Tensor, "N d"]:
        """Let each unit attend to the units of its structure, and to earlier units.

        Args:
            x: the units.
            context: of the pass; its cache, if any, holds keys and values of earlier units.
            site: the number of the layer, and whether it is trained.
            earlier: hidden vectors of earlier units, in one bucket; None if there are none.
        """
        terms = context.terms(site)
        if self.feature_map is not None:
            terms = [each + Terms(feature_map=self.feature_map) for each in terms]
        if "sources" in context.sites or context.past.caches or earlier is not None:
            rows = enumerate(context.layout.padded(x))
            mixed = context.layout.flat([self._bucket(part, i, terms[i], context, site, earlier) for i, part in rows])
        else:
            weight = torch.cat([self.query.weight, self.key_value.weight])
            projected = functional.linear(x, weight, torch.cat([self.query.bias, self.key_value.bias]))
            q, k, v = projected.view(len(x), 3, self.heads, -1).unbind(1)
            mixed = attend_ragged(q, k, v, context.layout, terms, self.kernel, self._dropped()).flatten(1)
        out: Tensor = self.out(mixed)
        return out

    def project(self, key: Float[Tensor, "b m d"], value: Float[Tensor, "b m d"]) -> tuple[Tensor, Tensor]:
        """Project keys and values (b, h, m, d_h), in one product if both are computed from the same vectors."""
        if key is value:
            keys, values = self.key_value(key).chunk(2, dim=-1)
        else:
            of_keys, of_values = self.key_value.weight.chunk(2)
            for_keys, for_values = self.key_value.bias.chunk(2)
            keys = functional.linear(key, of_keys, for_keys)
            values = functional.linear(value, of_values, for_values)
        return self._split(keys), self._split(values)

    def read(
        self, x: Float[Tensor, "b n d"], keys: Tensor, values: Tensor, terms: Terms | None
    ) -> Float[Tensor, "b n d"]:
        """Attend from the units ``x`` to projected ``keys`` and ``values``."""
        out: Tensor = self.out(self._mixed(x, keys, values, terms))
        return out

    def _bucket(
        self, x: Tensor, number: int, terms: Terms, context: Context, site: Site, earlier: Tensor | None
    ) -> Tensor:
        """One padded bucket (b, n, d), whose keys may be of more units than its queries."""
        keys_of = x if earlier is None else torch.cat([earlier, x], dim=1)
        sources = context.position.sources(Sources(x, keys_of, keys_of), context.prepared[number], site)
        keys, values = self.project(sources.key, sources.value)
        if context.past.caches:
            keys, values = context.past.caches[site.layer].append(keys, values)
        if mask := context.layout.mask(number):
            terms = terms + Terms(mask=mask)
        return self._mixed(sources.query, keys, values, terms)

    def _mixed(self, x: Tensor, keys: Tensor, values: Tensor, terms: Terms | None) -> Tensor:
        mixed = attend(self._split(self.query(x)), keys, values, terms, self.kernel, self._dropped())
        return mixed.transpose(1, 2).flatten(2)

    def _dropped(self) -> float:
        return self.dropout if self.training else 0.0

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)


class OwnAttention(nn.Module):
    """Attention that the position model computes itself, bucket by bucket. This module has no parameters.

    Args:
        dropout: probability of dropping an attention weight in training.
    """

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout

    def forward(
        self, x: Float[Tensor, "N d"], context: Context, site: Site, earlier: Tensor | None = None
    ) -> Float[Tensor, "N d"]:
        """Let each unit attend to the units of its structure; the model also prepares the input of its next layer."""
        if earlier is not None:
            wrong = "a position model with its own attention cannot read earlier segments"
            raise PositionError(f"{wrong}; choose another position model")
        if context.past.caches:
            site = replace(site, cache=context.past.caches[site.layer])
        terms, parts = context.terms(site), []
        site = replace(site, dropout=self.dropout if self.training else 0.0)
        for i, part in enumerate(context.layout.padded(x)):
            masked = terms[i] + Terms(mask=context.layout.mask(i))
            attended, context.prepared[i] = context.position.attend(part, context.prepared[i], site, masked)
            parts.append(attended)
        return context.layout.flat(parts)

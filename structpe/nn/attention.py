"""Multi-head attention around a kernel, with a cache of keys and values for decoding."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from structpe.attention import attend
from structpe.positions.base import Dims
from structpe.terms import Terms

__all__ = ["Attention", "Memory"]


@dataclass
class Memory:
    """Keys and values seen so far by one attention, (b, h, m, d_h) each; grows as a decoder goes on.

    They are kept as projected, before ``Terms.maps``: a map may depend on how many units there are.
    """

    keys: Tensor | None = None
    values: Tensor | None = None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the newest and return all."""
        self.keys = keys if self.keys is None else torch.cat([self.keys, keys], dim=2)
        self.values = values if self.values is None else torch.cat([self.values, values], dim=2)
        return self.keys, self.values

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order: what a beam search does after each step."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[rows], self.values[rows]


class Attention(nn.Module):
    """softmax(QK^T / sqrt(d_h) ...) V with learned projections; whatever else happens is in the terms.

    Args:
        dims: sizes of the Transformer.
        kernel: name of the attention kernel, or ``auto``.
        dropout: probability with which an attention weight is dropped in training.
    """

    def __init__(self, dims: Dims, kernel: str = "auto", dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.kernel, self.dropout = dims.heads, kernel, dropout
        self.query = nn.Linear(dims.width, dims.width)
        self.key_value = nn.Linear(dims.width, 2 * dims.width)
        self.out = nn.Linear(dims.width, dims.width)
        for projection in (self.query, self.key_value, self.out):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def project(self, key: Float[Tensor, "b m d"], value: Float[Tensor, "b m d"]) -> tuple[Tensor, Tensor]:
        """Keys and values (b, h, m, d_h) of the units attended to; one product where both are made of the same."""
        if key is value:
            keys, values = self.key_value(key).chunk(2, dim=-1)
        else:
            of_keys, of_values = self.key_value.weight.chunk(2)
            for_keys, for_values = self.key_value.bias.chunk(2)
            keys = functional.linear(key, of_keys, for_keys)
            values = functional.linear(value, of_values, for_values)
        return self._split(keys), self._split(values)

    def projected(self, x: Float[Tensor, "N d"]) -> Float[Tensor, "N e"]:
        """Queries, keys and values (N, 3 d) of units that attend to one another; one product."""
        weight = torch.cat([self.query.weight, self.key_value.weight])
        return functional.linear(x, weight, torch.cat([self.query.bias, self.key_value.bias]))

    def forward(self, x: Float[Tensor, "b n d"], keys: Tensor, values: Tensor, terms: Terms) -> Float[Tensor, "b n d"]:
        """Attend from the units ``x`` to projected ``keys`` and ``values``."""
        dropout = self.dropout if self.training else 0.0
        out = attend(self._split(self.query(x)), keys, values, terms, self.kernel, dropout)
        mixed: Tensor = self.out(out.transpose(1, 2).flatten(2))
        return mixed

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)

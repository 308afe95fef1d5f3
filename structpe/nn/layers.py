"""The layers of encoder and decoder: attention, message passing beside it, feed-forward; normalised first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from structpe.data.edges import Edges
from structpe.errors import PositionError
from structpe.nn.attention import Attention, Memory
from structpe.nn.message import MessagePassing
from structpe.positions.base import Dims, PositionModel, Site, Sources
from structpe.terms import Terms

__all__ = ["Asked", "DecoderLayer", "EncoderLayer", "LayerConfig"]


@dataclass(frozen=True)
class LayerConfig:
    """What all layers of a stack have in common.

    Args:
        dims: sizes.
        feedforward: hidden width of the feed-forward part.
        dropout: probability, on attention weights and on what each part adds.
        kernel: attention kernel, or ``auto``.
        convolution: name of the message passing beside attention; None for none. Encoders only.
        edge_types: number of edge labels for message passing.
    """

    dims: Dims
    feedforward: int
    dropout: float = 0.1
    kernel: str = "auto"
    convolution: str | None = None
    edge_types: int = 1


@dataclass(frozen=True)
class Asked:
    """A position model at one layer: what a layer asks for its changes.

    Attributes:
        position: the model.
        prepared: what it made of the batch.
        site: which layer this is.
        terms: what else acts on attention, the mask of padding say.
    """

    position: PositionModel
    prepared: Any
    site: Site
    terms: Terms

    def sources(self, normed: Tensor, context: Tensor) -> Sources:
        """What queries, keys and values are made of."""
        return self.position.sources(Sources(normed, context, context), self.prepared, self.site)

    def all_terms(self) -> Terms:
        """Everything that acts on attention."""
        return self.position.terms(self.prepared, self.site) + self.terms


class EncoderLayer(nn.Module):
    """x + attention(n) + messages(n) with n = norm(x), then x + feedforward(norm(x)).

    Attention sees all units, messages follow the edges; their sum is the hybrid layer of GPS (Rampasek et al. 2022).
    Keys and values may also be made of a memory, the hidden vectors of an earlier segment (Dai et al. 2019).

    Args:
        config: what the layers have in common.
        own_attention: whether the position model brings its own; the layer has none then.
    """

    def __init__(self, config: LayerConfig, own_attention: bool = False) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(config.dims.width) for _ in range(2))
        self.attention = None if own_attention else Attention(config.dims, config.kernel, config.dropout)
        self.messages = None
        if config.convolution is not None:
            self.messages = MessagePassing(config.convolution, config.dims.width, config.edge_types)
        self.feedforward = _feedforward(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, asked: Asked, edges: Edges | None, memory: Tensor | None = None) -> tuple[Tensor, Any]:
        """(b, n, d) to (b, n, d), and what the next layer shall be handed as ``prepared``.

        Args:
            x: hidden vectors.
            asked: the position model at this layer.
            edges: for message passing.
            memory: (b, c, d) hidden vectors of the units before; None where there are none.
        """
        normed = self.norms[0](x)
        attended, prepared = self._attend(normed, asked, memory)
        x = x + self.dropout(attended)
        if self.messages is not None and edges is not None:
            x = x + self.dropout(self.messages(normed, edges))
        return x + self.dropout(self.feedforward(self.norms[1](x))), prepared

    def _attend(self, normed: Tensor, asked: Asked, memory: Tensor | None) -> tuple[Tensor, Any]:
        terms = asked.all_terms()
        if self.attention is None:
            if memory is not None:
                raise PositionError("a position model with an attention of its own has no memory of earlier segments")
            return asked.position.attend(normed, asked.prepared, asked.site, terms)
        context = normed if memory is None else torch.cat([self.norms[0](memory), normed], dim=1)
        sources = asked.sources(normed, context)
        keys, values = self.attention.project(sources.key, sources.value)
        return self.attention(sources.query, keys, values, terms), asked.prepared


class DecoderLayer(nn.Module):
    """Self-attention over what was written, attention to the encoder, feed-forward; each added to x."""

    def __init__(self, config: LayerConfig) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(config.dims.width) for _ in range(3))
        self.attention = Attention(config.dims, config.kernel, config.dropout)
        self.cross = Attention(config.dims, "auto", config.dropout)
        self.feedforward = _feedforward(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, y: Tensor, asked: Asked, written: Memory, source: tuple[Tensor, Tensor], read: Terms) -> Tensor:
        """(b, n, d) to (b, n, d).

        Args:
            y: the newest units.
            asked: the position model at this layer.
            written: keys and values of the units before; the new ones are appended.
            source: keys and values of the encoder's output.
            read: changes of the attention to the encoder, at least the mask of its padding.
        """
        normed = self.norms[0](y)
        own = asked.sources(normed, normed)
        seen = written.append(*self.attention.project(own.key, own.value))
        y = y + self.dropout(self.attention(own.query, *seen, asked.all_terms()))
        y = y + self.dropout(self.cross(self.norms[1](y), *source, read))
        out: Tensor = y + self.dropout(self.feedforward(self.norms[2](y)))
        return out


def _feedforward(config: LayerConfig) -> nn.Sequential:
    width, hidden = config.dims.width, config.feedforward
    return nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(config.dropout), nn.Linear(hidden, width))

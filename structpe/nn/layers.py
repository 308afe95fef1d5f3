"""The layers of encoder and decoder: attention, message passing beside it, feed-forward; normalised first."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from structpe.data.edges import Edges
from structpe.nn.attention import Attention, Memory
from structpe.nn.message import Convolution, MessagePassing
from structpe.positions.base import Dims
from structpe.terms import Terms

__all__ = ["DecoderLayer", "EncoderLayer", "LayerConfig"]


@dataclass(frozen=True)
class LayerConfig:
    """What all layers of a stack have in common.

    Args:
        dims: sizes.
        feedforward: hidden width of the feed-forward part.
        dropout: probability, on attention weights and on what each part adds.
        kernel: attention kernel, or ``auto``.
        convolution: message passing beside attention; None for none. Encoders only.
        edge_types: number of edge labels for message passing.
    """

    dims: Dims
    feedforward: int
    dropout: float = 0.1
    kernel: str = "auto"
    convolution: Convolution | None = None
    edge_types: int = 1


class EncoderLayer(nn.Module):
    """x + attention(n) + messages(n) with n = norm(x), then x + feedforward(norm(x)).

    Attention sees all units, messages follow the edges; their sum is the hybrid layer of GPS (Rampasek et al. 2022).
    """

    def __init__(self, config: LayerConfig) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(config.dims.width) for _ in range(2))
        self.attention = Attention(config.dims, config.kernel, config.dropout)
        self.messages = None
        if config.convolution is not None:
            self.messages = MessagePassing(config.convolution, config.dims.width, config.edge_types)
        self.feedforward = _feedforward(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, terms: Terms, edges: Edges | None) -> Tensor:
        """(b, n, d) to (b, n, d)."""
        normed = self.norms[0](x)
        x = x + self.dropout(self.attention(normed, *self.attention.project(normed), terms))
        if self.messages is not None and edges is not None:
            x = x + self.dropout(self.messages(normed, edges))
        out: Tensor = x + self.dropout(self.feedforward(self.norms[1](x)))
        return out


class DecoderLayer(nn.Module):
    """Self-attention over what was written, attention to the encoder, feed-forward; each added to x."""

    def __init__(self, config: LayerConfig) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(config.dims.width) for _ in range(3))
        self.attention = Attention(config.dims, config.kernel, config.dropout)
        self.cross = Attention(config.dims, "auto", config.dropout)
        self.feedforward = _feedforward(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, y: Tensor, terms: Terms, written: Memory, source: tuple[Tensor, Tensor], read: Terms) -> Tensor:
        """(b, n, d) to (b, n, d).

        Args:
            y: the newest units.
            terms: changes of self-attention.
            written: keys and values of the units before; the new ones are appended.
            source: keys and values of the encoder's output.
            read: changes of the attention to the encoder, at least the mask of its padding.
        """
        normed = self.norms[0](y)
        y = y + self.dropout(self.attention(normed, *written.append(*self.attention.project(normed)), terms))
        y = y + self.dropout(self.cross(self.norms[1](y), *source, read))
        out: Tensor = y + self.dropout(self.feedforward(self.norms[2](y)))
        return out


def _feedforward(config: LayerConfig) -> nn.Sequential:
    width, hidden = config.dims.width, config.feedforward
    return nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(config.dropout), nn.Linear(hidden, width))

"""A stack of decoder layers over the path graph of what it has written, with a cache."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from structpe.data.encode import encode
from structpe.errors import PositionError
from structpe.nn.attention import Attention, Memory
from structpe.nn.copying import Source
from structpe.nn.layers import Asked, DecoderLayer, LayerConfig
from structpe.positions.base import PositionModel, Positions, Site, Sum
from structpe.structure import path
from structpe.terms import Terms

__all__ = ["Decoder", "State"]


@dataclass
class State:
    """What a decoder remembers between steps.

    Attributes:
        source: per layer, keys and values of the encoder's output.
        present: (b, m) which of the encoder's units are real.
        written: per layer, keys and values of the units written so far.
        length: how many units were written.
        copied: what can be copied, for a model that copies.
    """

    source: list[tuple[Tensor, Tensor]]
    present: Tensor
    written: list[Memory] = field(default_factory=list)
    length: int = 0
    copied: Source | None = None

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order."""
        self.source = [(keys[rows], values[rows]) for keys, values in self.source]
        self.present = self.present[rows]
        for memory in self.written:
            memory.select(rows)
        if self.copied is not None:
            self.copied = self.copied.select(rows)


class Decoder(nn.Module):
    """Units written so far (b, n, d) to hidden vectors (b, n, d); each sees itself and those before it.

    What it writes is a path graph, so any position model whose encodings are causal there can serve.

    Args:
        config: what the layers have in common.
        position: the position model, or a sum of them.

    Raises:
        PositionError: the position model is not causal: it would need units that are not yet written.
    """

    def __init__(self, config: LayerConfig, position: PositionModel) -> None:
        super().__init__()
        if not position.causal:
            raise PositionError(
                f"a decoder cannot use {_not_causal(position)}: it depends on units that are not yet written; "
                f"choose a position model whose encodings a sequence has from its start on, 'sinusoidal' or 't5' say"
            )
        self.position = position
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.dims.layers))
        self.norm = nn.LayerNorm(config.dims.width)
        self.dropout = nn.Dropout(config.dropout)
        self._positions: tuple[int, torch.device | None, Positions] = (0, None, Positions({}))

    def start(self, memory: Float[Tensor, "b m d"], present: Bool[Tensor, "b m"]) -> State:
        """Read the encoder's output, once per batch."""
        crosses = [layer.cross for layer in self.layers]
        source = [cross.project(memory, memory) for cross in crosses if isinstance(cross, Attention)]
        return State(source, present, [Memory() for _ in self.layers])

    def forward(self, y: Float[Tensor, "b n d"], state: State) -> Float[Tensor, "b n d"]:
        """Go on by n units: all of a text in training, one in a decoding step. ``state`` is brought up to date."""
        first, last = state.length, state.length + y.shape[1]
        prepared = self.position.prepare(self._path(last, y.device).step(first, last))
        causal = Terms(mask=(_before(first, last, y.device),))
        read = Terms(mask=(state.present[:, None, None, :],))
        y = self.dropout(self.position.inputs(y, prepared))
        for number, layer in enumerate(self.layers):
            site = Site(number, self.training)
            y = self.position.layer(y, prepared, site)
            asked = Asked(self.position, prepared, site, causal)
            y = layer(y, asked, state.written[number], state.source[number], read)
        state.length = last
        out: Tensor = self.norm(y)
        return out

    def _path(self, length: int, device: torch.device) -> Positions:
        """Positions of a path of at least this length; made for the next power of two and kept for the device."""
        known, where, positions = self._positions
        if known < length or where != device:
            known = 1 << max(length - 1, 31).bit_length()
            positions = encode([path([""] * known)], self.position.encodings).to(device)
            self._positions = (known, device, positions)
        return positions


def _not_causal(position: PositionModel) -> str:
    """The encodings that need the future; where none does, the models themselves, which ask keys about queries."""
    encodings = [repr(e.name) for e in position.encodings if not e.causal]
    models = position.models if isinstance(position, Sum) else [position]
    named = [repr(m.name) for m in models if isinstance(m, PositionModel) and not m.causal]
    return f"encoding {', '.join(encodings)}" if encodings else f"position model {', '.join(named)}"


def _before(first: int, last: int, device: torch.device) -> Tensor:
    """(1, 1, n, m) bool: the queries first..last-1 see the keys up to themselves."""
    places = torch.arange(last, device=device)
    return (places[None, :] <= places[first:, None])[None, None]

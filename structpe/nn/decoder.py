"""A decoder: a stack over the path graph of the units written so far, with or without cross-attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from structpe.attention import Layout
from structpe.data.encode import encode
from structpe.errors import PositionError
from structpe.nn.attention import Attention
from structpe.nn.context import Context, KVCache, Past
from structpe.nn.copying import Source
from structpe.nn.layer import StackConfig
from structpe.nn.stack import Stack
from structpe.positions import PositionModel, Positions, Sum
from structpe.structure import path
from structpe.terms import Terms

__all__ = ["Decoder", "State", "check_causal"]


@dataclass
class State:
    """The state of a decoder between steps.

    Attributes:
        caches: per layer, keys and values of the units written so far.
        source: per layer, keys and values of the encoder's output; empty without an encoder.
        present: (b, m) which units of the encoder are not padding; (b, 0) without an encoder.
        length: number of units written.
        copied: the source units that can be copied, for a model that copies.
    """

    caches: list[KVCache]
    source: list[tuple[Tensor, Tensor]]
    present: Tensor
    length: int = 0
    copied: Source | None = None

    def select(self, rows: Tensor) -> None:
        """Reorder the batch to these rows."""
        self.source = [(keys[rows], values[rows]) for keys, values in self.source]
        self.present = self.present[rows]
        for cache in self.caches:
            cache.select(rows)
        if self.copied is not None:
            self.copied = self.copied.select(rows)


class Decoder(nn.Module):
    """Units written so far (b, n, d) to hidden vectors (b, n, d); each attends to itself and earlier units.

    The text is a path graph, so any position model with causal encodings can decode with a KV cache.

    Args:
        config: sizes and options.
        position: the position model, or a sum of them.
        reads: whether layers have cross-attention to an encoder.
    """

    def __init__(self, config: StackConfig, position: PositionModel, reads: bool = True) -> None:
        super().__init__()
        self.stack = Stack(config, position, reads=reads)
        self._positions: tuple[int, torch.device | None, Positions] = (0, None, Positions({}))

    @property
    def position(self) -> PositionModel:
        """The position model."""
        return self.stack.position

    def start(self, hidden: Float[Tensor, "b m d"], present: Bool[Tensor, "b m"]) -> State:
        """Create the state from the encoder's output, once per batch; (b, 0, d) and (b, 0) without an encoder.

        Raises:
            PositionError: the position model is not causal.
        """
        check_causal(self.position)
        crosses = [layer.cross for layer in self.stack.layers]
        source = [cross.project(hidden, hidden) for cross in crosses if isinstance(cross, Attention)]
        return State([KVCache() for _ in crosses], source, present)

    def forward(self, y: Float[Tensor, "b n d"], state: State) -> Float[Tensor, "b n d"]:
        """Process the next n units: a whole text in training, one unit in a decoding step. Updates ``state``."""
        first, last = state.length, state.length + y.shape[1]
        positions = self._path(last, y.device).step(first, last)
        context = Context(
            self.position,
            Layout.full(*y.shape[:2]),
            [positions],
            extra=Terms(mask=(_causal(first, last, y.device),)),
            past=Past((), state.caches, state.source, Terms(mask=(state.present[:, None, None, :],))),
        )
        state.length = last
        return self.stack.run(y.flatten(0, 1), context)[0].view_as(y)

    def segment(
        self, x: Float[Tensor, "b n d"], positions: Positions, memory: Sequence[Float[Tensor, "b c d"]] = ()
    ) -> tuple[Float[Tensor, "b n d"], list[Float[Tensor, "b n d"]]]:
        """Hidden vectors of a segment that also attends to the previous one (Dai et al. 2019, section 3.2).

        Args:
            x: embedded units; padding, if any, is at the end.
            positions: of the c + n units of both segments; only the last n are queries (:meth:`Positions.step`).
            memory: from the call for the previous segment; empty for the first.

        Returns:
            The hidden vectors, and the memory for the next segment: the input of each layer, without gradient.
        """
        layout = Layout.full(*x.shape[:2])
        context = Context(self.position, layout, [positions], extra=Terms(causal=True), past=Past(memory))
        hidden, given = self.stack.run(x.flatten(0, 1), context)
        return hidden.view_as(x), [each.view_as(x) for each in given]

    def _path(self, length: int, device: torch.device) -> Positions:
        """Positions of a path of at least this length, cached for the next power of two and the device."""
        known, where, positions = self._positions
        if known < length or where != device:
            known = 1 << max(length - 1, 31).bit_length()
            positions = encode([path([""] * known)], self.position.encodings).to(device)
            self._positions = (known, device, positions)
        return positions


def check_causal(position: PositionModel) -> None:
    """Check that a decoder with a cache can use a position model.

    Raises:
        PositionError: it is not causal.
    """
    if not position.causal:
        raise PositionError(
            f"a decoder cannot use {_not_causal(position)}: it depends on units that are not yet written; "
            f"choose a causal position model, for example 'sinusoidal' or 't5'"
        )


def _not_causal(position: PositionModel) -> str:
    """The encodings that are not causal; if all are, the position models that are not."""
    encodings = [repr(e.name) for e in position.encodings if not e.causal]
    models = position if isinstance(position, Sum) else [position]
    named = [repr(model.name) for model in models if not model.causal]
    return f"encoding {', '.join(encodings)}" if encodings else f"position model {', '.join(named)}"


def _causal(first: int, last: int, device: torch.device) -> Tensor:
    """(1, 1, n, m) bool: the queries first..last-1 see the keys up to themselves."""
    places = torch.arange(last, device=device)
    return (places[None, :] <= places[first:, None])[None, None]

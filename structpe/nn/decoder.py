"""A decoder: a stack over the path graph of the units written so far, with or without cross-attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from structpe.attention import Layout
from structpe.errors import PositionError
from structpe.nn.copying import CopySource
from structpe.nn.layer import Attention, Context, KVCache, Past, StackConfig, changed
from structpe.nn.stack import Stack
from structpe.nn.steps import Steps
from structpe.positions import PositionModel, Positions, Sum
from structpe.positions.batch import encode
from structpe.positions.build import Config
from structpe.structure import path
from structpe.terms import Terms

__all__ = ["Decoder", "DecoderState", "check_causal"]


@dataclass
class DecoderState:
    """The state of a decoder between steps, for b texts.

    Texts of one source come one after another; they share the keys and values of the source.

    Attributes:
        caches: per layer, keys and values of the units written so far.
        source: per layer, keys and values of the encoder's output; empty without an encoder.
        present: (s, m) which units of each source are not padding; (s, 0) without an encoder.
        length: number of units written.
        copied: the source units that can be copied, for a model that copies.
        texts: number of texts of each source, b / s.
        steps: what all steps share, such as rearranged weights.
    """

    caches: list[KVCache]
    source: list[tuple[Tensor, Tensor]]
    present: Tensor
    length: int = 0
    copied: CopySource | None = None
    texts: int = 1
    steps: Steps = field(init=False)

    def __post_init__(self) -> None:
        self.steps = Steps()  # not a default_factory, which torch.compile cannot trace
        # Reading a value would synchronise with a GPU, and break a compiled graph.
        readable = self.present.device.type == "cpu" and not torch.compiler.is_compiling()
        self._whole = readable and bool(self.present.all())

    def reading(self) -> Terms:
        """The terms of attention to the encoder's output: the mask of its padding, if there is any."""
        return Terms() if self._whole else Terms(mask=(self.present[:, None, None, :],))

    def repeat(self, texts: int) -> None:
        """Replace each text by several copies, one after another."""
        every = torch.arange(len(self.present) * self.texts, device=self.present.device).repeat_interleave(texts)
        self.texts *= texts
        self.source = [(keys.contiguous(), values.contiguous()) for keys, values in self.source]
        for cache in self.caches:
            cache.select(every)

    def select(self, sources: Int[Tensor, " s"]) -> None:
        """Keep only the texts of these sources, in this order."""
        self.source = [(keys.index_select(0, sources), values.index_select(0, sources)) for keys, values in self.source]
        self.present = self.present.index_select(0, sources)
        every = (sources[:, None] * self.texts + torch.arange(self.texts, device=sources.device)).flatten()
        for cache in self.caches:
            cache.select(every)
        if self.copied is not None:
            self.copied = self.copied.select(sources)

    def go_on(self, rows: Int[Tensor, " b"], written: Int[Tensor, "b n"]) -> None:
        """Let each text continue another text of the same source.

        Only the differences are copied: of texts that continue another one, the units after their common beginning.

        Args:
            rows: the text that each continues.
            written: the units that were read of each text.
        """
        here = changed(rows)
        if len(here):
            by = rows[here]
            differ = (written[here] != written[by]).any(0)
            first = int(differ.long().argmax()) if differ.any() else self.length
            for cache in self.caches:
                cache.replace(here, by, first)


class Decoder(nn.Module):
    """Units written so far (b, n, d) to hidden vectors (b, n, d); each attends to itself and earlier units.

    The text is a path graph, so any position model with causal encodings can decode with a KV cache.

    Args:
        config: sizes and options.
        position: the position model, or a sum of them.
        reads: whether layers have cross-attention to an encoder.
    """

    def __init__(self, config: StackConfig, position: PositionModel | Config, reads: bool = True) -> None:
        super().__init__()
        self.stack = Stack(config, position, reads=reads)
        self._positions: tuple[int, tuple[torch.device | None, int], Positions] = (0, (None, 0), Positions({}))

    @property
    def position(self) -> PositionModel:
        """The position model."""
        return self.stack.position

    def start(self, hidden: Float[Tensor, "b m d"], present: Bool[Tensor, "b m"]) -> DecoderState:
        """Create the state from the encoder's output, once per batch; (b, 0, d) and (b, 0) without an encoder.

        Raises:
            PositionError: the position model is not causal.
        """
        check_causal(self.position)
        crosses = [layer.cross for layer in self.stack.layers]
        source = [cross.project(hidden, hidden) for cross in crosses if isinstance(cross, Attention)]
        return DecoderState([KVCache() for _ in crosses], source, present)

    def forward(
        self, y: Float[Tensor, "b n d"], state: DecoderState, positions: Positions | None = None
    ) -> Float[Tensor, "b n d"]:
        """Process the next n units: a whole text in training, one unit in a decoding step. Updates ``state``.

        Args:
            y: embedded units.
            state: of the units before them.
            positions: of all units so far, with the next n as queries; by default those of a path. For a structure
                that grows node by node see :func:`structpe.data.growing.newest`.
        """
        first, last = state.length, state.length + y.shape[1]
        whole = self._path(last, y.device, len(y)) if positions is None else positions
        alone = y.shape[1] == 1 and not (torch.is_grad_enabled() or self.training or torch.compiler.is_compiling())
        context = Context(
            self.position,
            Layout.full(*y.shape[:2]),
            [whole.step(first, last) if positions is None else positions],
            extra=None if y.shape[1] == 1 else Terms(causal=True),
            past=Past((), state.caches, state.source, state.reading()),
            given=state.steps.terms(self.position, whole, first) if alone and positions is None else None,
        )
        state.length = last
        stack = state.steps.stack(self.stack) if alone else self.stack
        return stack.run(y.flatten(0, 1), context)[0].view_as(y)

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

    def _path(self, length: int, device: torch.device, texts: int) -> Positions:
        """Positions of a path of at least this length, cached for the next power of two, the device, and the texts.

        All texts share those of one path, unless an encoding lists pairs, which belong to one text each.
        """
        known, where, positions = self._positions
        rows = texts if any(encoding.sparse for encoding in self.position.encodings) else 1
        if known < length or where != (device, rows):
            if torch.compiler.is_compiling():
                torch._dynamo.graph_break(
                    "a decoder encodes the positions of a text longer than all before; first call the model without "
                    "compiling, on its device, for the longest text"
                )
            known = 1 << max(length - 1, 31).bit_length()
            with torch.inference_mode(mode=False):  # they are cached, and a later call may need gradients
                positions = encode([path([""] * known)] * rows, self.position.encodings).to(device)
            self._positions = (known, (device, rows), positions)
        return positions


def check_causal(position: PositionModel) -> None:
    """Check that a decoder with a cache can use a position model.

    Raises:
        PositionError: it is not causal.
    """
    if not position.causal:
        encodings = [repr(e.name) for e in position.encodings if not e.causal]
        models = position if isinstance(position, Sum) else [position]
        named = [repr(model.name) for model in models if not model.causal]
        used = f"encoding {', '.join(encodings)}" if encodings else f"position model {', '.join(named)}"
        wrong = f"a decoder cannot use {used}: it depends on units that are not yet written"
        raise PositionError(f"{wrong}; choose a causal position model, for example 'sinusoidal' or 't5'")

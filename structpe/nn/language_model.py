"""A language model: a decoder without an encoder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import Encoding, check_pairs
from structpe.errors import ConfigError, PositionError, StructPEError
from structpe.nn.decoder import Decoder, DecoderState
from structpe.nn.layer import StackConfig
from structpe.positions import PositionModel, Positions
from structpe.positions.batch import join
from structpe.positions.build import Config
from structpe.precision import wide
from structpe.structure import path

__all__ = ["LanguageModel"]


class LanguageModel(nn.Module):
    """p(y_t | y_<t): a decoder without an encoder. Input and output share one embedding.

    :meth:`forward` processes whole segments; with ``memory`` a segment attends to the previous one (Transformer-XL).
    It accepts any position model; one whose positions depend on later units does not make content flow backwards.
    :meth:`start` and :meth:`step` decode unit by unit with a KV cache, for which the position model must be causal;
    :func:`structpe.nn.search.search` uses them.

    Args:
        config: sizes and options.
        vocabulary: number of units, v.
        position: built for ``config.dims``.

    Raises:
        ConfigError: the vocabulary has no unit.
    """

    def __init__(self, config: StackConfig, vocabulary: int, position: PositionModel | Config) -> None:
        super().__init__()
        if vocabulary < 1:
            raise ConfigError(f"the vocabulary has {vocabulary} units; give 1 or more")
        self.embedding = nn.Embedding(vocabulary, config.width)
        nn.init.normal_(self.embedding.weight, std=config.width**-0.5)
        self.decoder = Decoder(config, position, reads=False)

    def forward(
        self,
        units: Tensor,
        positions: Positions | None = None,
        memory: Sequence[Tensor] = (),
        lengths: Tensor | None = None,
    ) -> tuple[Float[Tensor, "b n v"], list[Tensor]]:
        """Log-probabilities of the unit after each unit, and the memory for the next segment.

        Args:
            units: (b, n) ids.
            positions: of these units and of those in memory: see :meth:`Decoder.segment`. By default those of a path,
                encoded in each call; pass them if that takes too long.
            memory: from the call for the previous segment; empty for the first.
            lengths: (b,) number of units of each text, if texts are padded at the end; the output at padding is
                arbitrary. Cannot be combined with ``positions`` or ``memory``.

        Raises:
            PositionError: ids have another shape or are outside the vocabulary, lengths do not fit them, or the
                position model needs more of a structure than the order of its units.
        """
        self._check(units)
        if positions is None:
            positions = self._of_texts(units, memory, lengths)
        elif lengths is not None:
            raise PositionError("lengths and positions cannot be combined; leave out one of the two")
        hidden, seen = self.decoder.segment(self._embed(units), positions, memory)
        return torch.log_softmax(wide(functional.linear(hidden, self.embedding.weight)), dim=-1), seen

    def start(self, rows: int) -> DecoderState:
        """The state before the first unit of a number of texts.

        Raises:
            PositionError: the position model is not causal.
        """
        weight = self.embedding.weight
        return self.decoder.start(weight.new_zeros(rows, 0, weight.shape[1]), weight.new_zeros(rows, 0).bool())

    def step(
        self, written: Int[Tensor, "b n"], state: DecoderState, positions: Positions | None = None
    ) -> Float[Tensor, "b n v"]:
        """Log-probabilities of the unit after each of the next n units. Updates ``state``.

        ``positions`` are those of :meth:`Decoder.forward`, if the units are not a path.
        """
        logits = state.steps.logits(self.decoder(self._embed(written), state, positions), self.embedding.weight)
        return torch.log_softmax(wide(logits), dim=-1)

    def _embed(self, units: Tensor) -> Tensor:
        embedded: Tensor = self.embedding(units) * math.sqrt(self.embedding.embedding_dim)
        return embedded

    def _of_texts(self, units: Tensor, memory: Sequence[Tensor], lengths: Tensor | None) -> Positions:
        """Positions of texts: each a path graph, of the units and those of the memory before them."""
        before = memory[0].shape[1] if memory else 0
        sizes = [before + units.shape[1]] * len(units) if lengths is None else _sizes(units, before, lengths)
        try:
            positions = _of_paths(sizes, self.decoder.position.encodings)
        except StructPEError as error:
            wrong = f"positions cannot be computed from the order of the units alone: {error}"
            remedy = "give positions = structpe.encode(structures, model.decoder.position.encodings)"
            raise PositionError(f"{wrong}; {remedy}") from error
        positions = positions.to(units.device, self.embedding.weight.dtype)
        return positions.step(before, before + units.shape[1]) if before else positions

    def _check(self, units: Tensor) -> None:
        """Check that ids are (b, n), whole numbers, and of the vocabulary."""
        if torch.compiler.is_compiling():
            return
        if units.ndim != 2 or units.is_floating_point() or units.numel() == 0:
            given = f"shape {tuple(units.shape)} of {units.dtype}"
            raise PositionError(f"a language model takes ids (b, n), whole numbers; given is {given}")
        if units.device.type == "cpu" and (int(units.min()) < 0 or int(units.max()) >= len(self.embedding.weight)):
            size = len(self.embedding.weight)
            known = f"the vocabulary has {size} units, 0..{size - 1}"
            raise PositionError(f"ids are {int(units.min())}..{int(units.max())}, and {known}")


def _of_paths(sizes: Sequence[int], encodings: Sequence[Encoding]) -> Positions:
    """Positions of path graphs; each length is encoded once."""
    distinct = sorted(set(sizes))
    paths = [path(("",) * size) for size in distinct]
    check_pairs(paths, encodings)
    whole: dict[Encoding, Any] = {}
    for encoding in encodings:
        found = dict(zip(distinct, encoding.many(paths), strict=True))
        whole |= join({encoding: [found[size] for size in sizes]})
    return Positions(whole, present=torch.arange(max(sizes))[None] < torch.tensor(sizes)[:, None])


def _sizes(units: Tensor, before: int, lengths: Tensor) -> list[int]:
    """The length of each text, checked."""
    if before:
        raise PositionError("lengths and memory cannot be combined; leave out one of the two")
    b, n = units.shape
    sizes = [int(each) for each in lengths]
    if len(sizes) != b or not all(1 <= size <= n for size in sizes):
        raise PositionError(f"lengths are {sizes[:8]} for ids ({b}, {n}); give {b} of them, each 1 to {n}")
    if (most := max(sizes)) < n:
        raise PositionError(f"the longest text has {most} units, and ids are ({b}, {n}); cut them to ({b}, {most})")
    return sizes

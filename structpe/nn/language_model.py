"""A decoder without an encoder: each unit of a text from those before it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from structpe.data.encode import check_pairs, join
from structpe.encodings.base import Encoding
from structpe.errors import ConfigError, PositionError, StructPEError
from structpe.nn.copying import precise
from structpe.nn.decoder import Decoder, State
from structpe.nn.layer import StackConfig
from structpe.positions.base import PositionModel, Positions
from structpe.structure import path

__all__ = ["LanguageModel"]


class LanguageModel(nn.Module):
    """p(y_t | y_<t): a decoder that reads no encoder. Input and output share one embedding.

    :meth:`forward` takes whole segments; a segment sees the one before it where its memory is handed on
    (Transformer-XL). There any position model will do, also one whose view of the first units changes when more are
    added; content must still not flow backwards, which is up to the model. :meth:`start` and :meth:`step` write unit by
    unit with a KV cache, for which the position model must be causal; :func:`structpe.nn.search.search` uses them.

    Args:
        config: sizes and options.
        vocabulary: number of units, v.
        position: built for ``config.dims``.

    Raises:
        ConfigError: a vocabulary of no unit.
    """

    def __init__(self, config: StackConfig, vocabulary: int, position: PositionModel) -> None:
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
        """Log-probabilities of what comes after each unit, and the memory for the next segment.

        Args:
            units: (b, n) ids.
            positions: of these units, and of those of the memory before them: see :meth:`Decoder.segment`. By default
                those of a text, a path, encoded at each call; give them where that takes time.
            memory: what the segment before gave; empty for the first.
            lengths: (b,) how many units each text has, where they are padded at the end; what is given for padding says
                nothing. Not with positions of your own, which say it themselves, nor with a memory.

        Raises:
            PositionError: ids outside the vocabulary or of another form, lengths that do not fit them, or a position
                model that needs more of a structure than the order of its units.
        """
        self._check(units)
        if positions is None:
            positions = self._of_texts(units, memory, lengths)
        elif lengths is not None:
            raise PositionError("lengths go with positions that are made here; leave out one of the two")
        hidden, seen = self.decoder.segment(self._embed(units), positions, memory)
        return self._likelihoods(hidden), seen

    def start(self, rows: int) -> State:
        """The state before the first unit of so many texts.

        Raises:
            PositionError: the position model is not causal, so that nothing can be cached.
        """
        weight = self.embedding.weight
        return self.decoder.start(weight.new_zeros(rows, 0, weight.shape[1]), weight.new_zeros(rows, 0).bool())

    def step(self, written: Int[Tensor, "b n"], state: State) -> Float[Tensor, "b n v"]:
        """Log-probabilities of what comes after each of the newest units; the state moves on by n."""
        return self._likelihoods(self.decoder(self._embed(written), state))

    def _embed(self, units: Tensor) -> Tensor:
        embedded: Tensor = self.embedding(units) * math.sqrt(self.embedding.embedding_dim)
        return embedded

    def _likelihoods(self, hidden: Tensor) -> Tensor:
        return torch.log_softmax(precise(functional.linear(hidden, self.embedding.weight)), dim=-1)

    def _of_texts(self, units: Tensor, memory: Sequence[Tensor], lengths: Tensor | None) -> Positions:
        """Positions of texts: each a path graph, of the units and those of the memory before them."""
        before = memory[0].shape[1] if memory else 0
        sizes = [before + units.shape[1]] * len(units) if lengths is None else _sizes(units, before, lengths)
        try:
            positions = _of_paths(sizes, self.decoder.position.encodings)
        except StructPEError as error:
            raise PositionError(
                f"positions of a text, of which only the order of units is known, cannot be made: {error}; give "
                f"positions = structpe.encode(structures, model.decoder.position.encodings)"
            ) from error
        positions = positions.to(units.device, self.embedding.weight.dtype)
        return positions.step(before, before + units.shape[1]) if before else positions

    def _check(self, units: Tensor) -> None:
        """Check that ids are (b, n), whole numbers, and of the vocabulary."""
        if torch.compiler.is_compiling():
            return
        if units.ndim != 2 or units.is_floating_point() or units.numel() == 0:
            raise PositionError(
                f"a language model takes ids (b, n), whole numbers; given is shape {tuple(units.shape)} of "
                f"{units.dtype}"
            )
        if units.device.type == "cpu" and (int(units.min()) < 0 or int(units.max()) >= len(self.embedding.weight)):
            raise PositionError(
                f"ids are {int(units.min())}..{int(units.max())}, and the vocabulary has {len(self.embedding.weight)} "
                f"units, 0..{len(self.embedding.weight) - 1}"
            )


def _of_paths(sizes: Sequence[int], encodings: Sequence[Encoding]) -> Positions:
    """Positions of path graphs, of which those of one length are encoded once."""
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
        raise PositionError("lengths say where texts end, and a memory goes on with them; give one of the two")
    b, n = units.shape
    sizes = [int(each) for each in lengths]
    if len(sizes) != b or not all(1 <= size <= n for size in sizes):
        raise PositionError(f"lengths are {sizes[:8]} for ids ({b}, {n}); give {b} of them, each 1 to {n}")
    if (most := max(sizes)) < n:
        raise PositionError(f"the longest text has {most} units, and ids are ({b}, {n}); cut them to ({b}, {most})")
    return sizes

"""A decoder without an encoder: each unit of a text from those before it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from structpe.nn.copying import precise
from structpe.nn.encoder import Encoder
from structpe.nn.layers import LayerConfig
from structpe.positions.base import PositionModel, Positions

__all__ = ["LanguageModel"]


class LanguageModel(nn.Module):
    """p(y_t | y_<t): causal layers over one segment of a text after the other. Input and output share one embedding.

    A segment sees the one before it where its memory is handed on (Transformer-XL). Unlike the decoder of an
    encoder-decoder it keeps no cache of projected keys, so that any position model will do, also one whose view of the
    first units changes when more are added; content must still not flow backwards, which is up to the model.

    Args:
        config: what the layers have in common.
        vocabulary: number of units, v.
        position: built for ``config.dims``.
    """

    def __init__(self, config: LayerConfig, vocabulary: int, position: PositionModel) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, config.dims.width)
        nn.init.normal_(self.embedding.weight, std=config.dims.width**-0.5)
        self.layers = Encoder(config, position, causal=True)

    def forward(
        self, units: Int[Tensor, "b n"], positions: Positions, memory: Sequence[Tensor] = ()
    ) -> tuple[Float[Tensor, "b n v"], list[Tensor]]:
        """Log-probabilities of what comes after each unit, and the memory for the next segment.

        Args:
            units: ids.
            positions: of these units, and of those of the memory before them: see :meth:`Encoder.segment`.
            memory: what the segment before gave; empty for the first.
        """
        x = self.embedding(units) * math.sqrt(self.embedding.embedding_dim)
        hidden, seen = self.layers.segment(x, positions, memory)
        return torch.log_softmax(precise(functional.linear(hidden, self.embedding.weight)), dim=-1), seen

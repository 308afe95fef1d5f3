"""Angles that are learned linear functions of a vector per unit."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions import Dims, Positions, Site
from structpe.positions.rotary._turns import RotaryModel, Turns
from structpe.precision import wide
from structpe.terms import Terms

__all__ = ["LearnedTurns"]


class Vectors(NamedTuple):
    """The vectors of the queries (b, n, k) and of the keys (b, m, k)."""

    queries: Tensor
    keys: Tensor


class LearnedTurns(RotaryModel):
    """Rotates the pair i of head h in layer l by W_lhi . x_u; x_u (k) are the numbers of a unit, W (l, h, d_h/2, k).

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: x.
        width: k.
        start: what W starts from, (l, h, d_h/2, k).
    """

    def __init__(self, dims: Dims, encoding: Encoding, width: int, start: Tensor) -> None:
        super().__init__(dims, encoding)
        self.width = width
        self.frequencies = nn.Parameter(start)

    def prepare(self, positions: Positions) -> Vectors:
        """The vectors of the units.

        Raises:
            PositionError: the encoding gives another number of numbers per unit.
        """
        (encoding,) = self.encodings
        keys, queries = positions[encoding], positions.queries(encoding)
        given = keys.shape[2:]
        if given != (self.width,):
            raise PositionError(
                f"position model {self.name!r} needs {self.width} numbers per unit; {encoding.name!r} gives "
                f"{' x '.join(map(str, given)) or 'one'}"
            )
        return Vectors(queries, keys)

    def terms(self, prepared: Vectors, site: Site) -> Terms:
        turns = Turns(*(self._angles(each, site.layer) for each in prepared))
        return Terms(maps=(turns.neighbours if self.interleaved else turns.halves,))

    def _angles(self, vectors: Tensor, layer: int) -> Tensor:
        own = wide(self.frequencies[layer])
        return torch.einsum("bnk,hpk->bhnp", vectors.to(own.dtype), own)

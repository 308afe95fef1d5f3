"""A learned scalar per offset, none of them cut off: what the two names of the study's relative model share."""

from __future__ import annotations

import torch
from torch import nn

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions._rows import Sharing, Table, Window, holds, is_plain, of_arity, offsets
from structpe.positions.base import Dims, Positions
from structpe.terms import Lookup

__all__ = ["OffsetScalars"]


class OffsetScalars(nn.Module):
    """R[s - t], 2 t_max - 1 scalars per table, and those for code points of the encoding.

    Args:
        model: name of the position model.
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        length: t_max: offsets are less than this, either way.
        sharing: which layers and heads have the same table.

    Raises:
        PositionError: a length below 2, or no single integer per pair.
    """

    def __init__(self, model: str, dims: Dims, encoding: Encoding, length: int, sharing: Sharing) -> None:
        super().__init__()
        if length < 2:
            raise PositionError(
                f"position model {model!r} needs a length of 2 or more, to have offsets; given {length}"
            )
        self.model, self.length, self.encoding = model, length, of_arity(model, encoding, 2)
        self.window = Window(encoding, length - 1)
        self.table = Table(dims, self.window.size, sharing)

    def prepare(self, positions: Positions) -> Lookup:
        """The row of each distinct value."""
        of_pairs = offsets(self.model, self.encoding, positions[self.encoding])
        self._check(of_pairs)
        return of_pairs.map(self.window.of)

    def bias(self, rows: Lookup, layer: int) -> Lookup:
        """The scalars of a layer."""
        return rows.map(self.table.at(layer).__getitem__)

    def _check(self, of_pairs: Lookup) -> None:
        far = torch.where(is_plain(of_pairs.table), of_pairs.table, 0).abs()
        if not holds((far >= self.length).any()):
            return
        # A step of decoding comes with the values of a longer text than it uses, so that the pairs themselves decide.
        if (farthest := int(of_pairs.map(lambda _: far).dense().max())) >= self.length:
            raise PositionError(
                f"position model {self.model!r} has scalars for offsets below {self.length}, and cuts none off; "
                f"this batch has an offset of {farthest}; build it with a larger 'length', or choose an unbound model"
            )

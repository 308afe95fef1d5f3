"""A recurrent network that reads the units of each text in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions import Positions
from structpe.positions._checks import numbers

__all__ = ["Reader", "Texts"]


@dataclass(frozen=True, eq=False)
class Texts:
    """The texts of a batch, of which a row may have several, each with its units in reading order.

    Attributes:
        rows: (x, 1) which row of the batch a text is in.
        units: (x, c) the places of its units in that row, padded with the last one.
        lengths: (x,) how many they are, on the CPU.
    """

    rows: Tensor
    units: Tensor
    lengths: Tensor

    @classmethod
    def of(cls, model: str, encodings: Sequence[Encoding], positions: Positions) -> Self:
        """From two encodings, of the places of units and of the lengths of their texts, 0 where a row is padded."""
        order, size = encodings
        places = numbers(model, order, positions[order]).cpu()
        sizes = numbers(model, size, positions[size]).long().tolist()
        found = [(row, *text) for row, mine in enumerate(sizes) for text in _texts(mine)]
        if not found:
            raise PositionError(
                f"position model {model!r} reads texts and needs the length of each, 1 or more, at its first unit; "
                f"{size.name!r} gives 0; choose 'size'"
            )
        units = [start + places[row, start:stop].argsort(stable=True) for row, start, stop in found]
        padded = nn.utils.rnn.pad_sequence(units, batch_first=True, padding_value=-1)
        lengths = torch.tensor([len(each) for each in units])
        last = padded.gather(1, lengths[:, None] - 1)
        device = positions[order].device
        rows = torch.tensor([row for row, _, _ in found])[:, None].to(device)
        return cls(rows, padded.where(padded >= 0, last).to(device), lengths)


def _texts(sizes: list[int]) -> list[tuple[int, int]]:
    """The first and last places of the texts of a row: the first unit of each has its length."""
    found, start = [], 0
    while start < len(sizes) and sizes[start] > 0:
        stop = min(start + sizes[start], len(sizes))
        found.append((start, stop))
        start = stop
    return found


class Reader(nn.Module):
    """A GRU of one layer and one direction, as wide as the model; it starts again at each text.

    Args:
        width: d.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.network = nn.GRU(width, width, batch_first=True)

    def forward(self, x: Tensor, texts: Texts) -> Tensor:
        """(b, n, d) its state after each unit of x (b, n, d); zeros where there is no unit."""
        packed = pack_padded_sequence(x[texts.rows, texts.units], texts.lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.network(packed)[0], batch_first=True)
        there = torch.arange(texts.units.shape[1])[None] < texts.lengths[:, None]
        there = there.to(x.device)
        where = texts.rows.expand_as(texts.units)[there], texts.units[there]
        return torch.zeros_like(x, dtype=states.dtype).index_put(where, states[there])

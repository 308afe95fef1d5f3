"""A recurrent network that reads the units of each text in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset, Order, Size
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.batch import numbers, of_arity, offsets
from structpe.positions.tables import Sharing, Table, clipped_rows, vector_table
from structpe.terms import Lookup, Terms

__all__ = ["RNN", "RR", "PackedTexts", "TextReader"]


@dataclass(frozen=True, eq=False)
class PackedTexts:
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


class TextReader(nn.Module):
    """A GRU of one layer and one direction, as wide as the model; it starts again at each text."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.network = nn.GRU(width, width, batch_first=True)

    def forward(self, x: Tensor, texts: PackedTexts) -> Tensor:
        """(b, n, d) its state after each unit of x (b, n, d); zeros where there is no unit."""
        packed = pack_padded_sequence(x[texts.rows, texts.units], texts.lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.network(packed)[0], batch_first=True)
        there = torch.arange(texts.units.shape[1])[None] < texts.lengths[:, None]
        there = there.to(x.device)
        where = texts.rows.expand_as(texts.units)[there], texts.units[there]
        return torch.zeros_like(x, dtype=states.dtype).index_put(where, states[there])


PACKED = "its network runs over texts packed by their lengths, which are numbers of the batch"
"""Why a compiler does not trace these models."""
TABLE1 = Cells("R", "-", learnable=True, recurring=False, unbound=True, params="6*d*d + 3*d")


class RNN(PositionModel, name="rnn"):
    """A recurrent network instead of positions (Neishi and Yoshinaga 2019, RNN-Transformer).

    x_t -> h_t = GRU(x_t, h_(t-1)), h_(-1) = 0: a layer that reads the units in order before the first of attention.

    Its output replaces the input; nothing is added. One layer, one direction, d wide. (Neishi and Yoshinaga 2019,
    section 3; survey, section 4.1.2.) The authors have published no code. Units are read in the order that the encoding
    gives, those with the same number in the order in which they are stored; each text is read from its own first unit,
    independently of the rest of its row in the batch.

    Table 1 counts 6d^2 + 3d; PyTorch's GRU has a second set of 3d biases, which belongs to the state. The survey calls
    the model relative, because the network is the same at every place. In fact text in front changes the result,
    because the network has read it too.

    A decoder cannot use it: a decoding step has only the newest unit, not the state after the earlier ones.

    Args:
        encoding: one number per unit, by which units are read.
        length: the number of units of the text, at each unit.

    Raises:
        PositionError: an encoding is of pairs, or gives a vector per unit.
    """

    spec = Spec(
        "neishi2019",
        "sequence",
        Cells("A", "-", learnable=True, recurring=False, unbound=True, params="6*d*d + 6*d"),
        table1=TABLE1,
        note="text in front of a text moves it, for the network has read it; PyTorch's has 3d more biases",
        not_compiled=PACKED,
        not_exported=PACKED,
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), length: Encoding = Size()) -> None:
        super().__init__(dims, [of_arity(self.name, each, 1) for each in (encoding, length)])
        self.reader = TextReader(dims.width)

    def prepare(self, positions: Positions) -> PackedTexts:
        """Which units to read, one after the other."""
        return PackedTexts.of(self.name, self.encodings, positions)

    def inputs(self, x: Tensor, prepared: PackedTexts) -> Tensor:
        states: Tensor = self.reader(x, prepared)
        return states


class RR(PositionModel, name="rr"):
    """A recurrent network instead of positions, and relative positions in attention (Neishi and Yoshinaga 2019).

    x_t -> GRU(x_t, h_(t-1));  s_ij = q_i.(k_j + K[r_ij]) / sqrt(d_h),  o_i = sum_j w_ij (v_j + V[r_ij]).

    The network of ``rnn`` at the input, and the vectors of ``shaw`` at keys and values of each layer: r_ij = clip(s -
    t, -m, m). (Neishi and Yoshinaga 2019, section 3, RR-Transformer; the authors have published no code.) See the two
    models for details: m and the sharing of tables are Shaw's, the order of reading is that of ``rnn``.

    Table 1 has one row for both models, which counts only the network.

    Args:
        encoding: signed integers per pair, for the vectors.
        order: one number per unit, by which units are read.
        length: the number of units of the text, at each unit.
        max_distance: m, the farthest offset that has its own vectors.
        sharing: ``head-wise`` as of ``shaw``.

    Raises:
        PositionError: an encoding gives something else.
    """

    spec = Spec(
        "neishi2019",
        "sequence",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=True, params="6*d*d + 6*d + 2*R*dh*copies"),
        table1=TABLE1,
        note="the row is of the network only; vectors of offsets enter attention at each layer",
        not_compiled=PACKED,
        not_exported=PACKED,
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Offset(),
        order: Encoding = Order(),
        length: Encoding = Size(),
        max_distance: int = 20,
        sharing: Sharing = "head-wise",
    ) -> None:
        read = [of_arity(self.name, each, 1) for each in (order, length)]
        super().__init__(dims, [of_arity(self.name, encoding, 2), *read])
        self.rows, self.reader = clipped_rows(encoding, max_distance), TextReader(dims.width)
        self.sizes = {"R": self.rows.size, "copies": Table.copies(sharing, dims)}
        self.keys, self.values = (vector_table(dims, self.rows.size, sharing) for _ in range(2))

    def prepare(self, positions: Positions) -> tuple[PackedTexts, Lookup]:
        """Which units to read, and the row of each distinct value."""
        encoding, *read = self.encodings
        of_pairs = offsets(self.name, encoding, positions[encoding])
        return PackedTexts.of(self.name, read, positions), of_pairs.map(self.rows.of)

    def inputs(self, x: Tensor, prepared: tuple[PackedTexts, Lookup]) -> Tensor:
        states: Tensor = self.reader(x, prepared[0])
        return states

    def terms(self, prepared: tuple[PackedTexts, Lookup], site: Site) -> Terms:
        _, rows = prepared
        return Terms(key=(self.keys.entries(rows, site),), value=(self.values.entries(rows, site),))

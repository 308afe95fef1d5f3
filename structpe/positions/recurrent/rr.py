"""A recurrent network instead of positions, and relative positions in attention (Neishi and Yoshinaga 2019)."""

from __future__ import annotations

import math

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset, Order
from structpe.encodings.size import Size
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import of_arity, offsets
from structpe.positions._rows import Window
from structpe.positions._tables import Sharing, Table
from structpe.positions.recurrent._reading import Reader, Texts
from structpe.terms import Lookup, Terms

__all__ = ["RR"]


class RR(PositionModel, name="rr"):
    """A recurrent network instead of positions, and relative positions in attention (Neishi and Yoshinaga 2019).

    x_t -> GRU(x_t, h_(t-1));  s_ij = q_i.(k_j + K[r_ij]) / sqrt(d_h),  o_i = sum_j w_ij (v_j + V[r_ij]).

    The network of ``rnn`` at the input, and the vectors of ``shaw`` at keys and values of each layer: r_ij = clip(s -
    t, -m, m). (Neishi and Yoshinaga 2019, section 3, RR-Transformer; the authors have published no code.) See the two
    models for details: m and the sharing of tables are Shaw's, the order of reading is that of ``rnn``.

    Table 1 has one row for both models, which counts only the network.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair, for the vectors.
        order: one number per unit, by which units are read.
        length: the number of units of the text, at each unit.
        reach: m, the farthest offset that has its own vectors.
        sharing: ``head-wise`` as of ``shaw``.

    Raises:
        PositionError: the reach is below 1, or an encoding gives something else.
    """

    spec = Spec(
        "neishi2019",
        "sequence",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=True, params="6*d*d + 6*d + 2*R*dh*copies"),
        table1=Cells("R", "-", learnable=True, recurring=False, unbound=True, params="6*d*d + 3*d"),
        note="the row is of the network only; vectors of offsets enter attention at each layer",
        not_compiled="its network runs over texts packed by their lengths, which are numbers of the batch",
        not_exported="its network runs over texts packed by their lengths, which are numbers of the batch",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Offset(),
        order: Encoding = Order(),
        length: Encoding = Size(),
        reach: int = 20,
        sharing: Sharing = "head-wise",
    ) -> None:
        window = Window(of_arity(self.name, encoding, 2), reach)
        read = [of_arity(self.name, each, 1) for each in (order, length)]
        super().__init__(dims, [encoding, *read], R=window.size, copies=Table.copies(sharing, dims))
        self.window, self.reader = window, Reader(dims.width)
        std = math.sqrt(2 / (window.size + dims.head))
        self.keys = Table(dims, window.size, sharing, width=dims.head, std=std)
        self.values = Table(dims, window.size, sharing, width=dims.head, std=std)

    def prepare(self, positions: Positions) -> tuple[Texts, Lookup]:
        """Which units to read, and the row of each distinct value."""
        encoding, *read = self.encodings
        of_pairs = offsets(self.name, encoding, positions[encoding])
        return Texts.of(self.name, read, positions), of_pairs.map(self.window.of)

    def inputs(self, x: Tensor, prepared: tuple[Texts, Lookup]) -> Tensor:
        states: Tensor = self.reader(x, prepared[0])
        return states

    def terms(self, prepared: tuple[Texts, Lookup], site: Site) -> Terms:
        _, rows = prepared
        return Terms(
            key=(rows.map(self.keys.at(site.layer).__getitem__),),
            value=(rows.map(self.values.at(site.layer).__getitem__),),
        )

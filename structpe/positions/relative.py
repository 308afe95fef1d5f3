"""Scalars or vectors for each offset: Shaw, Huang and others.

An offset is s - t, key minus query, or any other encoding of pairs. Those with a minus, t - s, count query minus key.
Pairs without a path and units of one node have rows of their own. Encodings that do not give one integer per pair are
refused, and so are batches with places, offsets or distances beyond a table that does not clip.
"""

from __future__ import annotations

import math
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset, Order
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Positions, Site, Spec
from structpe.positions.batch import holds
from structpe.positions.path_labels import each_pair
from structpe.positions.places import PlaceRows, PlacesModel, beyond
from structpe.positions.tables import (
    BOUND,
    KeyValueTables,
    PairModel,
    PairRows,
    PairTable,
    Rows,
    Sharing,
    Table,
    clipped_rows,
    distance_row,
    distances,
    is_plain,
    vector_table,
)
from structpe.terms import Lookup, Terms

__all__ = [
    "DIETRelative",
    "DufterRelative",
    "HuangM1",
    "HuangM2",
    "HuangM3",
    "HuangM4",
    "HuangModel",
    "RelScalar",
    "Shaw",
    "ShawAbsolute",
    "ShawKeys",
    "SpanTable",
]


def _backward_row(offsets: Tensor, most: int) -> Tensor:
    return most - offsets.clamp(-most, most)


class SpanTable(PairTable):
    """A table with a row for each offset from 1 - t_max to t_max - 1, or each distance below t_max, without clipping.

    Rows of offsets count query minus key, as Huang et al. 2020 and Chen et al. 2021 do: the first is that of the key
    t_max - 1 places ahead. Rows of code points follow.

    Args:
        max_length: t_max; offsets are less, either way.

    Raises:
        PositionError: a batch has an offset of ``max_length`` or more, either way.
    """

    signed: ClassVar[bool] = True
    """Whether rows are of offsets, not of distances."""
    vectors: ClassVar[bool] = False
    """Whether entries are vectors (d_h), not scalars."""

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), max_length: int = 512, sharing: Sharing = "none"
    ) -> None:
        count, row = (2 * max_length - 1, _backward_row) if self.signed else (max_length, distance_row)
        rows = Rows(encoding, count, partial(row, most=max_length - 1))
        super().__init__(dims, encoding, rows, sharing, width=dims.head if self.vectors else None)
        self.max_length = max_length

    def of_pairs(self, positions: Positions) -> Lookup:
        """The value of each pair, none of which is ``max_length`` or more apart."""
        of_pairs = super().of_pairs(positions)
        far = torch.where(is_plain(of_pairs.table), of_pairs.table, 0).abs()
        # A decoding step has the values of a longer text than it uses: only then check the pairs.
        if holds((far >= self.max_length).any()):
            most = int(of_pairs.map(lambda _: far).dense().max())
            if most >= self.max_length:
                raise PositionError(
                    f"position model {self.name!r} has rows for offsets below {self.max_length} and does not clip; "
                    f"this batch has an offset of {most}; build it with a larger 'max_length', or choose an "
                    f"unbound model"
                )
        return of_pairs


class RelScalar(SpanTable, name="rel-scalar"):
    """One scalar per offset, head and layer (Chen et al. 2021, REL-SCALAR).

    s_ij += R[i - j], outside the scale: 2 t_max - 1 learned scalars per head and layer, without buckets or clip.

    (Chen et al. 2021, the first version of their paper, section 3, eq. 8; no code by the authors is known.) The
    published version prints the same equation under another name, ``diet-rel``; the numbers are the same. With buckets
    and ``layer-wise`` sharing it is ``t5``. The S of eq. 11, the attention among segments, is ``segment-bias``. The
    paper has the best results without sharing.
    """

    spec = Spec("chen2021demystifying", "sequence", BOUND("R*copies"))


class DIETRelative(SpanTable, name="diet-rel"):
    """One scalar per offset, head and layer (Chen et al. 2021, DIET-REL).

    s_ij += R[i - j], outside the scale: 2 t_max - 1 learned scalars per head and layer, without buckets or clip.

    (Chen et al. 2021, section 3.2, eq. 3; no code by the authors is known.) It is T5's bias with a row per offset and a
    table for each layer, as the paper recommends for this model. i - j is query minus key. The first version of the
    paper calls the same model ``rel-scalar``. The E_S of eq. 3, the attention among segments, is ``segment-bias``:
    DIET-REL as in eq. 3 is the sum of both.
    """

    spec = Spec("chen2021", "sequence", BOUND("R*copies"))


class HuangModel(SpanTable):
    """A number or a vector of each offset, in one of the methods of Huang et al. (2020).

    Args:
        sharing: ``head-wise``, a table per layer for all heads, as in the authors' code of method 4.
    """

    start: ClassVar[float | None] = 1.0
    """What all entries start from: with 1 attention ignores positions at first. None for N(0, 0.02)."""

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), max_length: int = 512, sharing: Sharing = "head-wise"
    ) -> None:
        super().__init__(dims, encoding, max_length, sharing)
        if self.start is not None:
            nn.init.constant_(self.table.weight, self.start)


class HuangM1(HuangModel, name="huang-m1"):
    """A scalar per distance that multiplies the score (Huang et al. 2020, method 1).

    s_ij = r[|s - t|] q_i.k_j / sqrt(d_h),  r a learned scalar per distance 0..t_max - 1.

    Direction is not distinguished: that is ``huang-m2``. (Huang et al. 2020, method 1; survey, eq. 18. No code by the
    authors is known.) That scalars start at 1 and heads share them is our choice.
    """

    spec = Spec(
        "huang2020",
        "sequence",
        BOUND("R*copies"),
        table1=BOUND("d*l*h*(2*t-1)"),
        note="one scalar per distance, as the survey's own eq. 18 has it, in place of a vector per offset",
    )
    signed = False

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(gate=(self.entries(prepared, site),))


class HuangM2(HuangModel, name="huang-m2"):
    """A scalar per offset that multiplies the score (Huang et al. 2020, method 2).

    s_ij = r[t - s] q_i.k_j / sqrt(d_h),  r a learned scalar per offset from 1 - t_max to t_max - 1.

    As ``huang-m1``, with directions distinguished; t - s is query minus key. (Huang et al. 2020, method 2; survey,
    section 4.1.2. No code by the authors is known.) That scalars start at 1 and heads share them is our choice.
    """

    spec = Spec(
        "huang2020",
        "sequence",
        BOUND("R*copies"),
        table1=BOUND("d*l*h*(2*t-1)"),
        note="one scalar per offset, as the survey's own text has it, in place of a vector",
    )

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(gate=(self.entries(prepared, site),))


class HuangM3(HuangModel, name="huang-m3"):
    """A vector per offset between query and key (Huang et al. 2020, method 3).

    s_ij = sum_c q_ic k_jc r[t - s]_c / sqrt(d_h),  r a learned vector (d_h) per offset from 1 - t_max to t_max - 1.

    t - s is query minus key. (Huang et al. 2020, method 3; survey, eq. 19. No code by the authors is known.) That
    vectors start at 1 and heads share them is our choice. A term of attention is added to q.k, so it contains r - 1.
    """

    spec = Spec(
        "huang2020",
        "sequence",
        BOUND("R*dh*copies"),
        table1=BOUND("d*l*h*(2*t-1)"),
        note="vectors have the width of a head, and all heads of a layer share them",
    )
    vectors = True

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        table = self.table.at(site.layer)
        return Terms(product=(prepared.map(lambda rows: table[rows] - 1),))


class HuangM4(HuangModel, name="huang-m4"):
    """A vector per offset, multiplied with query and key (Huang et al. 2020, method 4).

    s_ij = (q_i.k_j + q_i.r[t - s] + k_j.r[t - s]) / sqrt(d_h),  r a learned vector (d_h) per offset.

    That is (q_i + r).(k_j + r) without r.r, for t - s, query minus key, from 1 - t_max to t_max - 1. Row t - s + t_max
    - 1 is that of t - s, as in the code. (Huang et al. 2020, method 4; survey, eq. 20; "relative_key_query" of the code
    that its first author gave to BERT's reimplementation.) Entries start from N(0, 0.02).
    """

    spec = Spec(
        "huang2020",
        "sequence",
        BOUND("R*dh*copies"),
        table1=BOUND("d*l*h*(2*t-1)"),
        note="vectors have the width of a head, and all heads of a layer share them",
    )
    vectors = True
    start = None

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        of_pairs = self.entries(prepared, site)
        return Terms(key=(of_pairs,), query=(of_pairs,))


class DufterRelative(PairModel, name="dufter-rel"):
    """A learned scalar for each distance, through its spectrum (Dufter, Schmitt and Schuetze 2020).

    s_ij += b(|r_ij|),  b(r) = sum_f R_f cos(pi f r / n) / 2n,  f = 0..2n-1: R (2n) is learned, the spectrum of b.

    (Dufter et al. 2020, section 2, direct position interactions.) In the paper and the survey (section 4.1.2) the
    learned numbers are b(r) themselves, one per signed offset: that is ``rel-scalar``. The authors' code passes them to
    a circulant operator of TensorFlow, which takes a spectrum, not a kernel; and as the spectrum and the result are
    real, keys ahead and behind are not distinguished.

    That code has one head; here each head has its own R, unless shared. The number is added after the scale.

    Args:
        max_length: n, above all distances.
        sharing: which layers and heads have the same R.

    Raises:
        PositionError: a distance of ``max_length`` or more, or a pair without a path where the encoding has no
            ``max_distance``.
    """

    spec = Spec("dufter2020", "sequence", BOUND("2*n*copies"))

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), max_length: int = 128, sharing: Sharing = "none"
    ) -> None:
        super().__init__(dims, encoding)
        self.sizes = {"n": max_length, "copies": Table.copies(sharing, dims)}
        self.max_length, self.table = max_length, Table(dims, 2 * max_length, sharing)
        nn.init.normal_(self.table.weight, std=(2 * max_length) ** -0.5)

    def prepare(self, positions: Positions) -> Lookup:
        """cos(pi f r / n) / 2n of each distinct distance and frequency."""
        return self.of_pairs(positions).map(self._waves)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        spectrum = self.table.at(site.layer)
        return Terms(bias=(prepared.map(lambda waves: waves.to(spectrum.dtype) @ spectrum),))

    def _waves(self, values: Tensor) -> Tensor:
        far = distances(self.name, self.encodings[0], values)
        if holds((far >= self.max_length).any()):
            raise beyond(self.name, self.max_length, "distances", int(far.max()) + 1)
        frequencies = torch.arange(2 * self.max_length, dtype=torch.float64, device=far.device)
        return torch.cos(math.pi / self.max_length * far[:, None].double() * frequencies) / (2 * self.max_length)


class Shaw(KeyValueTables, name="shaw"):
    """Relative positions as vectors at keys and values (Shaw, Uszkoreit and Vaswani 2018).

    s_ij = q_i.(k_j + K[r_ij]) / sqrt(d_h),  o_i = sum_j w_ij (v_j + V[r_ij]),  r_ij = clip(s - t, -m, m).

    K and V are tables (2m + 1, d_h), one pair per layer. (Shaw et al. 2018, section 3.2; survey, section 4.1.2.)

    m = 20, tables shared by the heads and entries of the deviation of a Glorot initialisation are those of the authors'
    code. Table 1 counts vectors as wide as the model and an offset for each pair of places, 2(2t-1)dl; vectors in the
    code are as wide as a head, and the clip leaves 2m + 1 of them.

    Args:
        max_distance: m, the farthest offset that has its own vectors.
        sharing: ``head-wise`` as in the code.
    """

    spec = Spec(
        "shaw2018",
        "sequence",
        BOUND("2*R*dh*copies"),
        table1=BOUND("2*(2*t-1)*d*l"),
        note="in the code vectors have the width of a head and offsets are clipped",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), max_distance: int = 20, sharing: Sharing = "head-wise"
    ) -> None:
        super().__init__(dims, encoding, clipped_rows(encoding, max_distance), sharing)


class ShawKeys(PairRows, name="shaw-keys"):
    """Relative positions as vectors at keys only (Shaw et al. 2018; the form that later models kept).

    s_ij = q_i.(k_j + K[r_ij]) / sqrt(d_h),  r_ij = clip(s - t, -m, m).

    K is a table (2m + 1, d_h) per layer. Shaw et al. (2018, section 4.3) find that vectors at the values can be left
    out; without them fused attention kernels can be used. With m = t_max - 1 nothing is clipped: "relative_key" of
    BERT's reimplementations, whose table counts query minus key: its rows have the reverse order.

    Args:
        max_distance: m, the farthest offset that has its own vector.
        sharing: ``head-wise`` as in the authors' code.
    """

    spec = Spec(
        "shaw2018",
        "sequence",
        BOUND("R*dh*copies"),
        note="Table 1 has only the variant with vectors at the values too: 'shaw'",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), max_distance: int = 20, sharing: Sharing = "head-wise"
    ) -> None:
        super().__init__(dims, encoding, clipped_rows(encoding, max_distance), sharing)
        self.keys = vector_table(dims, self.rows.size, sharing)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(key=(self.keys.entries(prepared, site),))


class ShawAbsolute(PlacesModel, name="shaw-absolute"):
    """Vectors for pairs of absolute places, at keys and values (Shaw, Uszkoreit and Vaswani 2018, absolute variant).

    s_ij = q_i.(k_j + K[t, s]) / sqrt(d_h),  o_i = sum_j w_ij (v_j + V[t, s]),  t, s the places of query and key.

    K and V are tables (t_max t_max, d_h), one pair per layer, shared by the heads; row t t_max + s is that of (t, s).
    Places may be any other integers per unit, such as depths. (Survey, eqs. 9 and 10; Shaw et al. 2018, section 3.1,
    where vectors are of pairs of inputs; relative positions are then a choice of these, ``shaw``. No code of this
    variant is published.) Entries start with the deviation of a Glorot initialisation, as those of ``shaw``.

    Every pair has its own vector: tables are large, and a structure has a row for each pair. Structures whose places
    are 0, 1, ... share them. Table 1 counts vectors as wide as the model.

    Args:
        sharing: ``head-wise``, as in ``shaw``.
    """

    spec = Spec(
        "shaw2018",
        "sequence",
        Cells("A", "MAM", learnable=True, recurring=True, unbound=False, params="2*t*t*dh*copies"),
        table1=Cells("A", "MAM", learnable=True, recurring=True, unbound=False, params="2*t*t*d*l"),
        note="vectors have the width of a head, as in the code of the relative variant",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Order(), max_length: int = 64, sharing: Sharing = "head-wise"
    ) -> None:
        super().__init__(dims, encoding, max_length, t=max_length, copies=Table.copies(sharing, dims))
        self.keys, self.values = (vector_table(dims, max_length * max_length, sharing) for _ in range(2))

    def prepare(self, positions: Positions) -> Lookup:
        """The row of each pair; most pairs have different ones, so they are not searched for equal ones."""
        places: PlaceRows = super().prepare(positions)
        all_places = torch.arange(self.max_length, device=self.keys.weight.device)[None]
        queries, keys = (all_places[:, p] if isinstance(p, slice) else p for p in (places.queries, places.keys))
        rows = queries[:, :, None] * self.max_length + keys[:, None, :]
        return each_pair(torch.arange(self.max_length**2), rows)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(
            key=(prepared.map(lambda _: self.keys.at(site.layer)),),
            value=(prepared.map(lambda _: self.values.at(site.layer)),),
        )

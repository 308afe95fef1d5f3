"""Vectors or scalars per offset: Shaw, Huang and others."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset, Order
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.checks import holds, of_arity, offsets
from structpe.positions.offsets import SpanTable, distances
from structpe.positions.path_labels import each_pair
from structpe.positions.places import Places, PlacesModel
from structpe.positions.tables import KeyValueTables, PairRows, Sharing, Table, Window
from structpe.terms import Lookup, Terms

__all__ = [
    "DIETRelative",
    "DufterRelative",
    "HuangM1",
    "HuangM2",
    "HuangM3",
    "HuangM4",
    "RelScalar",
    "Shaw",
    "ShawAbsolute",
    "ShawKeys",
]


class RelScalar(SpanTable, name="rel-scalar"):
    """One scalar per offset, head and layer (Chen et al. 2021, REL-SCALAR).

    s_ij += R[i - j], outside the scale: 2 t_max - 1 learned scalars per head and layer, without buckets or clip.

    (Chen et al. 2021, the first version of their paper, section 3, eq. 8; no code by the authors is known.) The
    published version prints the same equation under another name, ``diet-rel``; the numbers are the same. With buckets
    and ``layer-wise`` sharing it is ``t5``. The S of eq. 11, the attention among segments, is ``segment-bias``.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        max_length: t_max; offsets are less, either way.
        sharing: ``none``, with which the paper has the best results.

    Raises:
        PositionError: a ``max_length`` below 1, an encoding without one integer per pair, or a batch with farther
            offsets.
    """

    spec = Spec(
        "chen2021demystifying",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"),
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), max_length: int = 512, sharing: Sharing = "none"
    ) -> None:
        super().__init__(dims, encoding, max_length, sharing)


class DIETRelative(SpanTable, name="diet-rel"):
    """One scalar per offset, head and layer (Chen et al. 2021, DIET-REL).

    s_ij += R[i - j], outside the scale: 2 t_max - 1 learned scalars per head and layer, without buckets or clip.

    (Chen et al. 2021, section 3.2, eq. 3; no code by the authors is known.) It is T5's bias with a row per offset and a
    table for each layer. i - j is query minus key, or the negative of any other encoding of pairs. The first version of
    the paper calls the same model ``rel-scalar``. The E_S of eq. 3, the attention among segments, is ``segment-bias``:
    DIET-REL as in eq. 3 is the sum of both.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        max_length: t_max; offsets are less, either way.
        sharing: ``none``, which the paper recommends for this model.

    Raises:
        PositionError: a ``max_length`` below 1, an encoding without one integer per pair, or a batch with farther
            offsets.
    """

    spec = Spec(
        "chen2021", "sequence", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies")
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), max_length: int = 512, sharing: Sharing = "none"
    ) -> None:
        super().__init__(dims, encoding, max_length, sharing)


class DufterRelative(PositionModel, name="dufter-rel"):
    """A learned scalar for each distance, through its spectrum (Dufter, Schmitt and Schuetze 2020).

    s_ij += b(|r_ij|),  b(r) = sum_f R_f cos(pi f r / n) / 2n,  f = 0..2n-1: R (2n) is learned, the spectrum of b.

    r_ij = s - t, or any other encoding of pairs. (Dufter et al. 2020, section 2, direct position interactions.) In the
    paper and the survey (section 4.1.2) the learned numbers are b(r) themselves, one per signed offset: that is
    ``rel-scalar``. The authors' code passes them to a circulant operator of TensorFlow, which takes a spectrum, not a
    kernel; and as the spectrum and the result are real, keys ahead and behind are not distinguished.

    That code has one head; here each head has its own R, unless shared. The number is added after the scale.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        max_length: n, above all distances.
        sharing: which layers and heads have the same R.

    Raises:
        PositionError: a distance of ``max_length`` or more, a pair without a path where the encoding has no
            ``max_distance``, or no single integer per pair.
    """

    spec = Spec(
        "dufter2020", "sequence", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="2*n*copies")
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), max_length: int = 128, sharing: Sharing = "none"
    ) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 2)], n=max_length, copies=Table.copies(sharing, dims))
        self.max_length, self.table = max_length, Table(dims, 2 * max_length, sharing)
        nn.init.normal_(self.table.weight, std=(2 * max_length) ** -0.5)

    def prepare(self, positions: Positions) -> Lookup:
        """cos(pi f r / n) / 2n of each distinct distance and frequency."""
        of_pairs = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        return of_pairs.map(self._waves)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        spectrum = self.table.at(site.layer)
        return Terms(bias=(prepared.map(lambda waves: waves.to(spectrum.dtype) @ spectrum),))

    def _waves(self, values: Tensor) -> Tensor:
        far = distances(self.name, self.encodings[0], values)
        if holds((far >= self.max_length).any()):
            raise PositionError(
                f"position model 'dufter-rel' has {self.max_length} distances, this batch needs {int(far.max()) + 1}; "
                f"build it with a larger 'max_length', or choose an unbound model"
            )
        frequencies = torch.arange(2 * self.max_length, dtype=torch.float64, device=far.device)
        return torch.cos(math.pi / self.max_length * far[:, None].double() * frequencies) / (2 * self.max_length)


class Shaw(KeyValueTables, name="shaw"):
    """Relative positions as vectors at keys and values (Shaw, Uszkoreit and Vaswani 2018).

    s_ij = q_i.(k_j + K[r_ij]) / sqrt(d_h),  o_i = sum_j w_ij (v_j + V[r_ij]),  r_ij = clip(s - t, -m, m).

    K and V are tables (2m + 1, d_h), one pair per layer; s - t is key minus query, or any other encoding of pairs.
    (Shaw et al. 2018, section 3.2; survey, section 4.1.2.)

    m = 20, tables shared by the heads and entries of the deviation of a Glorot initialisation are those of the authors'
    code. Table 1 counts vectors as wide as the model and an offset for each pair of places, 2(2t-1)dl; vectors in the
    code are as wide as a head, and the clip leaves 2m + 1 of them.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        max_distance: m, the farthest offset that has its own vectors.
        sharing: ``head-wise`` as in the code.

    Raises:
        PositionError: ``max_distance`` is below 1, or the encoding does not give one integer per pair.
    """

    spec = Spec(
        "shaw2018",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="2*R*dh*copies"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="2*(2*t-1)*d*l"),
        note="in the code vectors have the width of a head and offsets are clipped",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), max_distance: int = 20, sharing: Sharing = "head-wise"
    ) -> None:
        super().__init__(dims, encoding, Window(encoding, max_distance), sharing)


class ShawKeys(PairRows, name="shaw-keys"):
    """Relative positions as vectors at keys only (Shaw et al. 2018; the form that later models kept).

    s_ij = q_i.(k_j + K[r_ij]) / sqrt(d_h),  r_ij = clip(s - t, -m, m).

    K is a table (2m + 1, d_h) per layer. Shaw et al. (2018, section 4.3) find that vectors at the values can be left
    out; without them fused attention kernels can be used. With m = t_max - 1 nothing is clipped: "relative_key" of
    BERT's reimplementations, whose table counts query minus key, so that its rows have the reverse order.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        max_distance: m, the farthest offset that has its own vector.
        sharing: ``head-wise`` as in the authors' code.

    Raises:
        PositionError: ``max_distance`` is below 1, or the encoding does not give one integer per pair.
    """

    spec = Spec(
        "shaw2018",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*dh*copies"),
        note="Table 1 has only the variant with vectors at the values too: 'shaw'",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), max_distance: int = 20, sharing: Sharing = "head-wise"
    ) -> None:
        window = Window(encoding, max_distance)
        super().__init__(dims, encoding, window, sharing)
        self.keys = Table(dims, window.size, sharing, width=dims.head, std=math.sqrt(2 / (window.size + dims.head)))

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(key=(prepared.map(self.keys.at(site.layer).__getitem__),))


class ShawAbsolute(PlacesModel, name="shaw-absolute"):
    """Vectors for pairs of absolute places, at keys and values (Shaw, Uszkoreit and Vaswani 2018, absolute variant).

    s_ij = q_i.(k_j + K[t, s]) / sqrt(d_h),  o_i = sum_j w_ij (v_j + V[t, s]),  t, s the places of query and key.

    K and V are tables (t_max t_max, d_h), one pair per layer, shared by the heads; row t t_max + s is that of (t, s).
    Places may be any other integers per unit, such as depths. (Survey, eqs. 9 and 10; Shaw et al. 2018, section 3.1,
    where vectors are of pairs of inputs; relative positions are then a choice of these, ``shaw``. No code of this
    variant is published.) Entries start with the deviation of a Glorot initialisation, as those of ``shaw``.

    Every pair has its own vector, so that tables are large and a structure has a row for each pair. Structures whose
    places are 0, 1, ... share them. Table 1 counts vectors as wide as the model.

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit.
        max_length: t_max.
        sharing: ``head-wise``, as in ``shaw``.

    Raises:
        PositionError: a ``max_length`` below 1, or a batch with a place of ``max_length`` or more.
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
        std = math.sqrt(2 / (max_length * max_length + dims.head))
        self.keys = Table(dims, max_length * max_length, sharing, width=dims.head, std=std)
        self.values = Table(dims, max_length * max_length, sharing, width=dims.head, std=std)

    def prepare(self, positions: Positions) -> Lookup:
        """The row of each pair; most pairs have different ones, so that they are not searched for equal ones."""
        places: Places = super().prepare(positions)
        all_places = torch.arange(self.max_length, device=self.keys.weight.device)[None]
        queries, keys = (all_places[:, p] if isinstance(p, slice) else p for p in (places.queries, places.keys))
        rows = queries[:, :, None] * self.max_length + keys[:, None, :]
        return each_pair(torch.arange(self.max_length**2), rows)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(
            key=(prepared.map(lambda _: self.keys.at(site.layer)),),
            value=(prepared.map(lambda _: self.values.at(site.layer)),),
        )


class HuangM1(SpanTable, name="huang-m1"):
    """A scalar per distance that multiplies the score (Huang et al. 2020, method 1).

    s_ij = r[|s - t|] q_i.k_j / sqrt(d_h),  r a learned scalar per distance 0..t_max - 1.

    Direction is not distinguished: that is ``huang-m2``. s - t is key minus query, or any other encoding of pairs.
    Pairs without a path and units of one node have their own scalars. (Huang et al. 2020, method 1; survey, eq. 18. No
    code by the authors is known.) The scalars start at 1, where attention ignores positions, and are shared by the
    heads of a layer as in the code of method 4: both are our choice.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        max_length: t_max; nothing is clipped, a distance of this or more is an error.
        sharing: ``head-wise``, a table per layer for all heads.

    Raises:
        PositionError: a ``max_length`` below 1, an encoding without one integer per pair, or a batch with farther
            pairs.
    """

    spec = Spec(
        "huang2020",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="d*l*h*(2*t-1)"),
        note="one scalar per distance, as the survey's own eq. 18 has it, in place of a vector per offset",
    )

    signed = False
    start = 1.0

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(gate=(self.entries(prepared, site),))


class HuangM2(SpanTable, name="huang-m2"):
    """A scalar per offset that multiplies the score (Huang et al. 2020, method 2).

    s_ij = r[t - s] q_i.k_j / sqrt(d_h),  r a learned scalar per offset from 1 - t_max to t_max - 1.

    As ``huang-m1``, with directions distinguished. t - s is query minus key, or the negative of any other encoding of
    pairs. Pairs without a path and units of one node have their own scalars. (Huang et al. 2020, method 2; survey,
    section 4.1.2. No code by the authors is known.) The scalars start at 1, where attention ignores positions, and are
    shared by the heads of a layer as in the code of method 4: both are our choice.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        max_length: t_max; nothing is clipped, an offset of this or more is an error.
        sharing: ``head-wise``, a table per layer for all heads.

    Raises:
        PositionError: a ``max_length`` below 1, an encoding without one integer per pair, or a batch with farther
            offsets.
    """

    spec = Spec(
        "huang2020",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="d*l*h*(2*t-1)"),
        note="one scalar per offset, as the survey's own text has it, in place of a vector",
    )

    start = 1.0

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(gate=(self.entries(prepared, site),))


class HuangM3(SpanTable, name="huang-m3"):
    """A vector per offset between query and key (Huang et al. 2020, method 3).

    s_ij = sum_c q_ic k_jc r[t - s]_c / sqrt(d_h),  r a learned vector (d_h) per offset from 1 - t_max to t_max - 1.

    t - s is query minus key, or the negative of any other encoding of pairs. Pairs without a path and units of one node
    have their own vectors. (Huang et al. 2020, method 3; survey, eq. 19. No code by the authors is known.) The vectors
    start at 1, where attention ignores positions, and are shared by the heads of a layer as in the code of method 4:
    both are our choice. A term of attention is added to q.k, so that it contains r - 1.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        max_length: t_max; nothing is clipped, an offset of this or more is an error.
        sharing: ``head-wise``, a table per layer for all heads.

    Raises:
        PositionError: a ``max_length`` below 1, an encoding without one integer per pair, or a batch with farther
            offsets.
    """

    spec = Spec(
        "huang2020",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*dh*copies"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="d*l*h*(2*t-1)"),
        note="vectors have the width of a head, and all heads of a layer share them",
    )

    vectors = True
    start = 1.0

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        table = self.table.at(site.layer)
        return Terms(product=(prepared.map(lambda rows: table[rows] - 1),))


class HuangM4(SpanTable, name="huang-m4"):
    """A vector per offset, multiplied with query and key (Huang et al. 2020, method 4).

    s_ij = (q_i.k_j + q_i.r[t - s] + k_j.r[t - s]) / sqrt(d_h),  r a learned vector (d_h) per offset.

    That is (q_i + r).(k_j + r) without r.r, for t - s from 1 - t_max to t_max - 1. t - s is query minus key, or the
    negative of any other encoding of pairs. Row t - s + t_max - 1 is that of t - s, as in the code. Pairs without a
    path and units of one node have their own vectors. (Huang et al. 2020, method 4; survey, eq. 20;
    "relative_key_query" of the code that its first author gave to BERT's reimplementation.) Entries start from N(0,
    0.02).

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        max_length: t_max; nothing is clipped, an offset of this or more is an error.
        sharing: ``head-wise``, a table per layer for all heads, as in the code.

    Raises:
        PositionError: a ``max_length`` below 1, an encoding without one integer per pair, or a batch with farther
            offsets.
    """

    spec = Spec(
        "huang2020",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*dh*copies"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="d*l*h*(2*t-1)"),
        note="vectors have the width of a head, and all heads of a layer share them",
    )

    vectors = True

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        vectors = self.entries(prepared, site)
        return Terms(key=(vectors,), query=(vectors,))

"""The labels on the path between two nodes (Zhu et al. 2019)."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from structpe.dropout import Dropout, dropout
from structpe.encodings.label_path import LabelPath, PathToken
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.path_attention import PathAttention, Slots, each_pair, glorot, slots_of, waves
from structpe.terms import Lookup, Terms

__all__ = ["Convolutions", "OrderedSlots", "PathBag", "ZhuAvg", "ZhuCnn", "ZhuFeature", "ZhuSelf", "ZhuSum"]


class Bag(nn.Module):
    """r_ij = weight sum_c (sqrt(w) E[c-th label of the path ji] + P_i), P_i the sinusoid of the query's place i.

    The sinusoid makes r_ij depend on more than the path: its rows are the distinct pairs (path, place) in use.

    Args:
        labels: embeds the labels of a path.
        weight: 1/c for the mean, 1 for the sum.
        dropout: of the embedded labels.
    """

    def __init__(self, labels: Slots, weight: float, dropout: float) -> None:
        super().__init__()
        self.labels, self.weight = labels, weight
        self.dropout = Dropout(dropout)

    def forward(self, paths: Lookup, places: Tensor | None) -> Lookup:
        """(R, w) vectors from the paths (R, c) of the pairs (query, key), and the places (b or 1, n) of the units."""
        bags = paths.transpose().map(lambda labels: self.weight * self.dropout(self.labels(labels)).sum(1))
        return bags if places is None else self._at_places(bags, places[:, :, None])

    def _at_places(self, bags: Lookup, place: Tensor) -> Lookup:
        n = bags.index.shape[1]
        batch = torch.arange(len(bags.rows), device=bags.rows.device)[:, None, None]
        both, which = _distinct(bags.rows[batch, bags.places()] * n + place, len(bags.table) * n)
        sinusoid = waves(n, bags.table.shape[1]).to(bags.table) * (self.weight * self.labels.slots)
        table = bags.table.index_select(0, both // n) + sinusoid.index_select(0, both % n)
        return each_pair(table, which)


def _distinct(codes: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The distinct ones of codes 0..count-1 in order, and for each code which of them it is."""
    if count > _MARKED * codes.numel() or torch.compiler.is_compiling():
        distinct, which = torch.unique(codes, return_inverse=True)
        return distinct, which
    marks = torch.zeros(count, dtype=torch.int64, device=codes.device)  # quicker than sorting
    marks[codes.flatten()] = 1
    return marks.nonzero()[:, 0], (marks.cumsum(0) - 1)[codes]


_MARKED = 4
"""Codes that are at most so many times as many as pairs are marked rather than sorted."""


class PathBag(PositionModel):
    """Vectors at keys and values, made of the mean or the sum of the embedded labels of a path: see :class:`Bag`."""

    mean: ClassVar[bool]
    """Whether the sum is divided by c."""

    def __init__(
        self, dims: Dims, encoding: LabelPath = LabelPath(limit=5), dropout: float = 0.0, sinusoid: bool = True
    ) -> None:
        slots = slots_of(self.name, encoding)
        super().__init__(dims, [encoding, *([Order()] if sinusoid else [])], V=encoding.size + 1)
        self.paths = Bag(Slots(encoding.size, slots, dims.head), 1 / slots if self.mean else 1.0, dropout)
        self.attention = PathAttention(dims)
        glorot(self)

    @property
    def causal(self) -> bool:
        """No: a decoding step has the pairs (query, key), and this model needs the pairs (key, query)."""
        return False

    def prepare(self, positions: Positions) -> Lookup:
        """The vector of each distinct path, or of each distinct path and place."""
        encoding, *order = self.encodings
        vectors: Lookup = self.paths(positions[encoding], positions[order[0]] if order else None)
        return vectors

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        terms: Terms = self.attention(prepared, site.layer)
        return terms


class OrderedSlots(nn.Module):
    """x_c = sqrt(w) E[c-th label of the path] + P_c, P the interleaved sinusoid.

    Args:
        labels: embeds the labels of a path.
        dropout: of x.
    """

    def __init__(self, labels: Slots, dropout: float) -> None:
        super().__init__()
        self.labels = labels
        self.waves: Tensor
        self.register_buffer("waves", waves(labels.slots, labels.table.embedding_dim), persistent=False)
        self.dropout = Dropout(dropout)

    def forward(self, paths: Tensor) -> Tensor:
        """(R, c, w) from paths (R, c or less)."""
        embedded: Tensor = self.dropout(self.labels(paths) + self.waves)
        return embedded


class Convolutions(nn.Module):
    """r = relu(sum_c F_c x_c + f), of each layer: one step of a convolution as wide as the path has slots.

    Args:
        dims: sizes of the Transformer.
        slots: c.
        dropout: of r.
    """

    def __init__(self, dims: Dims, slots: int, dropout: float) -> None:
        super().__init__()
        self.filters = nn.ModuleList(nn.Conv1d(dims.head, dims.head, slots) for _ in range(dims.layers))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, layer: int) -> Tensor:
        """(R, w) from (R, c, w)."""
        r: Tensor = self.dropout(torch.relu(self.filters[layer](x.transpose(1, 2))[:, :, 0]))
        return r


class ZhuAvg(PathBag, name="zhu-avg"):
    """The mean of the embedded labels of a path at keys and values (Zhu et al. 2019, avg).

    s_ij = q_i.(k_j + W_k n(r_ij) + b_k) / sqrt(d_h),  o_i = sum_j a_ij (v_j + W_v n(r_ij) + b_v).

    The vector of the path is::

        r_ij = 1/c sum_c (sqrt(d_h) E[label c of path ji] + P_i)

    The path has c slots, empty ones hold the label "blank". E (V, d_h) is shared by all layers, its row for "blank" is
    not learned; P_i is the interleaved sinusoid; n, a LayerNorm, W and b are of each layer and shared by its heads.
    (Zhu et al. 2019, section 3.2, "avg"; survey, eq. 28.)

    As in the authors' code, not as in the paper: r_ij is of the path from the key j to the query i; P is that of the
    query's place, while the paper has none, and the slot's would be expected; and vectors are as wide as a head (64
    there, fixed). The authors attach a node EOS to the root by an edge ``:EOS``; add it to the structure for the same
    result. Nearly all pairs (path, place) of a large graph are distinct: without the sinusoid, the tables are as small
    as those of the other models.

    Args:
        encoding: paths of labels, cut to c, which is 5 in the code.
        dropout: of the embedded labels, once per distinct path; in the code of these and P, and per pair.
        sinusoid: whether P_i is added, i being the place of the unit in reading order; without it r_ij depends only on
            the path, as in the paper, and a structure needs no order.

    Raises:
        PositionError: the encoding has no limit, or several paths per pair.
    """

    spec = Spec(
        "zhu2019",
        "graph",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=False, params="V*dh + 2*l*dh*(dh + 2)"),
        note="not in Table 1, which has the authors' best variants; absolute because the code adds the query's place",
    )

    mean = True


class ZhuSum(PathBag, name="zhu-sum"):
    """The sum of the embedded labels of a path at keys and values (Zhu et al. 2019, sum).

    s_ij = q_i.(k_j + W_k n(r_ij) + b_k) / sqrt(d_h),  o_i = sum_j a_ij (v_j + W_v n(r_ij) + b_v).

    The vector of the path is::

        r_ij = sum_c (sqrt(d_h) E[label c of path ji] + P_i)

    The path has c slots, empty ones hold the label "blank". E (V, d_h) is shared by all layers, its row for "blank" is
    not learned; P_i is the interleaved sinusoid; n, a LayerNorm, W and b are of each layer and shared by its heads.
    (Zhu et al. 2019, section 3.2, "sum"; survey, eq. 28.)

    No code is published; this is ``zhu-avg`` without 1/c; its notes on the authors' code apply. n divides by the
    deviation, so that the two differ by no more than the epsilon in n.

    Args:
        encoding: paths of labels, cut to c, which is 5 in the code.
        dropout: of the embedded labels, once per distinct path; in the code of these and P, and per pair.
        sinusoid: whether P_i is added, i being the place of the unit in reading order; without it r_ij depends only on
            the path, as in the paper, and a structure needs no order.

    Raises:
        PositionError: the encoding has no limit, or several paths per pair.
    """

    spec = Spec(
        "zhu2019",
        "graph",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=False, params="V*dh + 2*l*dh*(dh + 2)"),
        note="not in Table 1, which has the authors' best variants; absolute because the code adds the query's place",
    )

    mean = False


class ZhuFeature(PositionModel, name="zhu-feature"):
    """A vector per whole path of edge labels at keys and values (Zhu et al. 2019, feature-based).

    s_ij = q_i.(k_j + W_k n(r_ij) + b_k) / sqrt(d_h),  o_i = sum_j a_ij (v_j + W_v n(r_ij) + b_v).

    The vector of the path is r_ij = E[path ji]. E (V, d_h) has a row for each whole path of the encoding and is shared
    by all layers; n, a LayerNorm, W and b are of each layer and shared by its heads. (Zhu et al. 2019, section 3.2,
    "feature-based"; survey, eq. 28.)

    As in the authors' code, not as in the paper: r_ij is of the path from the key j to the query i, and its width is
    that of a head (64 there, fixed). The survey's formula counts (d, d) matrices. The authors attach a node EOS to the
    root by an edge ``:EOS``; add it to the structure for the same result.

    Args:
        encoding: whole paths.
    """

    spec = Spec(
        "zhu2019",
        "graph",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="V*dh + 2*l*dh*(dh + 2)"),
        note="not in Table 1, which has the authors' best variants; paths that are not in the vocabulary look alike",
    )

    def __init__(self, dims: Dims, encoding: PathToken = PathToken()) -> None:
        super().__init__(dims, [encoding], V=encoding.size)
        self.paths = nn.Embedding(encoding.size, dims.head)
        self.attention = PathAttention(dims)
        glorot(self)

    @property
    def causal(self) -> bool:
        """No: a decoding step has the pairs (query, key), and this model needs the pairs (key, query)."""
        return False

    def prepare(self, positions: Positions) -> Lookup:
        """The vector of each distinct path, at the pairs (key, query)."""
        of_pairs: Lookup = positions[self.encodings[0]]
        return of_pairs.transpose().map(self.paths)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        terms: Terms = self.attention(prepared, site.layer)
        return terms


class ZhuSelf(PositionModel, name="zhu-self"):
    """Self-attention among the labels of a path, then a convolution (Zhu et al. 2019, self-attention-based).

    s_ij = q_i.(k_j + W_k n(r_ij) + b_k) / sqrt(d_h),  o_i = sum_j a_ij (v_j + W_v n(r_ij) + b_v).

    The vector of the path is::

        x_c  = sqrt(d_h) E[label c of path ij] + P_c        c = 1..4, "blank" after the end of the path
        y    = MultiHead(x, x, x)                           blanks attend and are attended to
        r_ij = relu(sum_c F_c y_c + f)

    E (V, d_h) is shared by all layers, its row for "blank" is not learned; P is the interleaved sinusoid of the slot;
    MultiHead, with four matrices (d_h, d_h) and biases, the filter F (d_h, d_h, 4) with f, n, a LayerNorm, W and b are
    of each layer and shared by its heads. Both run once per distinct path. (Zhu et al. 2019, section 3.2,
    "self-attention-based"; survey, eqs. 28 and 29.)

    As in the authors' code, not as in the paper: the attentive pooling of eq. 29 is not used there, and the filter of
    the CNN variant follows instead. MultiHead has as many heads as the Transformer, here the largest number of them
    that divides d_h; vectors are as wide as a head (64 there, fixed). Unused parameters of the code (the pooling, two
    more matrices in MultiHead) are left out. The authors attach a node EOS to the root by an edge ``:EOS``; add it to
    the structure for the same result.

    Args:
        encoding: paths of labels, cut to the width of the filter, which is 4 in the code.
        dropout: of x, of the weights in MultiHead and of r, once per distinct path; in the code once per pair.

    Raises:
        PositionError: the encoding has no limit, or several paths per pair.
    """

    spec = Spec(
        "zhu2019",
        "graph",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="V*dh + l*dh*(6*dh + 8 + c*dh + 1)"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="5*d*d + (d + 1)*dr"),
        note="the code has a filter for the pooling, vectors as wide as a head, biases, and cuts paths to 4 labels",
    )

    def __init__(self, dims: Dims, encoding: LabelPath = LabelPath(limit=4), dropout: float = 0.0) -> None:
        slots = slots_of(self.name, encoding)
        super().__init__(dims, [encoding], V=encoding.size + 1, c=slots)
        heads = math.gcd(dims.heads, dims.head)
        self.labels = OrderedSlots(Slots(encoding.size, slots, dims.head), dropout)
        self.among = nn.ModuleList(_Attention(dims.head, heads, dropout) for _ in range(dims.layers))
        self.convolutions = Convolutions(dims, slots, dropout)
        self.attention = PathAttention(dims)
        glorot(self)

    def prepare(self, positions: Positions) -> Lookup:
        """The embedded labels of each distinct path."""
        of_pairs: Lookup = positions[self.encodings[0]]
        return of_pairs.map(self.labels)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        attended = prepared.map(self.among[site.layer])
        terms: Terms = self.attention(attended.map(lambda y: self.convolutions(y, site.layer)), site.layer)
        return terms


class _Attention(nn.Module):
    """Multi-head attention of x (R, c, w) to itself, without a mask."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (project(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for project in self._projections())
        # Few labels: two small products are faster than a fused kernel.
        weights = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1)
        o = dropout(weights, self.dropout if self.training else 0.0) @ v
        mixed: Tensor = self.out(o.transpose(1, 2).flatten(2))
        return mixed

    def _projections(self) -> tuple[nn.Module, nn.Module, nn.Module]:
        return self.query, self.key, self.value


class ZhuCnn(PositionModel, name="zhu-cnn"):
    """A convolution over the labels of a path at keys and values (Zhu et al. 2019, CNN-based).

    s_ij = q_i.(k_j + W_k n(r_ij) + b_k) / sqrt(d_h),  o_i = sum_j a_ij (v_j + W_v n(r_ij) + b_v).

    The vector of the path is::

        x_c  = sqrt(d_h) E[label c of path ij] + P_c        c = 1..4, "blank" after the end of the path
        r_ij = relu(sum_c F_c x_c + f)

    E (V, d_h) is shared by all layers, its row for "blank" is not learned; P is the interleaved sinusoid of the slot;
    the filter F (d_h, d_h, 4) with f, n, a LayerNorm, W and b are of each layer and shared by its heads. The filter
    runs once per distinct path. (Zhu et al. 2019, section 3.2, "CNN-based"; survey, eq. 28.)

    As in the authors' code: paths are cut to as many labels as the filter is wide, so that there is nothing to pool
    over, and vectors are as wide as a head (64 there, fixed). The authors attach a node EOS to the root by an edge
    ``:EOS``; add it to the structure for the same result.

    Args:
        encoding: paths of labels, cut to the width of the filter, which is 4 in the code.
        dropout: of x and of r, once per distinct path; in the code once per pair.

    Raises:
        PositionError: the encoding has no limit, or several paths per pair.
    """

    spec = Spec(
        "zhu2019",
        "graph",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="V*dh + l*dh*(2*(dh + 2) + c*dh + 1)"),
        note="Table 1 counts the self-attention variant; paths are cut, so that far pairs look alike",
    )

    def __init__(self, dims: Dims, encoding: LabelPath = LabelPath(limit=4), dropout: float = 0.0) -> None:
        slots = slots_of(self.name, encoding)
        super().__init__(dims, [encoding], V=encoding.size + 1, c=slots)
        self.labels = OrderedSlots(Slots(encoding.size, slots, dims.head), dropout)
        self.convolutions = Convolutions(dims, slots, dropout)
        self.attention = PathAttention(dims)
        glorot(self)

    def prepare(self, positions: Positions) -> Lookup:
        """The embedded labels of each distinct path."""
        of_pairs: Lookup = positions[self.encodings[0]]
        return of_pairs.map(self.labels)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        terms: Terms = self.attention(prepared.map(lambda x: self.convolutions(x, site.layer)), site.layer)
        return terms

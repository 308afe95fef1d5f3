"""The labels on the path between two nodes, as vectors at keys and values (Zhu et al. 2019).

Every model here has, in each layer ::

    s_ij = q_i.(k_j + W_k n(r_ij) + b_k) / sqrt(d_h),    o_i = sum_j a_ij (v_j + W_v n(r_ij) + b_v)

and makes r_ij of the labels on a path in its own way. n is a LayerNorm; W_k, W_v (d_h, d_h), b_k, b_v (d_h) and n are
of each layer, and shared by its heads.

Shapes: R distinct paths of a batch, c their labels at most ("slots"), w = d_h the width of a path vector.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from structpe.dropout import Dropout
from structpe.encodings.label_path import LabelPath, PathToken
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.networks import AttentionNetwork
from structpe.positions.path_labels import each_pair, rows_of_pairs, slots_of
from structpe.terms import Lookup, Terms

__all__ = ["ZhuAvg", "ZhuCnn", "ZhuFeature", "ZhuSelf", "ZhuSum"]


class AtKeysAndValues(nn.Module):
    """s_ij = q_i.(k_j + W_k n(r_ij) + b_k) / sqrt(d_h),  o_i = sum_j a_ij (v_j + W_v n(r_ij) + b_v)."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.norm = nn.ModuleList(nn.LayerNorm(dims.head, eps=1e-6) for _ in range(dims.layers))
        self.key = nn.ModuleList(nn.Linear(dims.head, dims.head) for _ in range(dims.layers))
        self.value = nn.ModuleList(nn.Linear(dims.head, dims.head) for _ in range(dims.layers))

    def forward(self, r: Lookup, layer: int) -> Terms:
        """The terms of a layer from the path vectors (R, w)."""
        normed = r.map(self.norm[layer])
        return Terms(
            key=(normed.map(lambda n: self.key[layer](n)[:, None]),),
            value=(normed.map(lambda n: self.value[layer](n)[:, None]),),
        )


class PathModel(PositionModel):
    """A vector per path of labels at keys and values; subclasses set ``attention`` last, then call :func:`glorot`."""

    attention: AtKeysAndValues

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        terms: Terms = self.attention(self.vectors(prepared, site.layer), site.layer)
        return terms

    def vectors(self, prepared: Lookup, layer: int) -> Lookup:
        """(R, w) r of the distinct paths in a layer; by default those prepared for all layers."""
        del layer
        return prepared


class ReversedPaths(PathModel):
    """A vector per path from the key to the query, made once for all layers."""

    @property
    def causal(self) -> bool:
        """No: a decoding step has the pairs (query, key), and this model needs the pairs (key, query)."""
        return False


def glorot(module: nn.Module) -> None:
    """Weights uniform with the variance of Glorot and Bengio 2010, as the authors start theirs; biases stay."""
    for parameter in module.parameters():
        if parameter.ndim > 1:
            nn.init.xavier_uniform_(parameter)


class Slots(nn.Module):
    """sqrt(w) E[label] for each of c slots of a path; those after its end are "blank": E's first row, not learned."""

    def __init__(self, labels: int, slots: int, width: int) -> None:
        super().__init__()
        self.slots = slots
        self.table = nn.Embedding(labels + 1, width, padding_idx=0)

    def forward(self, paths: Tensor) -> Tensor:
        """(R, c, w) from paths (R, c or less) of labels, -1 where a path has ended."""
        blank = paths.new_full((len(paths), self.slots - paths.shape[1]), -1)
        embedded: Tensor = self.table(torch.cat([paths, blank], dim=1) + 1)
        return embedded * math.sqrt(self.table.embedding_dim)


def waves(places: int, width: int) -> Tensor:
    """(places, width) interleaved sines and cosines in float32, number by number those of the authors' buffer.

    Computed in float64 they differ by 1e-8, and the model would then differ from the authors' outputs.
    """
    frequencies = torch.exp(torch.arange(0, width, 2, dtype=torch.float32) * -(math.log(10000.0) / width))
    angles = torch.arange(places, dtype=torch.float32)[:, None] * frequencies
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[:, :width]


class Bag(nn.Module):
    """r_ij = weight sum_c (sqrt(w) E[c-th label of the path ji] + P_i), P_i the sinusoid of the query's place i.

    The sinusoid makes r_ij depend on more than the path: its rows are the distinct pairs (path, place) in use. The
    weight is 1/c for the mean, 1 for the sum; dropout is of the embedded labels.
    """

    def __init__(self, labels: Slots, weight: float, dropout: float) -> None:
        super().__init__()
        self.labels, self.weight = labels, weight
        self.dropout = Dropout(dropout)

    def forward(self, paths: Lookup, places: Tensor | None) -> Lookup:
        """(R, w) vectors from the paths (R, c) of the pairs (query, key), and the places (b or 1, n) of the units."""
        bags = paths.transpose().map(lambda labels: self.weight * self.dropout(self.labels(labels)).sum(1))
        if places is None:
            return bags
        n = bags.index.shape[1]
        # A code for each pair of a row and a place: only those in use get a row of the new table.
        both, which = _distinct(rows_of_pairs(bags) * n + places[:, :, None], len(bags.table) * n)
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


class PathBag(ReversedPaths):
    """r_ij is the mean or the sum of the embedded labels of a path: see :class:`Bag`.

    Args:
        encoding: paths of labels, cut to c, which is 5 in the code.
        dropout: of the embedded labels, once per distinct path; in the code of these and P, and per pair.
        sinusoid: whether P_i is added, i being the place of the unit in reading order; without it r_ij depends only on
            the path, as in the paper, and a structure needs no order.

    Raises:
        PositionError: the encoding has no limit, or several paths per pair.
    """

    mean: ClassVar[bool]
    """Whether the sum is divided by c."""

    def __init__(
        self, dims: Dims, encoding: LabelPath = LabelPath(max_length=5), dropout: float = 0.0, sinusoid: bool = True
    ) -> None:
        slots = slots_of(self.name, encoding)
        super().__init__(dims, [encoding, *([Order()] if sinusoid else [])], V=encoding.size + 1)
        self.paths = Bag(Slots(encoding.size, slots, dims.head), 1 / slots if self.mean else 1.0, dropout)
        self.attention = AtKeysAndValues(dims)
        glorot(self)

    def prepare(self, positions: Positions) -> Lookup:
        """The vector of each distinct path, or of each distinct path and place."""
        encoding, *order = self.encodings
        vectors: Lookup = self.paths(positions[encoding], positions[order[0]] if order else None)
        return vectors


BAG = Spec(
    "zhu2019",
    "graph",
    Cells("B", "MAM", learnable=True, recurring=True, unbound=False, params="V*dh + 2*l*dh*(dh + 2)"),
    note="not in Table 1, which has the authors' best variants; absolute because the code adds the query's place",
)


class ZhuAvg(PathBag, name="zhu-avg"):
    """The mean of the embedded labels of a path at keys and values (Zhu et al. 2019, avg).

    s_ij = q_i.(k_j + W_k n(r_ij) + b_k) / sqrt(d_h),  o_i = sum_j a_ij (v_j + W_v n(r_ij) + b_v).

    The vector of the path is::

        r_ij = 1/c sum_c (sqrt(d_h) E[label c of path ji] + P_i)

    The path has c slots, empty ones hold the label "blank". E (V, d_h) is shared by all layers, its row for "blank" is
    not learned; P_i is the interleaved sinusoid; n, a LayerNorm, W and b are of each layer and shared by its heads.
    (Zhu et al. 2019, section 3.2, "avg"; survey, eq. 28.)

    As in the authors' code, not as in the paper: r_ij is of the path from the key j to the query i, as wide as a head
    (64 there, fixed); P is that of the query's place, while the paper has none, and the slot's would be expected. The
    authors attach a node EOS to the root by an edge ``:EOS``; add it to the structure for the same result. Nearly all
    pairs (path, place) of a large graph are distinct: without the sinusoid, the tables are as small as those of the
    other models.
    """

    spec = BAG
    mean = True


class ZhuSum(PathBag, name="zhu-sum"):
    """The sum of the embedded labels of a path at keys and values (Zhu et al. 2019, sum).

    s_ij = q_i.(k_j + W_k n(r_ij) + b_k) / sqrt(d_h),  o_i = sum_j a_ij (v_j + W_v n(r_ij) + b_v).

    The vector of the path is::

        r_ij = sum_c (sqrt(d_h) E[label c of path ji] + P_i)

    This is ``zhu-avg`` without 1/c; its symbols and notes apply, as no code is published for the sum. n divides by the
    deviation, which makes the two differ by no more than the epsilon in n. (Zhu et al. 2019, section 3.2, "sum";
    survey, eq. 28.)
    """

    spec = BAG
    mean = False


class ZhuFeature(ReversedPaths, name="zhu-feature"):
    """A vector per whole path of edge labels at keys and values (Zhu et al. 2019, feature-based).

    s_ij = q_i.(k_j + W_k n(r_ij) + b_k) / sqrt(d_h),  o_i = sum_j a_ij (v_j + W_v n(r_ij) + b_v).

    The vector of the path is r_ij = E[path ji]. E (V, d_h) has a row for each whole path of the encoding and is shared
    by all layers; n, W, b and the notes on the authors' code are those of ``zhu-avg``. The survey's formula counts (d,
    d) matrices. (Zhu et al. 2019, section 3.2, "feature-based"; survey, eq. 28.)

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
        self.attention = AtKeysAndValues(dims)
        glorot(self)

    def prepare(self, positions: Positions) -> Lookup:
        """The vector of each distinct path, at the pairs (key, query)."""
        of_pairs: Lookup = positions[self.encodings[0]]
        return of_pairs.transpose().map(self.paths)


class OrderedSlots(nn.Module):
    """x_c = sqrt(w) E[c-th label of the path] + P_c, P the interleaved sinusoid, with dropout of x."""

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
    """r = relu(sum_c F_c x_c + f), of each layer, with dropout of r: a convolution as wide as the path has slots."""

    def __init__(self, dims: Dims, slots: int, dropout: float) -> None:
        super().__init__()
        self.filters = nn.ModuleList(nn.Conv1d(dims.head, dims.head, slots) for _ in range(dims.layers))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, layer: int) -> Tensor:
        """(R, w) from (R, c, w)."""
        r: Tensor = self.dropout(torch.relu(self.filters[layer](x.transpose(1, 2))[:, :, 0]))
        return r


class ConvolvedPaths(PathModel):
    """r_ij = relu(sum_c F_c y_c + f), y the embedded labels of the path ij, or what self-attention makes of them.

    Args:
        encoding: paths of labels, cut to the width of the filter, which is 4 in the code.
        dropout: of x, of the weights in MultiHead, if there is one, and of r, once per distinct path; in the code once
            per pair.

    Raises:
        PositionError: the encoding has no limit, or several paths per pair.
    """

    attending: ClassVar[bool]
    """Whether labels attend to one another before the convolution."""

    def __init__(self, dims: Dims, encoding: LabelPath = LabelPath(max_length=4), dropout: float = 0.0) -> None:
        slots = slots_of(self.name, encoding)
        super().__init__(dims, [encoding], V=encoding.size + 1, c=slots)
        self.labels = OrderedSlots(Slots(encoding.size, slots, dims.head), dropout)
        if self.attending:
            heads = math.gcd(dims.heads, dims.head)
            each = dims.head, heads, dims.head // heads, dropout
            self.among = nn.ModuleList(AttentionNetwork(*each) for _ in range(dims.layers))
        self.convolutions = Convolutions(dims, slots, dropout)
        self.attention = AtKeysAndValues(dims)
        glorot(self)

    def prepare(self, positions: Positions) -> Lookup:
        """The embedded labels of each distinct path."""
        of_pairs: Lookup = positions[self.encodings[0]]
        return of_pairs.map(self.labels)

    def vectors(self, prepared: Lookup, layer: int) -> Lookup:
        y = prepared.map(self.among[layer]) if self.attending else prepared
        return y.map(lambda each: self.convolutions(each, layer))


class ZhuSelf(ConvolvedPaths, name="zhu-self"):
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
    """

    spec = Spec(
        "zhu2019",
        "graph",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="V*dh + l*dh*(6*dh + 8 + c*dh + 1)"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="5*d*d + (d + 1)*dr"),
        note="the code has a filter for the pooling, vectors as wide as a head, biases, and cuts paths to 4 labels",
    )
    attending = True


class ZhuCnn(ConvolvedPaths, name="zhu-cnn"):
    """A convolution over the labels of a path at keys and values (Zhu et al. 2019, CNN-based).

    s_ij = q_i.(k_j + W_k n(r_ij) + b_k) / sqrt(d_h),  o_i = sum_j a_ij (v_j + W_v n(r_ij) + b_v).

    The vector of the path is::

        x_c  = sqrt(d_h) E[label c of path ij] + P_c        c = 1..4, "blank" after the end of the path
        r_ij = relu(sum_c F_c x_c + f)

    This is ``zhu-self`` without MultiHead, with its symbols. As in the authors' code, paths are cut to as many labels
    as the filter is wide: nothing is left to pool over. (Zhu et al. 2019, section 3.2, "CNN-based"; survey, eq. 28.)
    """

    spec = Spec(
        "zhu2019",
        "graph",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="V*dh + l*dh*(2*(dh + 2) + c*dh + 1)"),
        note="Table 1 counts the self-attention variant; paths are cut, so that far pairs look alike",
    )
    attending = False

"""Positions in a tree: depth, path from the root, steps between two nodes.

A model raises a :class:`PositionError` for an encoding that does not give one number per unit, or integer per pair,
whichever it needs, and for a reach below 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.encodings.binned import Binned
from structpe.encodings.distance import UndirectedDistance
from structpe.encodings.order import Offset, Order
from structpe.encodings.trees import (
    AncestorDistance,
    BranchPath,
    ChildPath,
    Depth,
    LowestCommonAncestor,
    ParentChild,
    SiblingDistance,
    SPRRelative,
)
from structpe.encodings.walks import PersonalizedPageRank
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.batch import numbers, of_all_pairs, of_arity, offsets
from structpe.positions.sinusoids import CELLS, AddedSinusoids, interleaved, inverse_frequencies
from structpe.positions.tables import KeyValueTables, Sharing, Table, clipped_rows, everywhere, is_plain, steps
from structpe.precision import wide
from structpe.terms import Factor, Lookup, Terms

__all__ = [
    "SPR",
    "TPE",
    "ASTTrans",
    "CodeTransformer",
    "LowestCommonAncestorTables",
    "Peng",
    "SPRAbsolute",
    "SPRRelativeTables",
    "TPEOneHot",
]


class SPR(PositionModel, name="spr"):
    """Structural position representations, both kinds, together with the order of words (Wang X. et al. 2019).

    x_u + tanh(W [P_t; P_abs(u)] + c), and in the first layer the vectors K[rel_ij], V[rel_ij] of ``spr-rel``.

    t is the place of u in the sentence, abs(u) its depth, P the sinusoids of ``sinusoidal``, W (d, 2d). (Wang X. et al.
    2019; survey, section 4.3.1: best with both kinds of structural positions and the sequential ones.) The paper fuses
    the two absolute positions by a non-linear function; one layer with tanh is our choice, as no code by the authors is
    known. Without it: the sum of ``sinusoidal``, ``spr-abs`` and ``spr-rel``. The sequential relative positions that
    the paper also tries are ``shaw``; add it.

    Args:
        encoding: place of each unit.
        depth: depth of each unit.
        relative: signed integers per pair.
        max_distance: t_max; relative positions are clipped to +-t_max.
    """

    spec = Spec(
        "wang2019",
        "tree",
        Cells("B", "both", learnable=True, recurring=False, unbound=True, params="2*d*d + d + 2*R*d"),
        note="Table 1 has its two halves: 'spr-abs' and 'spr-rel'",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        depth: Encoding = Depth(),
        relative: Encoding = SPRRelative(),
        max_distance: int = 20,
    ) -> None:
        absolute = [of_arity(self.name, encoding, 1), of_arity(self.name, depth, 1)]
        window = clipped_rows(of_arity(self.name, relative, 2), max_distance)
        super().__init__(dims, [relative, *absolute], R=window.size)  # a graph that is no tree is refused as such
        self.window = window
        self.fuse = nn.Linear(2 * dims.width, dims.width)
        self.keys = Table(dims, window.size, "layer-wise", width=dims.head)
        self.values = Table(dims, window.size, "layer-wise", width=dims.head)

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        waves = [
            interleaved(numbers(self.name, encoding, prepared.queries(encoding)), self.dims.width)
            for encoding in self.encodings[1:]
        ]
        return x + torch.tanh(self.fuse(torch.cat(waves, dim=-1).to(x.dtype)))

    def terms(self, prepared: Positions, site: Site) -> Terms:
        if site.layer > 0:
            return Terms()
        rows = offsets(self.name, self.encodings[0], prepared[self.encodings[0]]).map(self.window.of)
        return Terms(key=(rows.map(self.keys.at(0).__getitem__),), value=(rows.map(self.values.at(0).__getitem__),))


class SPRAbsolute(AddedSinusoids, name="spr-abs"):
    """Absolute structural position representations: sinusoids of the depth in a tree (Wang X. et al. 2019).

    x_u + P_abs(u), abs(u) the depth of u in its tree, P the sinusoids of ``sinusoidal``.

    (Wang X. et al. 2019; survey, section 4.3.1.) No code by the authors is known. They find that depth only is much
    worse than the order of words only, and that both are best: ``spr``, or the sum of this and ``sinusoidal``.

    Args:
        encoding: integers per unit.
    """

    spec = Spec("wang2019", "tree", CELLS, table1=CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Depth()) -> None:
        super().__init__(dims, encoding)


class SPRRelativeTables(KeyValueTables, name="spr-rel"):
    """Relative structural position representations: vectors at keys and values (Wang X. et al. 2019).

    In the first layer s_ij = q_i.(k_j + K[rel_ij]) / sqrt(d_h),  o_i = sum_j w_ij (v_j + V[rel_ij]).

    rel_ij is the relative position in the tree, clipped to +-t_max; K and V are tables (2 t_max + 1, d), for each head
    its own d_h channels. (Wang X. et al. 2019, who follow Shaw et al. 2018; survey, section 4.3.1.) No code by the
    authors is known: only the first layer is Table 1's "not recurring", its 2(2 t_max + 1)d the width, and t_max our
    choice.

    Args:
        encoding: signed integers per pair.
        max_distance: t_max.
    """

    spec = Spec(
        "wang2019",
        "tree",
        Cells("R", "MAM", learnable=True, recurring=False, unbound=False, params="2*R*d"),
        table1=Cells("R", "MAM", learnable=True, recurring=False, unbound=False, params="2*(2*t+1)*d"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = SPRRelative(), max_distance: int = 20) -> None:
        super().__init__(dims, encoding, clipped_rows(encoding, max_distance), "layer-wise", std=0.02)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms() if site.layer > 0 else super().terms(prepared, site)


class TPE(PositionModel, name="tpe"):
    """Tree position encodings with decay parameters (Shiv and Quirk 2019).

    x_u + e_u with e_u[k, b, f] = onehot(b_k)[b] p_f^k sqrt((1 - p_f^2) d/2),  p = tanh(theta).

    b_0 is the branch to u, b_1 that to its parent, and so on for D_max steps; b < n branches; f < F copies, each with a
    learned decay p_f towards the root. The channel of e_u is (k n + b) F + f. If the model has another number of
    channels than these D_max n F, a linear layer with bias maps them. (Shiv and Quirk 2019, second version, and their
    code; survey, section 4.3.1.)

    Table 1 counts d/D_max parameters: F of them where the channels fit, less the factor n. theta starts as in another
    implementation, from U(0.7, 0.999); the authors' initialisation is not known.

    Args:
        encoding: paths of branches; D_max and n are its depth and width.
        copies: F, the number of decays.
    """

    spec = Spec(
        "shiv2019",
        "tree",
        Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="F + linear"),
        table1=Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="d/D_max"),
        note="Table 1 leaves out the number of branches, d/(D_max n), and the linear layer of widths that do not fit",
    )

    def __init__(self, dims: Dims, encoding: BranchPath = BranchPath(), copies: int = 4) -> None:
        channels = encoding.depth * encoding.width * copies
        fits = channels == dims.width
        super().__init__(dims, [encoding], F=copies, linear=0 if fits else (channels + 1) * dims.width)
        self.theta = nn.Parameter(torch.empty(copies).uniform_(0.7, 0.999))
        self.project: nn.Module = nn.Identity() if fits else nn.Linear(channels, dims.width)
        self.depth, self.width = encoding.depth, encoding.width

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        paths: Tensor = prepared.queries(self.encodings[0])
        decay = torch.tanh(wide(self.theta))
        steps = torch.arange(self.depth, device=decay.device).repeat_interleave(self.width)
        # (D_max n, F) what each one-hot entry weighs in each copy.
        weights = decay ** steps[:, None] * ((1 - decay**2) * self.dims.width / 2).sqrt()
        added: Tensor = self.project((paths[..., None] * weights).flatten(-2).to(x.dtype))
        return x + added


class TPEOneHot(PositionModel, name="tpe-onehot"):
    """Tree position encodings without parameters: the path from the root, one-hot (Shiv and Quirk 2019).

    x_u + [onehot(b_1), onehot(b_2), ..., 0], b_1 the branch to u, b_2 that to its parent, and so on up to the root.

    The vectors of D_max steps in a tree of n branches have D_max n numbers; the rest of the width d is zero. (Shiv and
    Quirk 2019, first version; survey, section 4.3.1.) Table 1 has the second version: ``tpe``.

    Args:
        encoding: paths of branches; its depth times its width must not exceed d.

    Raises:
        PositionError: the vectors are wider than the model.
    """

    spec = Spec(
        "shiv2019",
        "tree",
        Cells("A", "APE", learnable=False, recurring=False, unbound=False, params="0"),
        note="Table 1 has the version with parameters: 'tpe'",
    )

    def __init__(self, dims: Dims, encoding: BranchPath | None = None) -> None:
        encoding = encoding or BranchPath(depth=max(1, dims.width // 2))
        super().__init__(dims, [encoding])
        self.space = dims.width - encoding.depth * encoding.width
        if self.space < 0:
            raise PositionError(
                f"position model 'tpe-onehot' has {dims.width} channels, and paths of {encoding.depth} steps among "
                f"{encoding.width} branches need {encoding.depth * encoding.width}; "
                f"give branch-path a smaller depth, or use 'tpe', which projects"
            )

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        paths: Tensor = prepared.queries(self.encodings[0])
        return x + functional.pad(paths.to(x.dtype), (0, self.space))


_PARAMS = "V*e + (D*e + 1)*d + (e + 1)*d + 4*d + 4*(d*d + d)"
"""Formula of the number of parameters."""


class Peng(PositionModel, name="peng"):
    """The way from the root, and the relation of parent and child, in two dimensions (Peng et al. 2022).

    s_ij = (q_i.k_j + a_i.b_j + q_i.K[r_ij] + Q[r_ij].k_j) / sqrt(4 d_h), the four terms of their code.

    Global: a = A z, b = B z, z_u = LN(T cat[E[id_0], E[id_1], ...]), id being the way from the root to u: a node that
    is the i-th of n siblings has i + n(n-1)/2. Local: r_ij is the id of the child where one is the parent of the other,
    or none; Q = A' y, K = B' y, y[r] = LN(T' (+E[r])) if j is the child, LN(T' (-E[r])) if it is the parent, and LN(T'
    0) if neither. E (V, e) is for both, its row 0 is zero; T (D e -> d), T' (e -> d) and A, B, A', B' (d -> d) have
    biases, and all are shared by all layers. (Peng et al. 2022, section 3, and their code.)

    Their code divides the content in the same way, by a command-line option in place of 4. Its row 0 of E is not
    trained either, but random; with zero, pairs without a relation have only the vector of T'.

    Args:
        encoding: the way from the root.
        relation: of parent and child; as wide as the ways.
        embedding: e.

    Raises:
        PositionError: ways and relations of another width, or an embedding below 1.
    """

    spec = Spec("peng2022", "tree", Cells("B", "MAM", learnable=True, recurring=True, unbound=False, params=_PARAMS))

    def __init__(
        self, dims: Dims, encoding: ChildPath = ChildPath(), relation: ParentChild = ParentChild(), embedding: int = 8
    ) -> None:
        if encoding.width != relation.width or embedding < 1:
            raise PositionError(
                f"position model {self.name!r} needs ways and relations of one width and an embedding of 1 or more; "
                f"given are widths {encoding.width} and {relation.width}, embedding {embedding}"
            )
        ids, d = 1 + encoding.width * (encoding.width + 1) // 2, dims.width
        super().__init__(dims, [encoding, relation], V=ids, e=embedding, D=encoding.depth)
        self.embedding = nn.Embedding(ids, embedding, padding_idx=0)
        nn.init.xavier_normal_(self.embedding.weight)
        self.ways = nn.Sequential(nn.Linear(encoding.depth * embedding, d), nn.LayerNorm(d))
        self.relations = nn.Sequential(nn.Linear(embedding, d), nn.LayerNorm(d))
        self.of_ways = nn.ModuleList(nn.Linear(d, d) for _ in range(2))
        self.of_relations = nn.ModuleList(nn.Linear(d, d) for _ in range(2))

    def prepare(self, positions: Positions) -> Terms:
        """The terms, which are the same for every layer."""
        table = functional.pad(self.embedding.weight[1:], (0, 0, 1, 0))  # E, whose row 0 is zero
        related = offsets(self.name, self.encodings[1], positions[self.encodings[1]])
        y = self.relations(related.table.sign()[:, None] * functional.embedding(related.table.abs(), table))
        query, key = (Lookup(self._heads(of(y)), related.rows, related.index) for of in self.of_relations)
        return Terms(factors=(self._global(positions, table),), key=(key,), query=(query,), scale=0.5)

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared

    def _global(self, positions: Positions, table: Tensor) -> Factor:
        """The vectors a and b of all units."""

        def encoded(ids: Tensor) -> Tensor:
            z: Tensor = self.ways(functional.embedding(ids, table).flatten(-2))
            return z

        of_keys, of_queries = positions[self.encodings[0]], positions.queries(self.encodings[0])
        keys = encoded(of_keys)
        queries = keys if of_queries is of_keys else encoded(of_queries)
        left, right = (cast(nn.Linear, each) for each in self.of_ways)
        scale = math.sqrt(4 * self.dims.head)
        a = functional.linear(queries, left.weight / scale, left.bias / scale)
        return Factor(self._heads(a).transpose(1, 2), self._heads(right(keys)).transpose(1, 2))

    def _heads(self, vectors: Tensor) -> Tensor:
        return vectors.reshape(*vectors.shape[:-1], self.dims.heads, self.dims.head)


class LowestCommonAncestorTables(KeyValueTables, name="lowest-common-ancestor"):
    """Steps up and down between two nodes of a tree as vectors at keys and values (Villmow et al. 2021).

    s_ij = q_i.(k_j + K[up, down]) / sqrt(d_h),  o_i = sum_j w_ij (v_j + V[up, down]), up and down at most m.

    From the node of i it is ``up`` steps to the lowest common ancestor of i and j, and from there ``down`` to the node
    of j. K and V have (m + 1)^2 rows of width d_h. (Villmow et al. 2021 use these steps in Shaw et al.'s attention
    instead of offsets; no code by them is known. Tables are shared as in ``shaw``.)

    Args:
        encoding: (up, down) per pair.
        max_distance: m, the most steps that have their own vectors.
        sharing: ``head-wise`` as in Shaw's code.
    """

    spec = Spec(
        "villmow2021", "tree", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="2*R*dh*copies")
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = LowestCommonAncestor(),
        max_distance: int = 8,
        sharing: Sharing = "head-wise",
    ) -> None:
        super().__init__(dims, encoding, _Rows(max_distance), sharing)

    def of_pairs(self, positions: Positions) -> Lookup:
        """The steps up and down of each pair."""
        of_pairs: Lookup = positions[self.encodings[0]]
        if of_pairs.table.ndim != 2 or of_pairs.table.shape[1] != 2:
            raise PositionError(
                f"position model {self.name!r} needs two numbers per pair, steps up and down; "
                f"{self.encodings[0].name!r} gives others; choose the encoding {LowestCommonAncestor.name!r}"
            )
        return of_pairs


@dataclass(frozen=True)
class _Rows:
    """A row for each number of steps up and down, up to ``max_distance`` each."""

    max_distance: int

    @property
    def size(self) -> int:
        return (self.max_distance + 1) ** 2

    def of(self, values: Tensor) -> Tensor:
        up, down = values.clamp(0, self.max_distance).unbind(-1)
        return up * (self.max_distance + 1) + down


_FAR = 10000
"""Replaces UNREACHABLE in the sinusoid, as in the authors' code."""


class CodeTransformer(PositionModel, name="code-transformer"):
    """Several distances in a tree at once, each as in Transformer-XL (Zuegner et al. 2021, Code Transformer).

    s_ij = ((q_i + u).k_j + sum_r (q_i + p_r).(W_r R[b_r(i, j)] + c_r)) / sqrt(d_h), r over n distances.

    R[b] (d) = cat[sin(b w_c), cos(b w_c)], w_c = 10000^(-2c/d), c < d/2, the angles b w_c rounded to float32 as theirs,
    which is visible at 10,000; b_r(i, j) is the bin that the distance r of i and j is in, and 10,000 without a path. Of
    each layer are W_r (d, d), c_r (d), u and p_r (h, d_h). (Zuegner et al. 2021, section 3.1, eq. 5 to 8, and their
    code, which this follows where the paper leaves it open: bins of each tree, see :class:`structpe.encodings.Binned`;
    u and p of each layer.) c_r is the same for all keys, and the softmax cancels it. The distances are those of their
    experiments: personalised PageRank, ancestors, siblings, shortest paths and, the context of the title, the sequence.
    Units of one node, k places apart, have the R of k.

    Args:
        encoding: one number per pair, of each distance.

    Raises:
        PositionError: no distance, or an encoding without one number per pair.
    """

    spec = Spec(
        "zuegner2021",
        "tree",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=False, params="l*(n*(d*d + 2*d) + d)"),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: tuple[Encoding, ...] = (
            Binned(PersonalizedPageRank()),
            Binned(AncestorDistance()),
            Binned(SiblingDistance()),
            Binned(UndirectedDistance()),
            Binned(Offset()),
        ),
    ) -> None:
        if not encoding:
            raise PositionError(f"position model {self.name!r} needs one distance or more; none is given")
        n, shape = len(encoding), (dims.layers, dims.heads, dims.head)
        super().__init__(dims, [of_arity(self.name, each, 2) for each in encoding], n=n)
        self.project = nn.ModuleList(nn.Linear(dims.width, dims.width) for _ in range(dims.layers * n))
        for name, parameter in self.project.named_parameters():
            nn.init.xavier_uniform_(parameter) if name.endswith("weight") else nn.init.zeros_(parameter)
        self.content = nn.Parameter(torch.randn(shape) * math.sqrt(2 / (dims.heads + dims.head)))
        self.position = nn.Parameter(torch.randn(dims.layers, n, *shape[1:]) * math.sqrt(2 / (n + dims.width)))

    def prepare(self, positions: Positions) -> list[Lookup]:
        """R (r, d) of each distinct bin of each distance, once for all layers."""
        each = [offsets(self.name, encoding, positions[encoding]) for encoding in self.encodings]
        return [of_pairs.map(self._waves) for of_pairs in each]

    def terms(self, prepared: list[Lookup], site: Site) -> Terms:
        first = site.layer * len(prepared)
        projections = self.project[first : first + len(prepared)]
        keys = tuple(
            Lookup(linear(waves.table).unflatten(-1, (self.dims.heads, -1)), waves.rows, waves.index)
            for linear, waves in zip(projections, prepared, strict=True)
        )
        position = self.position[site.layer] / math.sqrt(self.dims.head)
        bias = tuple(Lookup((k.table * p).sum(-1), k.rows, k.index) for k, p in zip(keys, position, strict=True))
        return Terms(key=keys, query=(everywhere(self.content[site.layer][None], prepared[0]),), bias=bias)

    def _waves(self, values: Tensor) -> Tensor:
        values = values.double()  # half precision has no 10,000, and is infinite where it should be unreachable
        bins = torch.where(values < UNREACHABLE // 2, values, torch.where(values > WITHIN // 2, steps(values), _FAR))
        rounded = inverse_frequencies(self.dims.width, bins.device).float()
        angles = (bins.float()[..., None] * rounded).double()
        return torch.cat([angles.sin(), angles.cos()], dim=-1)[..., : self.dims.width].to(self.content.dtype)


class ASTTrans(PositionModel, name="ast-trans"):
    """Attention among ancestors and descendants in some heads, and among siblings in the others (Tang et al. 2022).

    s_ij = (q_i.k_j + q_i.K[r_ij] + Q[r_ij].k_j) / (3 sqrt(d_h)),  o_i = sum_j softmax_j(s_ij) (v_j + V[r_ij]),

    over the units j that r_ij relates to i. In the first heads r_ij is how many generations j is below i, in the others
    how many places it is after i among the children of their parent; pairs farther than +-t_max do not attend. K, Q and
    V are tables (2 t_max, d_h) for each of the two relations, shared by the heads of one relation and by all layers,
    and multiplied by sqrt(d_h); a unit and those of its own node have r = 0, and no vectors. (AST-Trans; Tang et al.
    2022, their code, ``FastMultiHeadedAttention``, compared with it in float64.) As there, tables start from Xavier's
    uniform distribution.

    Args:
        dims: sizes of the Transformer.
        ancestors: generations per pair; pairs without a path are those of no ancestor and descendant.
        siblings: places among siblings per pair, likewise.
        max_distance: t_max, 7 in their code.
        ancestor_heads: how many of the heads have ancestors and descendants; None for half of them, rounded up. Their
            code has 1 or all of 8.

    Raises:
        PositionError: more heads than there are, or no head for either.
    """

    spec = Spec(
        "tang2022",
        "tree",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="12*t*dh"),
    )

    def __init__(
        self,
        dims: Dims,
        ancestors: Encoding = AncestorDistance(),
        siblings: Encoding = SiblingDistance(),
        max_distance: int = 7,
        ancestor_heads: int | None = None,
    ) -> None:
        above = -(-dims.heads // 2) if ancestor_heads is None else ancestor_heads
        if not 0 <= above <= dims.heads:
            raise PositionError(
                f"position model {self.name!r} has {dims.heads} heads, and {above} are to attend to ancestors; give 0 "
                f"to {dims.heads}"
            )
        super().__init__(dims, [of_all_pairs(self.name, each) for each in (ancestors, siblings)], t=max_distance)
        self.above, self.max_distance = above, max_distance
        self.tables = nn.Parameter(torch.empty(3, 2, 2 * max_distance, dims.head))
        bound = (6 / (2 * max_distance + 2 + dims.head)) ** 0.5  # their tables have two more rows
        nn.init.uniform_(self.tables, -bound, bound)

    def prepare(self, positions: Positions) -> Terms:
        """The same for all layers: a row for no relation, for r = 0, and for each r of each relation."""
        t = self.max_distance
        above, beside = (offsets(self.name, each, positions[each]).map(self._row).dense() for each in self.encodings)
        index = torch.where(above > 0, above, torch.where(beside > 1, beside + 2 * t, beside))
        rows = torch.arange(4 * t + 2, device=index.device)[None]
        heads = torch.arange(self.dims.heads, device=index.device) >= self.above
        # (R, h) which relation a row is of, and whether a head has it.
        own = (rows[0, :, None] == 1) | ((rows[0, :, None] > 1) & ((rows[0, :, None] > 2 * t + 1) == heads))
        bias = torch.zeros(own.shape, dtype=self.tables.dtype, device=index.device).masked_fill(~own, -math.inf)
        every = self.tables.flatten(1, 2) * self.dims.head**0.5  # (3, 4 t, d)
        vectors = functional.pad(every, (0, 0, 2, 0))[:, :, None] * own[:, :, None]
        key, query, value = (Lookup(each, rows, index, shared=True) for each in vectors.unbind())
        masks = Lookup(bias, rows, index, shared=True)
        return Terms(key=(key,), query=(query,), value=(value,), bias=(masks,), scale=1 / 3)

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared

    def _row(self, values: Tensor) -> Tensor:
        """(R,) 0 for no relation or one too far away, 1 for the own node, then those above or before, and the rest."""
        t, plain = self.max_distance, is_plain(values)
        near = torch.where(values < 0, 1 - values, 1 + t + values)
        near = torch.where(plain & (values.abs() <= t), near, 0)
        return torch.where((values == 0) | ~(plain | (values == UNREACHABLE)), 1, near)

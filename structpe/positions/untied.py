"""Absolute positions whose product is a term of its own, separate from that of the content: TUPE and DIET-ABS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset, Order
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.batch import of_all_pairs, of_whole, offsets
from structpe.positions.buckets import Buckets
from structpe.positions.places import PlaceRows, PlacesModel, at_places
from structpe.positions.tables import Rows, Sharing, Table
from structpe.terms import Factor, Lookup, Projection, Terms

__all__ = [
    "AbsScalar",
    "DIETAbsolute",
    "DIETAbsoluteLinear",
    "PlaceProduct",
    "TUPEAbsolute",
    "TUPEModel",
    "TUPERelative",
    "Untied",
]


LEARNED = partial(Cells, "A", "MAM", True, True, False)
"""Absolute, in attention, learned, recurring, bound; takes the formula of parameters."""
TABLE1 = Cells("B", "MAM", learnable=True, recurring=False, unbound=False, params="2*d*d + t*(d + 2)")


class Untied(nn.Module):
    """a_ij = (U_q n(P[t + 1]) + c_q).(U_k n(P[s + 1]) + c_k) / sqrt(2 d_h), of each head; the first unit is special.

    n is a LayerNorm, P (t_max + 1, d). The unit at place 0 is ``[CLS]``: a_0j = theta_1 for all j, and a_i0 = theta_2
    for all other i. theta_1 is the product of row 0 with itself, theta_2 that of row 1, which no unit has otherwise.

    Args:
        model: name of the position model.
        dims: sizes of the Transformer.
        max_length: t_max.
    """

    def __init__(self, model: str, dims: Dims, max_length: int) -> None:
        super().__init__()
        self.model, self.dims, self.max_length = model, dims, max_length
        self.table = nn.Parameter(torch.randn(max_length + 1, dims.width) * 0.02)
        self.norm = nn.LayerNorm(dims.width)
        self.query = nn.Linear(dims.width, dims.width)
        self.key = nn.Linear(dims.width, dims.width)
        for projection in (self.query, self.key):
            nn.init.normal_(projection.weight, std=0.02)
            nn.init.zeros_(projection.bias)

    def forward(self, positions: Positions, encoding: Encoding) -> Factor:
        """The bias of a batch, of rank d_h + 2: two more channels are for the first unit."""
        places = PlaceRows.of(self.model, encoding, positions, self.max_length)
        normed = self.norm(self.table)
        q, k = (project(normed).unflatten(-1, (self.dims.heads, -1)) for project in (self.query, self.key))
        q = q * (2 * self.dims.head) ** -0.5
        first, others = (q[:2] * k[:2]).sum(-1)[..., None]  # theta_1 and theta_2, (h, 1)
        none, one = torch.zeros_like(first), torch.ones_like(first)
        left = _with_first(q[1:], [one, none], [none, one])
        right = _with_first(k[1:], [none, first], [others, first])
        heads = self.dims.heads
        return Factor(at_places(left, places.queries, heads), at_places(right, places.keys, heads))


def _with_first(rows: Tensor, others: list[Tensor], first: list[Tensor]) -> Tensor:
    """(t_max, h, d_h + 2): two channels (h, 1) after the rows; the first row has only its own two."""
    special = torch.cat([torch.zeros_like(rows[0]), *first], dim=-1)
    rest = torch.cat([rows[1:], *(channel.expand(len(rows) - 1, -1, -1) for channel in others)], dim=-1)
    return torch.cat([special[None], rest])


class TUPEModel(PositionModel):
    """s_ij = (q_i.k_j + p_i.r_j) / sqrt(2 d_h), with the product p_i.r_j of places of :class:`Untied`.

    Args:
        encoding: integers 0, 1, ... per unit.
        max_length: t_max, number of places.
        layers: how many layers, from the first on, have the terms; None for all.

    Raises:
        PositionError: a batch has a place of ``max_length`` or more.
    """

    def __init__(
        self, dims: Dims, encodings: Sequence[Encoding], max_length: int, layers: int | None, **sizes: int
    ) -> None:
        of_whole(self.name, encodings[0])
        super().__init__(dims, encodings, t=max_length, **sizes)
        self.layers = dims.layers if layers is None else layers
        self.places = Untied(self.name, dims, max_length)

    def prepare(self, positions: Positions) -> Terms:
        """The terms of a batch, the same for all layers that have them."""
        return Terms(factors=(self.places(positions, self.encodings[0]),), scale=math.sqrt(0.5))

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared if site.layer < self.layers else Terms()


class TUPEAbsolute(TUPEModel, name="tupe-a"):
    """Untied absolute positions (Ke, He and Liu 2021, TUPE-A).

    s_ij = (q_i.k_j + p_i.r_j) / sqrt(2 d_h),  p_t = U_q n(P[t + 1]) + c_q,  r_s = U_k n(P[s + 1]) + c_k.

    P (t_max + 1, d) is a learned table of places, n a LayerNorm; U_q, U_k (d, d) and c_q, c_k (d) are split into heads.
    The first unit, ``[CLS]``, is special: p_i.r_j is p_i'.r_j' of row 0 of P with itself for i = 0, and that of row 1
    with itself for j = 0 otherwise. The place of a unit may be any number per unit: with depths the root of a tree is
    the special one. (Ke et al. 2021, sections 3.1 and 3.2; survey, eq. 13.)

    As in the authors' code, where the survey differs: LayerNorm and biases; the same p_i.r_j in every layer, not the
    first alone, which is ``layers=1``; the two values for ``[CLS]`` are of each head. The score of the units is divided
    by sqrt(2 d_h) too, in the layers that have the term. Entries start from N(0, 0.02).
    """

    spec = Spec(
        "ke2021",
        "sequence",
        LEARNED("(t + 1)*d + 2*(d*d + d) + 2*d"),
        table1=TABLE1,
        note="the row of Table 1 is 'tupe-r'; in the code every layer has the term, with a LayerNorm and biases",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Order(), max_length: int = 512, layers: int | None = None
    ) -> None:
        super().__init__(dims, [encoding], max_length, layers)


class TUPERelative(TUPEModel, name="tupe-r"):
    """Untied absolute positions and a bias per bucket of offsets (Ke, He and Liu 2021, TUPE-R).

    s_ij = (q_i.k_j + p_i.r_j) / sqrt(2 d_h) + b[bucket(s - t)]:  ``tupe-a``, and a scalar per head and bucket.

    p_i.r_j is that of ``tupe-a``, the first unit, ``[CLS]``, being special. The buckets of s - t, key minus query, are
    T5's in both directions (see ``t5``), except for the first unit: as a query it has bucket B/2, which no offset falls
    into, for all keys and itself; as a key of the others it has bucket B, the one after the last. The table is shared
    by all layers. Any other encodings of single units and of pairs can be used: with depths and distances the root of a
    tree is the special unit. (Ke et al. 2021, section 3; survey, section 4.1.2.)

    As in the authors' code, where the survey differs: buckets instead of a scalar per offset, and the differences
    listed in ``tupe-a``. Pairs without a path and units of one node have their own rows. Entries start from N(0, 0.02).

    Args:
        offset: signed integers per pair.
        num_buckets: B, an even number of 4 or more.
        max_distance: D, above B/4; from here on all distances share the last bucket.

    Raises:
        PositionError: other buckets.
    """

    spec = Spec(
        "ke2021",
        "sequence",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=False, params="(t + 1)*d + 2*(d*d + d) + 2*d + R*h"),
        table1=TABLE1,
        note="in the code every layer has the term, with a LayerNorm, biases, and buckets in place of offsets",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        offset: Encoding = Offset(),
        max_length: int = 512,
        num_buckets: int = 32,
        max_distance: int = 128,
        layers: int | None = None,
    ) -> None:
        buckets = Buckets(self.name, num_buckets, max_distance, bidirectional=True)
        rows = Rows(of_all_pairs(self.name, offset), num_buckets + 1, buckets)
        super().__init__(dims, [encoding, offset], max_length, layers, R=rows.size)
        self.rows = rows
        self.bias = nn.Parameter(torch.randn(rows.size, dims.heads) * 0.02)

    def prepare(self, positions: Positions) -> Terms:
        bias = self._of_pairs(positions).map(self.bias.__getitem__).share()
        return super().prepare(positions) + Terms(bias=(bias,))

    def _of_pairs(self, positions: Positions) -> Lookup:
        """The row of each pair: two more rows than there are values, for the first unit as query and as key."""
        encoding, offset = self.encodings
        of_pairs = offsets(self.name, offset, positions[offset]).map(self.rows.of)
        table, rows, count = of_pairs.table, of_pairs.rows, self.rows.offsets - 1
        as_key, as_query = table.new_tensor([count]), table.new_tensor([count // 2])
        own = torch.arange(len(table), len(table) + 2, device=rows.device).expand(len(rows), -1)
        keys, queries = positions[encoding] == 0, positions.queries(encoding) == 0
        width = rows.shape[1]
        index = torch.where(keys[:, None, :], width, of_pairs.dense_index())
        index = torch.where(queries[:, :, None], width + 1, index)
        return Lookup(torch.cat([table, as_key, as_query]), torch.cat([rows, own], dim=1), index)


class PlaceProduct(PlacesModel):
    """s_ij += a product of vectors (r) of the places i and j: a :class:`Factor`, which lengthens a head by r channels.

    Args:
        rank: r; None for the width of a head, as in the paper.
        sharing: which layers and heads have the same tables; ``none`` is the default of the paper.
    """

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        max_length: int = 512,
        rank: int | None = None,
        sharing: Sharing = "none",
    ) -> None:
        super().__init__(dims, encoding, max_length)
        self.rank = dims.head if rank is None else rank
        self.sizes = {"t": max_length, "r": self.rank, "copies": Table.copies(sharing, dims)}


class AbsScalar(PlaceProduct, name="abs-scalar"):
    """A product of absolute places in the attention of each head, from one table (Chen et al. 2021, ABS-SCALAR).

    s_ij += P[i] . P[j], outside the scale; P is a learned table (t_max, r) per head and layer.

    (Chen et al. 2021, the first version of their paper, section 2.4, eq. 7; no code by the authors is known.) The term
    is symmetric: it does not distinguish "ahead" and "behind", and the product of a place with itself is never
    negative. The published version has two tables instead: ``diet-abs``. The S of eq. 7, the attention among segments,
    is ``segment-bias``.
    """

    spec = Spec("chen2021demystifying", "sequence", LEARNED("t*r*copies"))

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        max_length: int = 512,
        rank: int | None = None,
        sharing: Sharing = "none",
    ) -> None:
        super().__init__(dims, encoding, max_length, rank, sharing)
        self.table = Table(dims, max_length, sharing, self.rank)

    def terms(self, prepared: PlaceRows, site: Site) -> Terms:
        table = self.table.at(site.layer)
        left, right = (at_places(table, of, self.dims.heads) for of in (prepared.queries, prepared.keys))
        return Terms(factors=(Factor(left, right),))


class DIETAbsolute(PlaceProduct, name="diet-abs"):
    """A product of absolute places in the attention of each head (Chen et al. 2021, DIET-ABS).

    s_ij += P_Q[i] . P_K[j], outside the scale; P_Q and P_K are learned tables (t_max, r) per head and layer.

    (Chen et al. 2021, section 3.1, eq. 1; no code by the authors is known.) The rank r is free: at r = t_max any matrix
    of places can be learned, ``diet-rel`` among them. The paper scales q.k by 1/sqrt(d) as printed; as in the BERT that
    it changes, d is the width of a head here. It recommends ``layer-wise`` sharing. Its E_S, the attention among
    segments, is a separate model, ``segment-bias``: DIET-ABS as in eq. 1 is the sum of both.

    The paper keeps P_Q P_K^T between batches at inference; here this is not needed, because rows in reading order are a
    view of the tables.
    """

    spec = Spec("chen2021", "sequence", LEARNED("2*t*r*copies"))

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        max_length: int = 512,
        rank: int | None = None,
        sharing: Sharing = "none",
    ) -> None:
        super().__init__(dims, encoding, max_length, rank, sharing)
        self.queries, self.keys = (Table(dims, max_length, sharing, self.rank) for _ in range(2))

    def terms(self, prepared: PlaceRows, site: Site) -> Terms:
        left = at_places(self.queries.at(site.layer), prepared.queries, self.dims.heads)
        right = at_places(self.keys.at(site.layer), prepared.keys, self.dims.heads)
        return Terms(factors=(Factor(left, right),))


class DIETAbsoluteLinear(PlaceProduct, name="diet-abs-lin"):
    """Absolute places in the attention of Linformer (Chen et al. 2021, DIET-ABS-LIN).

    s_ic = q_i . k'_c / sqrt(d_h) + P_Q[i] . P_K[c],  o_i = sum_c softmax_c(s_ic) v'_c,  k' = E k,  v' = F v.

    E and F (c, t_max) mix the keys and the values of all places into c of each: attention is linear in the number of
    units (Linformer, Wang et al. 2020); P_Q (t_max, r) is of places, P_K (c, r) of mixtures. (Chen et al. 2021, section
    3.4, eq. 4, which does not write F; no code by the authors is known.)

    The paper multiplies hidden vectors by E before it projects them, (E X) W_K. Here the projected keys are mixed,
    which is the same except for the bias of that projection. A unit is mixed by its place, and padding is left out.
    Segments enter at the input in the paper (``segment-input``): a mixture has none. The paper does not say which heads
    and layers share E and F; an E and F per layer, Linformer's "headwise", is our choice, and so is Glorot's deviation,
    sqrt(2 / (c + t_max)), that they start from.

    Args:
        mixtures: c; 32 at 128 places and 256 at 512 in the paper.
        sharing: of P_Q and P_K.
        mixing: which layers and heads have the same E and F.
    """

    spec = Spec(
        "chen2021",
        "sequence",
        LEARNED("(t + c)*r*copies + 2*c*t*mixers"),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        max_length: int = 512,
        mixtures: int = 32,
        rank: int | None = None,
        sharing: Sharing = "none",
        mixing: Sharing = "head-wise",
    ) -> None:
        super().__init__(dims, encoding, max_length, rank, sharing)
        self.sizes |= {"c": mixtures, "mixers": Table.copies(mixing, dims)}
        self.queries = Table(dims, max_length, sharing, self.rank)
        self.keys = Table(dims, mixtures, sharing, self.rank)
        glorot = math.sqrt(2 / (mixtures + max_length))
        self.of_keys, self.of_values = (Table(dims, max_length, mixing, mixtures, std=glorot) for _ in range(2))

    def terms(self, prepared: PlaceRows, site: Site) -> Terms:
        heads = self.dims.heads
        left = at_places(self.queries.at(site.layer), prepared.queries, heads)
        right = at_places(self.keys.at(site.layer), slice(None), heads)
        mixers = (at_places(of.at(site.layer), prepared.keys, heads).mT for of in (self.of_keys, self.of_values))
        return Terms(factors=(Factor(left, right),), projection=Projection(*mixers))

    @property
    def causal(self) -> bool:
        """No: a mixture contains future keys, which generation does not have."""
        return False

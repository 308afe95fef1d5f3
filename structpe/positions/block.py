"""Position models that have their own attention: their base, and what they share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor, nn

from structpe.dropout import dropout
from structpe.encodings.base import Encoding
from structpe.errors import UnsupportedTerm
from structpe.positions.base import Dims, PositionModel, Site
from structpe.positions.batch import Positions, numbers
from structpe.positions.by_rows import Ranges
from structpe.precision import exactly, wide
from structpe.terms import Lookup, Terms

__all__ = [
    "LINKS",
    "NONE",
    "SELF",
    "WITHIN_NODE",
    "Block",
    "CachedBlock",
    "FactoredBlock",
    "ListedPairs",
    "allowed",
    "joined",
    "links",
    "of_layers",
    "products",
    "ranks",
    "softmax",
    "split",
    "without_heads",
]


class Block(PositionModel, ABC):
    """A position model that has its own attention, because it is not the one equation.

    It replaces the attention of the layers. Everything else is as for any position model: sites, encodings, spec,
    registry. The formula of parameters includes the projections, which other models leave to the layer.

    Attributes:
        drops: whether its attention drops weights with the probability ``site.dropout``; if not, a layer refuses to
            have ``attention_dropout``.
        heads: whether the number of heads changes anything; if not, a stack refuses one.

    Raises:
        UnsupportedTerm: something other than which pairs attend is to act on attention.
    """

    drops: ClassVar[bool] = False
    heads: ClassVar[bool] = True

    def replaces(self, layer: int) -> bool:
        return True

    @property
    def causal(self) -> bool:
        """No: a block has no KV cache, which generation needs."""
        return False

    @abstractmethod
    def attend(self, x: Tensor, prepared: Any, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        """What the attention of a layer adds to the hidden vectors.

        Args:
            x: (b, n, d) the normalised hidden vectors of all units.
            prepared: the result of :meth:`prepare`, or of the attention of the layer before.
            site: the layer.
            terms: of everything else that acts on attention; at least the mask of padding.

        Returns:
            (b, n, d), and what the next layer is given as ``prepared``, such as updated vectors of pairs.

        Raises:
            UnsupportedTerm: one of the terms is not supported.
        """


_HEEDED = frozenset({"mask", "pairs", "causal"})


def allowed(model: str, terms: Terms, x: Tensor, keys: int | None = None) -> Tensor:
    """(b or 1, h or 1, n, m) which pairs of the units x (b, n, d) attend; the terms may contain only masks.

    Args:
        model: name of the model, for errors.
        terms: of everything else that acts on attention.
        x: the units, which are the last n of the keys.
        keys: m; n by default.

    Raises:
        UnsupportedTerm: they do.
    """
    if lost := terms.used() - _HEEDED:
        raise UnsupportedTerm(
            f"position model {model!r} has its own attention, which does not support "
            f"{', '.join(sorted(lost))}; it goes with models that act at the input, or by {', '.join(sorted(_HEEDED))}"
        )
    b, n, _ = x.shape
    m = n if keys is None else keys
    result = torch.ones(1, 1, n, m, dtype=torch.bool, device=x.device)
    for mask in (*terms.mask, *(pairs.dense(b, n, m) for pairs in terms.pairs)):
        result = result & mask
    return result.tril(m - n) if terms.causal else result


@exactly
def products(q: Tensor, k: Tensor) -> Tensor:
    """(b, h, n, m) q.k of (b, h, n, d) and (b or 1, h or 1, m, d), in float32 at least: much may be added to them."""
    return wide(q) @ wide(k).mT


def without_heads(model: str, pairs: Tensor) -> Tensor:
    """(b or 1, n, n) what :func:`allowed` gives, for an attention without heads.

    Raises:
        UnsupportedTerm: there is a mask for each head.
    """
    if pairs.shape[1] > 1:
        raise UnsupportedTerm(
            f"position model {model!r} has no heads: a mask for each of {pairs.shape[1]} heads does not fit; give "
            f"one for all"
        )
    return pairs[:, 0]


def softmax(scores: Tensor, pairs: Tensor, dropped: float = 0.0, dim: int = -1) -> Tensor:
    """Weights of the pairs that attend, which sum to one along ``dim``; zeros in rows without such a pair.

    Then each is dropped with the probability ``dropped``, and the others are divided by the probability that they stay.
    """
    # The lowest finite number, not -inf: a row of only -inf would give NaN, in its gradient too.
    weights = scores.masked_fill(~pairs, torch.finfo(scores.dtype).min).softmax(dim)
    return dropout(weights.masked_fill(~pairs, 0.0), dropped)


def split(x: Tensor, heads: int) -> Tensor:
    """(..., h, n, d/h) from (..., n, d)."""
    return x.view(*x.shape[:-1], heads, -1).transpose(-2, -3)


def joined(x: Tensor) -> Tensor:
    """(..., n, d) from (..., h, n, d/h): undoes :func:`split`."""
    return x.transpose(-2, -3).flatten(-2)


def of_layers(dims: Dims, out: int, bias: bool = True, std: float | None = None) -> nn.ModuleList:
    """A linear map from the width of the model for each layer, its bias zero at first.

    Its matrix is Glorot-uniform at first, or from N(0, std^2).
    """
    made = nn.ModuleList(nn.Linear(dims.width, out, bias=bias) for _ in range(dims.layers))
    start = nn.init.xavier_uniform_ if std is None else partial(nn.init.normal_, std=std)
    for parameter in made.parameters():
        start(parameter) if parameter.ndim > 1 else nn.init.zeros_(parameter)
    return made


class FactoredBlock(Block, ABC):
    """o_i = W_o sum_j factor_ij softmax_j(scores_ij) v_j + w_o: rows do not sum to 1 any more.

    Attributes:
        queries: of each layer, as the others: q, with bias; set by subclasses, by :func:`of_layers`.
        keys: k.
        values: v.
        outs: W_o and w_o.
    """

    drops = True
    queries: nn.ModuleList
    keys: nn.ModuleList
    values: nn.ModuleList
    outs: nn.ModuleList

    def attend(self, x: Tensor, prepared: Any, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        projections = (self.queries, self.keys, self.values)
        q, k, v = (split(each[site.layer](x), self.dims.heads) for each in projections)
        scores, factor = self.scored(q, k, prepared, site)
        weights = softmax(scores, allowed(self.name, terms, x), site.dropout) * factor
        out: Tensor = self.outs[site.layer](joined(weights.to(v.dtype) @ v))
        return out, prepared

    @abstractmethod
    def scored(self, q: Tensor, k: Tensor, prepared: Any, site: Site) -> tuple[Tensor, Tensor]:
        """(b, h, n, n) the scores, and (b or 1, h or 1, n, n) the factors, from q and k (b, h, n, d_h)."""


class CachedBlock(Block, ABC):
    """Attention with projections of its own, over queries that are the last n of m keys.

    Args:
        encodings: the encodings that it needs.
        bias: whether its four projections have biases, as those of other layers have.
        sizes: see :class:`PositionModel`.
    """

    drops = True

    def __init__(self, dims: Dims, encodings: Sequence[Encoding], bias: bool = False, **sizes: int) -> None:
        super().__init__(dims, encodings, **sizes)
        self.projections = of_layers(dims, 3 * dims.width, bias)
        self.outs = of_layers(dims, dims.width, bias)

    @property
    def causal(self) -> bool:
        """Whether its encodings are."""
        return PositionModel.causal.fget(self)  # type: ignore[attr-defined, no-any-return]  # a property

    def attend(self, x: Tensor, prepared: Any, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        q, k, v = self.project(x, site)
        if site.cache is not None:
            k, v = site.cache.append(k, v)
        seen = allowed(self.name, terms, x, k.shape[2])
        out: Tensor = self.outs[site.layer](joined(self.mixed(q, k, v, seen, prepared, site)))
        return out, prepared

    def project(self, x: Tensor, site: Site) -> tuple[Tensor, Tensor, Tensor]:
        """(b, h, n, width) three times of the units x (b, n, d): queries, and what a cache keeps of keys and values."""
        q, k, v = (split(each, self.dims.heads) for each in self.projections[site.layer](x).chunk(3, dim=-1))
        return q, k, v

    @abstractmethod
    def mixed(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, prepared: Any, site: Site) -> Tensor:
        """(b, h, n, d_h) the mixtures of values.

        Args:
            q: (b, h, n, width) of the queries, the last n of the keys.
            k: (b, h, m, width) what is kept of the keys.
            v: (b, h, m, width) what is kept of the values.
            seen: (b or 1, h or 1, n, m) which pairs may attend.
            prepared: the result of :meth:`prepare`.
            site: the layer.
        """

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """(b, h, n, m) q.k / sqrt(d_h), float32 at least."""
        scores: Tensor = products(q, k)
        return scores / math.sqrt(self.dims.head)


def ranks(model: str, encoding: Encoding, positions: Positions) -> Tensor:
    """(b or 1, m) the rank of each unit by an encoding; of units with equal numbers the one stored first is first.

    Places without a unit come last.
    """
    places = numbers(model, encoding, positions[encoding])
    order = places.argsort(dim=1, stable=True)
    if positions.present is not None:
        absent = ~positions.present.expand(len(places), -1)
        order = order.gather(1, absent.gather(1, order).long().argsort(dim=1, stable=True))
    return order.argsort(dim=1)


@dataclass(frozen=True, eq=False)
class ListedPairs:
    """All pairs of units of one structure, structure by structure and query by query.

    What a model holds for each pair then has no padding, which is about half of all pairs of a batch of molecules.

    Attributes:
        together: (b, n, n) which pairs are of one structure. Those are listed; all b n n while a graph is traced, as
            its sizes cannot depend on numbers.
        places: (P,) of each pair in (b, n, n).
        query: (P,) place of its query in (b, n).
        key: (P,) place of its key in (b, n).
        real: (P,) whether it is of one structure.
    """

    together: Bool[Tensor, "b n n"]
    places: Int[Tensor, " P"]
    query: Int[Tensor, " P"]
    key: Int[Tensor, " P"]
    real: Bool[Tensor, " P"]

    @classmethod
    def of(cls, pairs: Lookup, present: Bool[Tensor, "#b n"] | None) -> ListedPairs:
        """The pairs of a batch.

        Args:
            pairs: a quantity of all of them.
            present: which places have a unit; None if all have.
        """
        b, n, _ = pairs.index.shape
        units = torch.ones(1, n, dtype=torch.bool, device=pairs.rows.device) if present is None else present
        b = max(b, len(pairs.rows), len(units))
        return cls._of((units[:, :, None] & units[:, None]).expand(b, n, n))

    @classmethod
    def _of(cls, together: Tensor) -> ListedPairs:
        _, n, m = together.shape
        flat = together.flatten()
        traced = torch.compiler.is_compiling()
        places = torch.arange(flat.numel(), device=flat.device) if traced else flat.nonzero().squeeze(1)
        return cls(together, places, places // m, places // (n * m) * n + places % m, flat[places])

    def repeated(self, times: int) -> ListedPairs:
        """The same pairs of one structure for several rows."""
        return self._of(self.together.expand(times, -1, -1))

    def read(self, pairs: Lookup) -> Shaped[Tensor, "P ..."]:
        """The quantity of each listed pair."""
        b, n, m = self.together.shape
        local = pairs.dense_index().expand(b, -1, -1).flatten()[self.places]
        rows = pairs.rows.expand(b, -1)[self.places // (n * m), local]
        return pairs.table.index_select(0, rows.long())

    def blocks(self, queries: Sequence[Ranges]) -> list[Ranges]:
        """Blocks of the queries (b n), each of one structure if there are several, and with each its pairs."""
        if len(queries) == 1:
            return [(queries[0][0], slice(0, len(self.places)))]
        n, ((first,), *_) = self.together.shape[1], queries
        starts = [at for unit in range(0, len(self.together) * n, n) for at in range(unit, unit + n, first.stop)]
        stops = [*starts[1:], len(self.together) * n]
        ends = [0, *torch.searchsorted(self.query, torch.tensor(stops, device=self.query.device)).tolist()]
        rows = [slice(*each) for each in zip(starts, stops, strict=True)]
        return [(each, slice(*at)) for each, at in zip(rows, pairwise(ends), strict=True)]


NONE, SELF, WITHIN_NODE = 0, 4, 5
"""No edge; a unit and itself; two units of one node. Between them 1 to 3: an edge to, from, or to and from the key."""

LINKS = 6
"""How many kinds there are."""


def links(codes: Lookup) -> Tensor:
    """(b, n, m) the kind of each pair, from the values of the encoding ``adjacency``."""
    return codes.map(lambda code: torch.where(code > SELF, WITHIN_NODE, code)).dense()

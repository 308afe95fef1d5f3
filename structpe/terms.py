"""The one equation: every change that a position model makes to attention, independent of the position model.

::

    (q', k') = maps(q, k)                                                                          node level
    s_ij = scale/sqrt(d) [ q'_i.k'_j + q'_i.key_ij + query_ij.k'_j + sum_c q'_ic k'_jc product_ijc ]    pair vectors
    s_ij = gate_ij act(s_ij) + left_i.right_j + bias_ij,   -inf where not mask_ij                    pair scalars
    o_i  = sum_j softmax_j(s_ij) (v_j + value_ij)

Vectors are inside the scale, biases outside it. The d of the root is the width after the maps, which is that of a head
unless a map changes it. A quantity of pairs is never stored per pair: it is a :class:`Lookup`,
or :class:`SparsePairs` if only few pairs attend (``pairs``). Two terms make attention linear in the number of
units: ``feature_map``, with which softmax_j(s_ij) becomes f(q'_i).f(k'_j) / sum_j f(q'_i).f(k'_j), and
``projection``, which replaces the m keys and values by fewer mixtures of them.

Shapes: b batch, h heads, n queries, m keys, d width of a head, R rows of a table, r rows that one structure uses, e
listed pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from jaxtyping import Bool, Float
from torch import Tensor

from structpe.errors import PositionError
from structpe.quantities import Lookup, Pairs, SparsePairs, Toeplitz

__all__ = ["Factor", "Lookup", "Map", "Pairs", "Projection", "SparsePairs", "Terms", "Toeplitz"]

Map: TypeAlias = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""(q (b, h, n, d), k (b, h, m, d)) -> (q', k'), of any one width. Maps of one ``Terms`` must commute."""


@dataclass(frozen=True, eq=False)
class Projection:
    """Fewer keys and values, each a mixture of all (Linformer, Wang et al. 2020): k'_c = sum_j keys_cj k_j; same for v.

    A masked key is left out of the mixtures, so its mask must not depend on the query. All other terms of pairs are
    then for pairs of queries and mixtures.

    Attributes:
        keys: (b or 1, h or 1, c, m).
        values: (b or 1, h or 1, c, m).
    """

    keys: Float[Tensor, "#b #h c m"]
    values: Float[Tensor, "#b #h c m"]


@dataclass(frozen=True, eq=False)
class Factor:
    """A pair scalar of low rank, left_i.right_j, outside the scale; it folds into a longer head.

    Attributes:
        left: (b or 1, h or 1, n or 1, r) of the queries.
        right: (b or 1, h or 1, m or 1, r) of the keys.
    """

    left: Float[Tensor, "#b #h #n r"]
    right: Float[Tensor, "#b #h #m r"]


@dataclass(frozen=True, eq=False)
class Terms:
    """What a position model adds to attention; a commutative monoid under ``+`` whose zero is ``Terms()``.

    Attributes:
        maps: functions of (q, k), before anything else; they must commute.
        factors: pair scalars of low rank.
        bias: pair scalars, (R, h or 1) per lookup, or dense (b or 1, h or 1, n or 1, m or 1). A bias of -inf masks the
            pair.
        gate: pair scalars that multiply the score, in the forms of ``bias``.
        mask: bool (b or 1, h or 1, n, u); False means that the pair does not attend. All masks must allow a pair. u is
            m, or, with a projection, the number of keys before it.
        key: pair vectors (R, h or 1, d) met by the query.
        query: pair vectors met by the key.
        product: pair vectors that weight each channel of q.k, added to it.
        value: pair vectors added to the value.
        act: function of the scaled score, before gate and bias; at most one.
        scale: factor of 1/sqrt(d), of any sign, d being the width after the maps; scales multiply.
        pairs: lists of the only pairs that attend; a pair must be in all lists.
        causal: whether the i-th last query sees the i-th last key and those before it, and no other.
        feature_map: f, which replaces the exponential of the score. It can be combined only with maps, mask, pairs,
            causal, projection and value, since there is no score to add to. At most one.
        projection: of the keys and values; at most one.
    """

    maps: tuple[Map, ...] = ()
    factors: tuple[Factor, ...] = ()
    bias: tuple[Lookup | SparsePairs | Float[Tensor, "#b #h #n #m"], ...] = ()
    gate: tuple[Lookup | SparsePairs | Float[Tensor, "#b #h #n #m"], ...] = ()
    mask: tuple[Bool[Tensor, "#b #h #n #u"], ...] = ()
    key: tuple[Lookup | SparsePairs, ...] = ()
    query: tuple[Lookup | SparsePairs, ...] = ()
    product: tuple[Lookup | SparsePairs, ...] = ()
    value: tuple[Lookup | SparsePairs, ...] = ()
    act: Callable[[Tensor], Tensor] | None = None
    scale: float = 1.0
    pairs: tuple[Pairs, ...] = ()
    causal: bool = False
    feature_map: Callable[[Tensor], Tensor] | None = None
    projection: Projection | None = None

    def __post_init__(self) -> None:
        for name, kinds in _KINDS.items():
            given = getattr(self, name)
            if given != () and not (isinstance(given, tuple) and all(isinstance(each, kinds) for each in given)):
                raise PositionError(_other_term(name, given, kinds))
        for name in ("act", "feature_map"):
            if (given := getattr(self, name)) is not None and not callable(given):
                raise PositionError(f"Terms({name}=...) takes a function of scores; given is {given!r}")
        if self.scale is None:
            raise PositionError("Terms(scale=...) takes a number; given is None; leave it out for 1")

    def __add__(self, other: Terms) -> Terms:
        if not isinstance(other, Terms):
            return NotImplemented
        joined: dict[str, Any] = {
            each.name: getattr(self, each.name) + getattr(other, each.name)
            for each in fields(self)
            if each.name not in ("scale", "causal", *_ALONE)
        }
        alone = {name: self._only(other, name, what) for name, what in _ALONE.items()}
        return Terms(**joined, **alone, scale=self.scale * other.scale, causal=self.causal or other.causal)

    def used(self) -> frozenset[str]:
        """Names of the fields that differ from the zero."""
        zero = Terms()
        return frozenset(f.name for f in fields(self) if getattr(self, f.name) != getattr(zero, f.name))

    def _only(self, other: Terms, name: str, what: str) -> Any:
        mine, theirs = getattr(self, name), getattr(other, name)
        if mine is not None and theirs is not None:
            raise PositionError(f"two position models both change {what}; only one of a sum may")
        return theirs if mine is None else mine


_KINDS: dict[str, tuple[Any, ...]] = {
    "maps": (Callable,),
    "factors": (Factor,),
    "bias": (Lookup, SparsePairs, Tensor),
    "gate": (Lookup, SparsePairs, Tensor),
    "mask": (Tensor,),
    "key": (Lookup, SparsePairs),
    "query": (Lookup, SparsePairs),
    "product": (Lookup, SparsePairs),
    "value": (Lookup, SparsePairs),
    "pairs": (Pairs,),
}
"""The types of the elements of the fields that are tuples."""


def _other_term(name: str, given: Any, kinds: tuple[Any, ...]) -> str:
    """The message for a field with wrong elements."""
    needed = " or ".join(kind.__name__ for kind in kinds)
    if isinstance(given, kinds):
        return f"Terms({name}=...) takes a tuple, and was given one {type(given).__name__}; write {name}=(it,)"
    wrong = [each for each in given if not isinstance(each, kinds)] if isinstance(given, (tuple, list)) else [given]
    kind = type(wrong[0] if wrong else given).__name__
    return f"Terms({name}=...) takes a tuple of {needed}, and was given {kind}; write {name}=(it,), or leave it out"


_ALONE = {
    "act": "how scores are activated",
    "feature_map": "what replaces the exponential of a score",
    "projection": "which mixtures of keys are attended to",
}
"""Fields that only one summand may have, and what they change."""

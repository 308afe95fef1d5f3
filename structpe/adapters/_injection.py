"""A position model inside a model of another library: its check before injection, and its start at zero.

The positions of a batch are passed on with the keyword arguments of the model. Nothing is kept between two passes, and
a layer that gradient checkpointing recomputes gets the same positions.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from structpe.adapters._hf_models import Where
from structpe.adapters._tokens import NONE, TokenPositions, TokenUnits
from structpe.encodings.base import Encoding
from structpe.errors import PositionError, StructPEError
from structpe.formats import tree
from structpe.positions import PositionModel, Positions, Site, Sum
from structpe.positions.batch import encode
from structpe.positions.tables import KeyValueTables, PairTable
from structpe.structure import Structure, path
from structpe.terms import Factor, Lookup, SparsePairs, Terms
from structpe.transforms import grid

__all__ = [
    "Given",
    "Injected",
    "Pass",
    "Seat",
    "Start",
    "Structures",
    "TokenPaths",
    "check_trial",
    "check_width",
    "difference",
    "started",
]


T = TypeVar("T")

_ADDED = ("bias", "key", "query", "product", "value")
"""Terms that are added, and whose differences can be added."""


def started(position: PositionModel) -> PositionModel | None:
    """Let a position model start at zero; return a copy to be subtracted, if its parameters cannot be set to zero.

    Tables whose entries are added are set to 0. Other models, such as networks, would have no gradients if all
    parameters were 0: their terms are those of the current parameters minus those of the initial ones.

    Raises:
        PositionError: it has no parameters to learn, and would never change anything.
    """
    if not any(p.requires_grad for p in position.parameters()):
        raise PositionError(
            f"position model {position.name!r} has no numbers to learn, and would never change anything if it started "
            f"at zero; use start='own'"
        )
    parts = list(position.models) if isinstance(position, Sum) else [position]
    if all(isinstance(each, (PairTable, KeyValueTables)) and _is_zero_at_zero(each) for each in parts):
        with torch.no_grad():
            for p in position.parameters():
                p.zero_()
        return None
    return copy.deepcopy(position).requires_grad_(False)


def _generator_states(like: Tensor, training: bool) -> list[Tensor]:
    """The states of the random generators; empty if nothing is random, or a model is compiled."""
    if not training or torch.compiler.is_compiling():
        return []
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state(like.device)] if like.is_cuda else [])]


def _with_same_draws(states: list[Tensor], make: Callable[[], T], like: Tensor) -> T:
    """Call ``make`` with given generator states: in training, both sets of parameters get the same random numbers."""
    if not states:
        return make()
    later = _generator_states(like, True)
    _set(states, like)
    try:
        return make()
    finally:
        _set(later, like)


def _set(states: list[Tensor], like: Tensor) -> None:
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state(states[1], like.device)


def _is_zero_at_zero(module: Any) -> bool:
    """Whether the entries of a table are added unchanged; a subclass may use them otherwise."""
    own = type(module)
    base = KeyValueTables if issubclass(own, KeyValueTables) else PairTable
    only = {name.partition(".")[0] for name, _ in module.named_parameters()} <= {"table", "keys", "values"}
    return only and own.terms is base.terms and (base is KeyValueTables or own.entries is PairTable.entries)


def difference(now: Terms, first: Terms) -> Terms:
    """The difference of the terms from the initial ones, which is zero before the first step of training.

    Raises:
        PositionError: a term is not added.
    """
    if lost := now.used() - {*_ADDED, "gate", "factors"}:
        raise PositionError(
            f"a position model that acts by {', '.join(sorted(lost))} changes a pretrained model from the beginning, "
            f"and cannot start at zero; use start='own'"
        )
    joined: dict[str, Any] = {
        name: tuple(
            each for pair in zip(getattr(now, name), getattr(first, name), strict=True) for each in _less(*pair)
        )
        for name in _ADDED
    }
    negative = tuple(Factor(-each.left, each.right) for each in first.factors)
    gates = tuple(_gate(*pair) for pair in zip(now.gate, first.gate, strict=True))
    return Terms(**joined, factors=(*now.factors, *negative), gate=gates)


def _less(now: Any, first: Any) -> tuple[Any, ...]:
    """Terms whose sum is the difference: a single one, if both have the same pairs."""
    if isinstance(now, Tensor):
        return (now - first,)
    if _of_same_pairs(now, first):
        return (_with_table(now, now.table - first.table),)
    return now, _with_table(first, -first.table)


def _gate(now: Any, first: Any) -> Any:
    """1 + now - first, a factor of 1 at first."""
    if isinstance(now, Tensor):
        return 1 + now - first
    if not isinstance(now, Lookup) or not _of_same_pairs(now, first):
        raise PositionError("gates of listed pairs cannot start at zero; use start='own'")
    return _with_table(now, 1 + now.table - first.table)


def _of_same_pairs(now: Lookup | SparsePairs, first: Lookup | SparsePairs) -> bool:
    if isinstance(now, Lookup) and isinstance(first, Lookup):
        return now.index is first.index and now.rows is first.rows and now.table.shape == first.table.shape
    return isinstance(now, SparsePairs) and isinstance(first, SparsePairs) and now.index is first.index


def _with_table(x: Any, table: Tensor) -> Any:
    given = {each.name: getattr(x, each.name) for each in fields(x) if each.init}
    return type(x)(**{**given, "table": table})


_CROSS = (
    "a position model that rotates queries and keys cannot enter cross-attention, whose queries all stand at one unit; "
    "choose one with biases or vectors of pairs"
)
Start: TypeAlias = Literal["zero", "own"]
Structures: TypeAlias = Literal["given", "path"]
Given: TypeAlias = "TokenPositions | Mapping[str, TokenPositions] | None"
"""The argument ``structpe``: positions for all position models, or by their place; None for a pass without."""


class Injected(nn.Module):
    """A position model at one place of another model, as its submodule.

    Args:
        position: a position model built for the sizes of the attention and the number of layers.
        where: the attention.
        layers: numbers of the layers.
        start: ``zero``, the model computes the same at first; ``own``, the position model is used as it is.
        structures: ``given`` with each batch; or ``path``, each text is a path of its tokens.
        instead: whether to replace T5's own bias.
    """

    def __init__(
        self,
        position: PositionModel,
        where: Where,
        layers: Sequence[int],
        start: Start = "zero",
        structures: Structures = "given",
        instead: bool = False,
    ) -> None:
        super().__init__()
        self.position, self.where, self.layers = position, where, tuple(layers)
        self.start, self.structures, self.instead = start, structures, instead
        self.first = started(position) if start == "zero" else None
        self.paths = TokenPaths(position.encodings)
        self.mixes = False  # whether it changes vectors of units by those of others; set by check_trial

    def prepare(self, positions: Positions, like: Tensor) -> tuple[Any, Any]:
        """The results of ``prepare`` with the current and with the initial parameters."""
        dtype = next((p.dtype for p in self.position.parameters()), like.dtype)
        moved = positions.to(like.device, dtype)
        return self._both(lambda model, _: model.prepare(moved), (None, None), like)

    def terms(self, prepared: tuple[Any, Any], site: Site, like: Tensor) -> Terms:
        """The terms of the units in a layer."""
        now, first = self._both(lambda model, mine: model.terms(mine, site), prepared, like)
        return now if first is None else difference(now, first)

    def change(self, x: Tensor, prepared: tuple[Any, Any], site: Site) -> Tensor:
        """The hidden vectors (p, u, d) of the units as a layer sees them."""
        now, first = self._both(lambda model, mine: _changed(model, x, mine, site), prepared, x)
        changed: Tensor = now if first is None else x + (now - first)
        return changed

    def _both(
        self, answer: Callable[[PositionModel, Any], Any], prepared: tuple[Any, Any], like: Tensor
    ) -> tuple[Any, Any]:
        """A result with the current parameters, and with the initial ones; None if these are zero."""
        before = [] if self.first is None else _generator_states(like, self.training)
        now = answer(self.position, prepared[0])
        first = self.first
        return now, None if first is None else _with_same_draws(before, lambda: answer(first, prepared[1]), like)


def _changed(position: PositionModel, x: Tensor, prepared: Any, site: Site) -> Tensor:
    x = position.inputs(x, prepared) if site.layer == 0 else x
    return position.layer(x, prepared, site)


class TokenPaths:
    """Positions of texts as paths of their tokens.

    Args:
        encodings: encodings of a position model.
    """

    def __init__(self, encodings: Sequence[Encoding]) -> None:
        self.encodings = tuple(encodings)
        self.traced: dict[int, Positions] = {}

    def of(self, size: int) -> Positions:
        """The positions of a text with a number of tokens."""
        if not torch.compiler.is_compiling():
            return encode([path([""] * size)], self.encodings)
        size = operator.index(size)  # torch.compile must not make it symbolic
        self._encode(size)
        return self.traced[size]

    @torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
    def _encode(self, size: int) -> Tensor:
        """Encode a text. In a compiled model this runs once per length, and is not traced."""
        self.traced[size] = encode([path([""] * size)], self.encodings)
        return torch.empty(0)  # tracing needs a tensor


class Pass:
    """One pass of a model over a batch.

    Args:
        given: the positions of the batch.
        masks: 2-D padding masks of the tokens, by place; for texts as paths.
        keeps: whether layers share intermediate results; not under gradient checkpointing.
        ids: (b or 1, n) the places of the tokens in their texts, from ``position_ids``, by place.
    """

    def __init__(
        self,
        given: Given,
        masks: Mapping[str, Tensor | None],
        keeps: bool,
        ids: Mapping[str, Tensor | None] | None = None,
    ) -> None:
        self.plain, self.masks, self.keeps = given is None, dict(masks), keeps
        self.ids = dict(ids or {})
        self._read: dict[str, Tensor] = {}
        self._paths: dict[str, tuple[tuple[Any, ...], TokenPositions]] = {}
        self._given = given
        self._prepared: dict[str, tuple[int, tuple[Any, Any]]] = {}
        self._moved: dict[str, TokenPositions] = {}
        self._places: dict[str, tuple[tuple[int, ...], TokenUnits | None]] = {}

    def prepared(self, injected: Injected, given: TokenPositions, like: Tensor) -> tuple[Any, Any]:
        """The result of ``prepare``, computed once for all layers, and for all steps of a generation."""
        if not self.keeps or torch.compiler.is_compiling():
            return injected.prepare(given.positions, like)
        known = self._prepared.get(injected.where)
        if known is None or known[0] != given.size:
            known = self._prepared[injected.where] = given.size, injected.prepare(given.positions, like)
        return known[1]

    def places(self, injected: Injected, given: TokenPositions, like: Tensor, n: int, m: int) -> TokenUnits | None:
        """The units of the last n of m tokens; for cross-attention, of n tokens of the decoder and m of the encoder.

        None if the i-th token is the i-th unit in each row.
        """
        key = (len(like), n, m)
        known = self._places.get(injected.where)
        if known is None or known[0] != key or torch.compiler.is_compiling() or not self.keeps:
            known = key, self._new_places(injected, given, like, n, m)
            self._places[injected.where] = known
        return known[1]

    def positions(self, injected: Injected, m: int, like: Tensor) -> TokenPositions | None:
        """The positions for an injected model, on its device; None for a pass without positions.

        Raises:
            PositionError: the batch has no positions for it.
        """
        where = injected.where
        if injected.structures == "path":
            return self._path(injected, m, like)
        if self.plain:
            return None
        given = self._given.get(where) if isinstance(self._given, Mapping) else self._given
        if not isinstance(given, TokenPositions):
            raise PositionError(
                f"this model has a position model in its {where}, and the batch has no positions for it; make batches "
                f"with injected.collator(tokenizer), or give structpe=TokenPositions(...), or structpe=None for a pass "
                f"without"
            )
        if given.units.device != like.device:
            if where not in self._moved:
                self._moved[where] = given.to(like.device)
            given = self._moved[where]
        return given

    def _path(self, injected: Injected, m: int, like: Tensor) -> TokenPositions:
        """The positions of texts of m tokens as paths, shared by all layers of a step."""
        where = injected.where
        mask, ids = self.masks.get(where), self.ids.get(where)
        if torch.compiler.is_compiling():
            return _of_path(injected.paths, m, mask, self._places_in_texts(where, ids, mask, m), like)
        known = self._paths.get(where)
        if known is None or any(a is not b for a, b in zip(known[0][1:], (mask, ids), strict=True)) or known[0][0] != m:
            made = _of_path(injected.paths, m, mask, self._places_in_texts(where, ids, mask, m), like)
            self._paths[where] = known = (m, mask, ids), made
        return known[1]

    def _places_in_texts(self, where: str, ids: Tensor | None, mask: Tensor | None, m: int) -> Tensor | None:
        """(b or 1, m) ``position_ids`` of all tokens, including those in the cache; None if they are not given.

        Raises:
            PositionError: those of the tokens in the cache are unknown.
        """
        if ids is None or ids.ndim != 2:
            return None
        n, read = ids.shape[1], self._read.get(where)
        if n < m and read is not None and read.shape[1] >= m - n and len(ids) % len(read) == 0:
            ids = torch.cat([_repeated(read[:, : m - n], len(ids) // len(read)).to(ids.device), ids], dim=1)
        elif n < m:
            # Another pass filled the cache: this is correct only if the places continue those of the mask.
            there = _there(mask, m)
            goes_on = (
                torch.arange(m, device=ids.device)[None] if there is None else there.to(ids.device).long().cumsum(1) - 1
            )
            if bool((goes_on[:, m - n :] != ids).any()):
                raise PositionError(
                    "position_ids say where the new tokens are, and not those in the cache, which texts with gaps or "
                    "several texts in a row need; give the whole rows without a cache, or call generate"
                )
            ids = goes_on
        self._read[where] = ids
        return ids

    def _new_places(self, injected: Injected, given: TokenPositions, like: Tensor, n: int, m: int) -> TokenUnits | None:
        structures, group = len(given.units), len(like) // len(given.units)
        if len(like) % structures:
            raise PositionError(
                f"there are {structures} structures for a batch of {len(like)} rows; give one for each row, in order"
            )
        keys = _repeated(_fitting(given.units, m), group)
        if injected.where == "cross":
            targets = given.root[:, None].expand(-1, n) if given.targets is None else _fitting(given.targets, n)
            queries = _repeated(targets, group)
        else:
            if not torch.compiler.is_compiling() and n == m == given.size and _in_order(given):
                return None if group == 1 else TokenUnits(keys, keys, given.size, structures, self.keeps)
            queries = keys[:, m - n :]
        shared = 1 if injected.structures == "path" else structures
        return TokenUnits(queries, keys, given.size, shared, self.keeps, given.repeats or 1)


class Seat:
    """The place of an injected model in one attention.

    Args:
        injected: the injected model.
        layer: index of the layer among those of the position model.
    """

    def __init__(self, injected: Injected, layer: int) -> None:
        self.injected, self.layer = injected, layer

    def terms(self, given: Any, q: Tensor, keys: int, training: bool) -> Terms:
        """The terms of the tokens.

        Args:
            given: the pass, or the argument ``structpe``.
            q: (b, h, n, d) the queries.
            keys: m.
            training: whether this is a training step.
        """
        if (found := self._asked(given, keys, q)) is None:
            return Terms()
        passing, positions = found
        prepared = passing.prepared(self.injected, positions, q)
        terms = self.injected.terms(prepared, Site(self.layer, training), q)
        places = passing.places(self.injected, positions, q, q.shape[2], keys)
        if places is not None and self.injected.where == "cross" and terms.maps:
            raise PositionError(_CROSS)
        return terms if places is None else places.terms(terms)

    def change(self, given: Any, x: Tensor, past: int, training: bool) -> Tensor:
        """The hidden vectors (b, n, d) of the tokens that enter the layer, after ``past`` earlier tokens."""
        if (found := self._asked(given, past + x.shape[1], x)) is None:
            return x
        passing, positions = found
        if self.injected.mixes and (positions.repeats or 1) > 1:
            raise PositionError(
                f"position model {self.injected.position.name!r} changes the vector of a unit by those of others, and "
                f"several tokens are one unit; let each token be a unit of its own, or choose another"
            )
        prepared = passing.prepared(self.injected, positions, x)
        places = passing.places(self.injected, positions, x, x.shape[1], past + x.shape[1])
        if places is None:
            return self.injected.change(x, prepared, Site(self.layer, training))
        site = Site(self.layer, training)
        (changed,) = places.changed(lambda each: (self.injected.change(each, prepared, site),), x)
        return changed

    def _asked(self, given: Any, keys: int, like: Tensor) -> tuple[Pass, TokenPositions] | None:
        passing = given if isinstance(given, Pass) else Pass(given, {}, keeps=False)
        positions = passing.positions(self.injected, keys, like)
        return None if positions is None else (passing, positions)


def _of_path(paths: TokenPaths, m: int, mask: Tensor | None, ids: Tensor | None, like: Tensor) -> TokenPositions:
    """The positions of m tokens as a path, or as several texts by ``ids``; padding has no unit."""
    units, there, size = torch.arange(m, device=like.device)[None], _there(mask, m), m
    if there is not None:
        there = there.to(like.device)
        units = there.long().cumsum(1) - 1
    if ids is not None:
        units = ids.to(like.device).long().expand(len(units) if len(ids) == 1 else -1, -1)
    if there is not None:
        units = torch.where(there, units, NONE)
    if ids is not None:
        size = max(m, int(units.max()) + 1)
        if int(units.min()) < NONE or (there is None and int(units.min()) < 0):
            raise PositionError("position_ids of a token other than padding are negative; places begin at 0")
    return TokenPositions(paths.of(size), size, units, units.new_zeros(len(units)), repeats=1 if ids is None else None)


def _there(mask: Tensor | None, m: int) -> Tensor | None:
    """(b, m) whether each token is not padding; None without padding."""
    return mask[:, :m] != 0 if mask is not None and mask.ndim == 2 and mask.shape[1] >= m else None


def _fitting(units: Tensor, length: int) -> Tensor:
    """The units of a number of tokens; tokens after the last known one, such as generated ones, have no unit."""
    if units.shape[1] >= length:
        return units[:, :length]
    return nn.functional.pad(units, (0, length - units.shape[1]), value=NONE)


def _repeated(units: Tensor, times: int) -> Tensor:
    return units if times == 1 else units.repeat_interleave(times, dim=0)


def _in_order(given: TokenPositions) -> bool:
    """Whether the i-th token of each row is the i-th unit."""
    return bool((given.units == torch.arange(given.units.shape[1], device=given.units.device)).all())


def check_trial(injected: Injected, structures: Sequence[Structure] = ()) -> None:
    """Check the terms of an injected model on the first of some small structures that its encodings support.

    If they support none, errors are found in the first pass.

    Args:
        injected: the injected model.
        structures: the structures; by default a text, a tree and a grid.

    Raises:
        PositionError: a term cannot be used in another model, or not in this attention, or cannot start at zero.
    """
    like = next((each for each in injected.parameters()), torch.zeros(()))
    if like.is_meta:
        return
    was = injected.training
    injected.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            for structure in structures or _samples(injected.structures == "path"):
                if _answers(injected, structure, like):
                    return
    finally:
        injected.train(was)


def check_width(position: PositionModel, width: int) -> None:
    """Check the width of a position model that acts on the input.

    Raises:
        PositionError: it differs from the width of the hidden vectors.
    """
    if position.sites & {"inputs", "layer"} and position.dims.width != width:
        raise PositionError(
            f"the hidden vectors have {width} numbers and all heads together {position.dims.width}: a position model "
            f"that acts on the input does not fit; choose one that acts in attention"
        )


def _samples(only_texts: bool) -> list[Structure]:
    text = path(["a", "b", "c"])
    return [text] if only_texts else [text, tree(["a", "b", "c"], [0, 1, 1]), grid((2, 2))]


def _answers(injected: Injected, structure: Structure, like: Tensor) -> bool:
    """Check the terms for a structure and one more token without a unit; False if the encodings do not support it."""
    dims, units = injected.position.dims, structure.unit_count
    q = like.new_zeros(1, dims.heads, units + 1, dims.width // dims.heads)
    sites = [Site(layer) for layer in range(dims.layers)]
    try:
        prepared = injected.prepare(encode([structure], injected.position.encodings), q)
        for site in sites:
            injected.position.terms(prepared[0], site)
    except StructPEError:
        return False
    place = torch.tensor([[NONE, *range(units)]], device=like.device)
    for site in sites:
        terms = injected.terms(prepared, site, q)
        if injected.where == "cross" and terms.maps:
            raise PositionError(_CROSS)
        for change in TokenUnits(place, place, units, 1).terms(terms).maps:
            change(q, q)
    injected.mixes = any(_mixes(injected, prepared, site, like.new_ones(1, units, dims.width)) for site in sites)
    return True


def _mixes(injected: Injected, prepared: Any, site: Site, x: Tensor) -> bool:
    """Whether the vectors (1, u, d) of the first and the last unit change those of others."""
    if not injected.position.sites & {"inputs", "layer"}:
        return False
    found, (first, last) = injected.change(x, prepared, site), (x.clone(), x.clone())
    first[:, 0], last[:, -1] = 0, 0
    ahead, behind = (injected.change(each, prepared, site) for each in (first, last))
    return not torch.equal(found[:, 1:], ahead[:, 1:]) or not torch.equal(found[:, :-1], behind[:, :-1])

"""A position model inside a foreign model: tried before it enters, and started from the model's own function.

The positions of a batch travel with the keyword arguments that a model hands on to its attention, so that nothing is
kept between two passes, and a layer that is computed again, by gradient checkpointing, is given the same.
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
from structpe.data.encode import encode
from structpe.encodings.base import Encoding
from structpe.errors import PositionError, StructPEError
from structpe.formats import tree
from structpe.positions import PositionModel, Positions, Site, Sum
from structpe.positions.tables import KeyValueTables, PairTable
from structpe.structure import Structure, path
from structpe.terms import Factor, Lookup, SparsePairs, Terms
from structpe.transforms import grid

__all__ = [
    "CROSS",
    "Given",
    "Injected",
    "Pass",
    "Paths",
    "Seat",
    "Start",
    "Structures",
    "check_trial",
    "check_width",
    "difference",
    "drawn",
    "started",
    "with_same_draws",
]


T = TypeVar("T")

_ADDED = ("bias", "key", "query", "product", "value")
"""What is added, so that the difference of two is, too."""


def started(position: PositionModel) -> PositionModel | None:
    """Let a position model start at zero; a copy as it is now if its numbers cannot be zero, to be subtracted.

    Tables whose entries are added become 0. Of every other model, such as one with a network, the first numbers would
    have no gradient if all were 0: its terms are those of the learned numbers less those of the first numbers.

    Raises:
        PositionError: it has no numbers to learn, so that it would never change anything.
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


def drawn(like: Tensor, training: bool) -> list[Tensor]:
    """The states of the generators of random numbers; none where nothing is drawn, or a model is compiled."""
    if not training or torch.compiler.is_compiling():
        return []
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state(like.device)] if like.is_cuda else [])]


def with_same_draws(states: list[Tensor], make: Callable[[], T], like: Tensor) -> T:
    """What ``make`` returns with random numbers from these states on: in training the first numbers meet the same."""
    if not states:
        return make()
    later = drawn(like, True)
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
    """Whether its entries are added as they are: a subclass may use them for something else."""
    own = type(module)
    base = KeyValueTables if issubclass(own, KeyValueTables) else PairTable
    only = {name.partition(".")[0] for name, _ in module.named_parameters()} <= {"table", "keys", "values"}
    return only and own.terms is base.terms and (base is KeyValueTables or own.entries is PairTable.entries)


def difference(now: Terms, first: Terms) -> Terms:
    """What the terms add, less what the first ones add: nothing, before the first step of training.

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
    """Terms whose sum is the difference; one where both are of the same pairs."""
    if isinstance(now, Tensor):
        return (now - first,)
    if _of_same_pairs(now, first):
        return (_with_table(now, now.table - first.table),)
    return now, _with_table(first, -first.table)


def _gate(now: Any, first: Any) -> Any:
    """1 + now - first: as a factor, nothing at first."""
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


CROSS = (
    "a position model that rotates queries and keys cannot enter cross-attention, whose queries all stand at one unit; "
    "choose one with biases or vectors of pairs"
)
Start: TypeAlias = Literal["zero", "own"]
Structures: TypeAlias = Literal["given", "path"]
Given: TypeAlias = "TokenPositions | Mapping[str, TokenPositions] | None"
"""What a batch holds as ``structpe``: positions for all position models, or by where they are; None for none."""


class Injected(nn.Module):
    """A position model at one place of another model, which has it as a submodule.

    Args:
        position: built for the sizes of the attention, and as many layers as it enters.
        where: which attention it enters.
        layers: numbers of the layers.
        start: ``zero`` changes nothing at first; ``own`` starts with the numbers as they are.
        structures: ``given`` with each batch; or ``path``, each text being a path of its tokens.
        instead: whether the model's own bias, that of T5, is left out.
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
        self.paths = Paths(position.encodings)
        self.mixes = False  # whether it changes vectors of units by those of others, as far as was tried

    def prepare(self, given: TokenPositions, like: Tensor) -> tuple[Any, Any]:
        """What the position model prepares for a batch, and what its first numbers do."""
        dtype = next((p.dtype for p in self.position.parameters()), like.dtype)
        return self.ask_prepare(given.positions.to(like.device, dtype), like)

    def ask_prepare(self, positions: Positions, like: Tensor) -> tuple[Any, Any]:
        """The same, of positions in the dtype of the position model."""
        return self._both(lambda model, _: model.prepare(positions), (None, None), like)

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
        """What the position model answers, and what it would with its first numbers; None if these are zero."""
        before = [] if self.first is None else drawn(like, self.training)
        now = answer(self.position, prepared[0])
        first = self.first
        return now, None if first is None else with_same_draws(before, lambda: answer(first, prepared[1]), like)


def _changed(position: PositionModel, x: Tensor, prepared: Any, site: Site) -> Tensor:
    x = position.inputs(x, prepared) if site.layer == 0 else x
    return position.layer(x, prepared, site)


class Paths:
    """Texts as paths of their tokens.

    Args:
        encodings: of a position model.
    """

    def __init__(self, encodings: Sequence[Encoding]) -> None:
        self.encodings = tuple(encodings)
        self.traced: dict[int, Positions] = {}

    def of(self, size: int) -> Positions:
        """The positions of a text of so many tokens."""
        if not torch.compiler.is_compiling():
            return encode([path([""] * size)], self.encodings)
        size = operator.index(size)  # no symbol
        self._encode(size)
        return self.traced[size]

    @torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
    def _encode(self, size: int) -> Tensor:
        """Encode a text; when a model is compiled this is done once for each length, and not traced."""
        self.traced[size] = encode([path([""] * size)], self.encodings)
        return torch.empty(0)  # tracing takes nothing but tensors


class Pass:
    """One pass of a model over a batch.

    Args:
        given: the positions of the batch.
        masks: 2-D padding masks of the tokens, by where; for texts that are paths.
        keeps: whether layers share what is made once; not under gradient checkpointing.
        ids: (b or 1, n) the places of the tokens in their texts, where the model is given ``position_ids``; by where.
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
        """What the position model prepares, once for all layers, and in a decoder that generates for all steps."""
        if not self.keeps or torch.compiler.is_compiling():
            return injected.prepare(given, like)
        known = self._prepared.get(injected.where)
        if known is None or known[0] != given.size:
            known = self._prepared[injected.where] = given.size, injected.prepare(given, like)
        return known[1]

    def places(self, injected: Injected, given: TokenPositions, like: Tensor, n: int, m: int) -> TokenUnits | None:
        """The units of the last n of m tokens, or of the n of the decoder and the m of the encoder; None if all are.

        All are units if the i-th token is the i-th unit in each row.
        """
        key = (len(like), n, m)
        known = self._places.get(injected.where)
        if known is None or known[0] != key or torch.compiler.is_compiling() or not self.keeps:
            known = key, self._new_places(injected, given, like, n, m)
            self._places[injected.where] = known
        return known[1]

    def positions(self, injected: Injected, m: int, like: Tensor) -> TokenPositions | None:
        """The positions for an injected model, on its device; None if the batch says that it has none.

        Raises:
            PositionError: the batch has no positions for it, and does not say so.
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
        """A text of m tokens as a path, the same for all layers of a step."""
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
        """(b or 1, m) ``position_ids`` of all tokens, those in the cache included; None if there are none given.

        Raises:
            PositionError: those of the tokens in the cache are not known.
        """
        if ids is None or ids.ndim != 2:
            return None
        n, read = ids.shape[1], self._read.get(where)
        if n < m and read is not None and read.shape[1] >= m - n and len(ids) % len(read) == 0:
            ids = torch.cat([_repeated(read[:, : m - n], len(ids) // len(read)).to(ids.device), ids], dim=1)
        elif n < m:
            # Another pass filled the cache: all is well if places go on as the mask says.
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
        layer: number of the layer among those that it enters.
    """

    def __init__(self, injected: Injected, layer: int) -> None:
        self.injected, self.layer = injected, layer

    def terms(self, given: Any, q: Tensor, keys: int, training: bool) -> Terms:
        """The terms of the tokens.

        Args:
            given: the pass, or what a batch holds as ``structpe``.
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
            raise PositionError(CROSS)
        return terms if places is None else places.terms(terms)

    def change(self, given: Any, x: Tensor, past: int, training: bool) -> Tensor:
        """The hidden vectors (b, n, d) of the tokens as the layer sees them, after ``past`` earlier tokens."""
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


def _of_path(paths: Paths, m: int, mask: Tensor | None, ids: Tensor | None, like: Tensor) -> TokenPositions:
    """A text of m tokens as a path, or several texts, as ``ids`` say; padded tokens have no place."""
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
            raise PositionError("position_ids of a token that is no padding are less than 0; places begin with 0")
    return TokenPositions(paths.of(size), size, units, units.new_zeros(len(units)), repeats=1 if ids is None else None)


def _there(mask: Tensor | None, m: int) -> Tensor | None:
    """(b, m) which tokens are no padding; None if all are."""
    return mask[:, :m] != 0 if mask is not None and mask.ndim == 2 and mask.shape[1] >= m else None


def _fitting(units: Tensor, length: int) -> Tensor:
    """The units of so many tokens; those behind the last known one, such as generated ones, have none."""
    if units.shape[1] >= length:
        return units[:, :length]
    return nn.functional.pad(units, (0, length - units.shape[1]), value=NONE)


def _repeated(units: Tensor, times: int) -> Tensor:
    return units if times == 1 else units.repeat_interleave(times, dim=0)


def _in_order(given: TokenPositions) -> bool:
    """Whether the i-th token of each row is the i-th unit."""
    return bool((given.units == torch.arange(given.units.shape[1], device=given.units.device)).all())


def check_trial(injected: Injected, structures: Sequence[Structure] = ()) -> None:
    """Check that tokens can be given the terms of the layers, on a small structure that its encodings know.

    Where they know none of these, as those of an own kind of structure, the first pass tells.

    Args:
        injected: the position model.
        structures: to try, one after the other; by default a text, a tree and a grid.

    Raises:
        PositionError: it acts by something that cannot enter, or not in this attention, or cannot start at zero.
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
    """Check that a position model that acts on the input is as wide as the hidden vectors of a model.

    Raises:
        PositionError: it is not.
    """
    if position.sites & {"inputs", "layer"} and position.dims.width != width:
        raise PositionError(
            f"the hidden vectors have {width} numbers and all heads together {position.dims.width}, so that a position "
            f"model that acts on the input does not fit; choose one that acts in attention"
        )


def _samples(only_texts: bool) -> list[Structure]:
    text = path(["a", "b", "c"])
    return [text] if only_texts else [text, tree(["a", "b", "c"], [0, 1, 1]), grid((2, 2))]


def _answers(injected: Injected, structure: Structure, like: Tensor) -> bool:
    """Whether the position model can be asked about a structure; if so it is, with one more token without a unit."""
    dims, units = injected.position.dims, structure.unit_count
    q = like.new_zeros(1, dims.heads, units + 1, dims.width // dims.heads)
    sites = [Site(layer) for layer in range(dims.layers)]
    try:
        positions = encode([structure], injected.position.encodings).to(like.device, q.dtype)
        prepared = injected.ask_prepare(positions, q)
        for site in sites:
            injected.position.terms(prepared[0], site)
    except StructPEError:
        return False
    place = torch.tensor([[NONE, *range(units)]], device=like.device)
    for site in sites:
        terms = injected.terms(prepared, site, q)
        if injected.where == "cross" and terms.maps:
            raise PositionError(CROSS)
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

"""A position model inside a model of another library: where it enters, its start at zero, and what it does in a pass.

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

from structpe.adapters._passes import NAME, Passes, computed_again
from structpe.adapters._tokens import NONE, TokenPositions, TokenUnits
from structpe.attention import additive
from structpe.encodings.base import Encoding
from structpe.errors import PositionError, StructPEError
from structpe.formats import as_structure, as_structures, tree
from structpe.positions import Dims, PositionModel, Positions, Site, Sources, Sum
from structpe.positions.batch import encode
from structpe.positions.tables import KeyValueTables, PairTable
from structpe.structure import Structure, path
from structpe.terms import Factor, Lookup, SparsePairs, Terms
from structpe.transforms import grid

__all__ = [
    "Begin",
    "Given",
    "Host",
    "Injected",
    "Layers",
    "Pass",
    "Seat",
    "Start",
    "Structures",
    "TokenPaths",
    "Where",
    "check_trial",
    "constant",
    "difference",
    "running",
    "size_of",
    "started",
]


F = TypeVar("F", bound=Callable[..., Any])
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
Where: TypeAlias = Literal["encoder", "decoder", "cross"]
"""Self-attention of the encoder or the decoder, or the attention of the decoder to the encoder's output."""
Start: TypeAlias = Literal["zero", "own"]
Structures: TypeAlias = Literal["given", "path"]
Layers: TypeAlias = "list[tuple[nn.Module, nn.Module]]"
"""Layers, each with its attention."""
Given: TypeAlias = Any
"""The argument ``structpe``: :class:`TokenPositions`; :class:`Positions` or structures, whose i-th unit is the i-th
token; a mapping from places to these; or None for a pass without positions."""


class Host:
    """A model of another library: where a position model may enter, and how. A subclass for each library.

    Args:
        model: the model.

    Attributes:
        takes: what a position model may do there: ``inputs`` and ``layer`` change the vectors that enter a layer,
            ``sources`` what is projected, ``attention`` replaces attention, ``linear`` makes it linear, and ``vectors``
            is everything in attention besides numbers that are added to scores.
        places: the attention that it has, the usual one first.
        hint: what else one can do, at the end of an error.
    """

    takes: frozenset[str] = frozenset({"vectors", "inputs", "layer", "sources", "attention", "linear"})
    places: tuple[Where, ...] = ("encoder",)
    hint = ""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.passes: Passes[Pass] = Passes()

    def layers(self, where: Where) -> Layers:
        """All layers of a place."""
        raise NotImplementedError

    def dims(self, found: Layers) -> Dims:
        """The sizes of a position model for these layers."""
        raise NotImplementedError

    def width(self) -> int | None:
        """The width of the vectors that enter a layer; None for that of the attention."""
        return None

    def enter(self, injected: Injected, found: Layers) -> list[Any]:
        """Let layers ask an injected model; return what was changed, each with ``remove``."""
        raise NotImplementedError

    def replaced(self, where: Where, found: Layers, every: bool) -> list[Any] | None:
        """Take the model's own positions out of layers; return what was changed. None if it has none.

        Args:
            where: the place.
            found: the layers.
            every: whether these are all layers of the place.
        """
        del where, found, every
        return None

    def given(self, structpe: Any, injected: Injected) -> Given:
        """The argument ``structpe`` in a form that :class:`Pass` knows."""
        del injected
        return structpe

    def samples(self, paths: bool) -> list[Structure]:
        """Small structures, the first of which that its encodings support is the trial of a position model."""
        text = path(["a", "b", "c"])
        return [text] if paths else [text, tree(["a", "b", "c"], [0, 1, 1]), grid((2, 2))]


class Injected(nn.Module):
    """A position model at one place of another model, as its submodule.

    Args:
        position: a position model built for the sizes of the attention and the number of layers.
        where: the attention.
        layers: numbers of the layers.
        start: ``zero``, the model computes the same at first; ``own``, the position model is used as it is.
        structures: ``given`` with each batch; or ``path``, each text is a path of its tokens.
        instead: whether it replaces the positions that the model has.
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

    def change(self, x: Tensor, prepared: tuple[Any, Any], site: Site, structures: int) -> Tensor:
        """The hidden vectors (b, u, d) of the units as a layer sees them, of b structures or of one for all."""
        if self.mixes and structures == 1 < len(x):  # a network that reads the units of one structure
            return torch.cat([self.change(row[None], prepared, site, 1) for row in x])
        now, first = self._both(lambda model, mine: _changed(model, x, mine, site), prepared, x)
        changed: Tensor = now if first is None else x + (now - first)
        return changed

    def sources(self, x: Sources, prepared: tuple[Any, Any], site: Site) -> Sources:
        """The vectors from which a layer projects queries, keys and values."""
        now, first = self._both(lambda model, mine: model.sources(x, mine, site), prepared, x.query)
        if first is None:
            made: Sources = now
            return made
        names = ("query", "key", "value")
        return Sources(*(getattr(x, name) + getattr(now, name) - getattr(first, name) for name in names))

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


def constant(function: F) -> F:
    """What ``torch.compile`` calls while it traces, and does not trace: ``torch.compiler.assume_constant_result``.

    That function imports all of the compiler, which takes two seconds, to set this attribute.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


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

    @constant
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
        self._after: dict[tuple[str, int], Any] = {}
        self._places: dict[str, tuple[tuple[int, ...], dict[int, TokenUnits | None]]] = {}

    def prepared(self, injected: Injected, given: TokenPositions, like: Tensor, layer: int) -> tuple[Any, Any]:
        """What a layer reads: the result of ``prepare``, computed once for all layers and all steps of a generation.

        A position model with its own attention makes what the layers behind it read.
        """
        before = [number for where, number in self._after if where == injected.where and number <= layer]
        if before:
            return self._after[injected.where, max(before)], None
        if not self.keeps or torch.compiler.is_compiling() or (injected.training and computed_again()):
            return injected.prepare(given.positions, like)
        known = self._prepared.get(injected.where)
        if known is None or known[0] != given.size:
            known = self._prepared[injected.where] = given.size, injected.prepare(given.positions, like)
        return known[1]

    def without(self, injected: Injected) -> bool:
        """Whether a position model is not asked, and the model computes what it does without it."""
        return self.plain and injected.structures == "given"

    def keep(self, injected: Injected, layer: int, prepared: Any) -> None:
        """Keep what the layers from this one on read."""
        self._after[injected.where, layer] = prepared

    def places(
        self, injected: Injected, given: TokenPositions, like: Tensor, n: int, m: int, keys: int | None = None
    ) -> TokenUnits | None:
        """The units of the last n of m tokens; for cross-attention, of n tokens of the decoder and m of the encoder.

        None if the i-th token is the i-th unit in each row.

        Args:
            injected, given, like: as elsewhere.
            n, m: numbers of tokens.
            keys: how many of the last tokens are keys, in a layer that keeps a window of them only; m by default.
        """
        key, keys = (len(like), n, m), m if keys is None else keys
        known = self._places.get(injected.where)
        if known is None or known[0] != key or torch.compiler.is_compiling() or not self.keeps:
            known = self._places[injected.where] = key, {}
        if keys not in known[1]:
            known[1][keys] = self._new_places(injected, given, like, n, m, keys)
        return known[1][keys]

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
        by_place = isinstance(self._given, Mapping) and not isinstance(self._given, Positions)
        given = self._given.get(where) if by_place else self._given
        if not isinstance(given, TokenPositions):
            if where not in self._moved:
                self._moved[where] = _of_units(given, injected, m, like)
            given = self._moved[where]
        if given.units.device != like.device:
            if where not in self._moved:
                self._moved[where] = given.to(like.device)
            given = self._moved[where]
        return given

    def graphs(self, injected: Injected, x: Tensor) -> TokenPositions:
        """The positions of the padded graphs whose nodes are x (n, d), one after the other.

        Raises:
            PositionError: the batch has no positions.
        """
        given = self._given
        if injected.structures == "path":
            raise PositionError("nodes of graphs are no path; leave out structures='path'")
        if not isinstance(given, Positions | TokenPositions):
            given = self._given = _encoded(given, injected)
        size = given.size if isinstance(given, TokenPositions) else (size_of(given) or (1, len(x)))[1]
        found = self.positions(injected, size, x)
        assert found is not None, "a pass without positions is that of the model itself"
        return found

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

    def _new_places(
        self, injected: Injected, given: TokenPositions, like: Tensor, n: int, m: int, last: int
    ) -> TokenUnits | None:
        structures, group = len(given.units), len(like) // len(given.units)
        if len(like) % structures:
            raise PositionError(
                f"there are {structures} structures for a batch of {len(like)} rows; give one for each row, in order"
            )
        keys = _repeated(_fitting(given.units, m)[:, m - last :], group)
        if injected.where == "cross":
            targets = given.root[:, None].expand(-1, n) if given.targets is None else _fitting(given.targets, n)
            queries = _repeated(targets, group)
        else:
            if not torch.compiler.is_compiling() and n == last == m == given.size and _in_order(given):
                return None if group == 1 else TokenUnits(keys, keys, given.size, structures, self.keeps)
            queries = keys[:, last - n :]
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

    @property
    def replaces(self) -> bool:
        """Whether the position model has its own attention in this layer."""
        return self.injected.position.replaces(self.layer)

    def terms(self, given: Any, q: Tensor, keys: int, training: bool, dropped: int = 0) -> Terms:
        """The terms of the tokens.

        Args:
            given: the pass, or the argument ``structpe``.
            q: (b, h, n, d) the queries.
            keys: m.
            training: whether this is a training step.
            dropped: number of tokens before the first key, which a sliding window no longer keeps.
        """
        if (found := self._asked(given, dropped + keys, q)) is None:
            return Terms()
        passing, positions = found
        prepared = passing.prepared(self.injected, positions, q, self.layer)
        terms = self.injected.terms(prepared, Site(self.layer, training), q)
        places = passing.places(self.injected, positions, q, q.shape[2], dropped + keys, keys)
        if places is not None and self.injected.where == "cross" and terms.maps:
            raise PositionError(_CROSS)
        return (terms if places is None else places.terms(terms)) + _present(positions, dropped + keys, dropped)

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
        prepared = passing.prepared(self.injected, positions, x, self.layer)
        places = passing.places(self.injected, positions, x, x.shape[1], past + x.shape[1])
        if places is None:
            return self.injected.change(x, prepared, Site(self.layer, training), len(x))
        site = Site(self.layer, training)
        (changed,) = places.changed(lambda each: (self.injected.change(each, prepared, site, places.structures),), x)
        return changed

    def sources(self, given: Any, x: Sources, training: bool) -> Sources:
        """What the attention projects: the vectors (b, n, d) of tokens, each a unit."""
        if (
            "sources" not in self.injected.position.sites
            or (found := self._asked(given, x.key.shape[1], x.key)) is None
        ):
            return x
        passing, positions = found
        prepared = passing.prepared(self.injected, positions, x.key, self.layer)
        self._check_in_order(passing, positions, x.key)
        return self.injected.sources(x, prepared, Site(self.layer, training))

    def attend(self, given: Any, x: Tensor, extra: Terms, dropout: float, training: bool) -> Tensor:
        """The position model's own attention among tokens (b, n, d), each a unit.

        Args:
            given: the pass, or the argument ``structpe``.
            x: the tokens.
            extra: the masks of the model.
            dropout: probability that an attention weight is dropped.
            training: whether this is a training step.
        """
        found = self._asked(given, x.shape[1], x)
        assert found is not None, "a pass without positions is that of the model itself"
        passing, positions = found
        self._check_in_order(passing, positions, x)
        prepared, _ = passing.prepared(self.injected, positions, x, self.layer)
        site, position = Site(self.layer, training, dropout=dropout), self.injected.position
        terms = position.terms(prepared, site) + _present(positions, x.shape[1]) + extra
        out, after = position.attend(x, prepared, site, terms)
        passing.keep(self.injected, self.layer + 1, after)
        return out

    def _check_in_order(self, passing: Pass, positions: TokenPositions, x: Tensor) -> None:
        if passing.places(self.injected, positions, x, x.shape[1], x.shape[1]) is not None:
            raise PositionError(
                f"position model {self.injected.position.name!r} acts before tokens are projected, where each token "
                f"must be one unit, in order, and each row have its structure; give structpe=structpe.encode("
                f"structures, handle.encodings)"
            )

    def _asked(self, given: Any, keys: int, like: Tensor) -> tuple[Pass, TokenPositions] | None:
        passing = given if isinstance(given, Pass) else Pass(given, {}, keeps=False)
        positions = passing.positions(self.injected, keys, like)
        return None if positions is None else (passing, positions)


class Begin:
    """A hook of a model whose parts pass nothing on: it begins a pass with the argument ``structpe``.

    Args:
        host: the model.
        injected: the position model in it.
    """

    def __init__(self, host: Host, injected: Injected) -> None:
        self.host, self.injected = host, injected

    def __call__(self, module: Any, given: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        named, passes = dict(named), self.host.passes
        if NAME in named:
            passing = Pass(self.host.given(named.pop(NAME), self.injected), {}, keeps=True)
        else:
            passing = running(self.host, self.injected)
        passes.begin(passing)
        return given, named

    def end(self, *_: Any) -> None:
        """End the pass, after each call."""
        self.host.passes.end()


def running(host: Host, injected: Injected) -> Pass:
    """The pass that is running, or bound by ``reading``.

    Raises:
        PositionError: there is none.
    """
    known = host.passes.known()
    if known is None and injected.structures == "path":
        return Pass(None, {}, keeps=True)
    if known is None:
        raise PositionError(_missing(injected))
    return known


def _missing(injected: Injected) -> str:
    return (
        f"this model has a position model in its {injected.where}, and the batch has no positions for it; call it with "
        f"structpe=structpe.encode(structures, handle.encodings), or structpe=TokenPositions(...), as batches of "
        f"handle.collator(tokenizer) do, or within handle.reading(...); structpe=None is a pass without"
    )


def _present(positions: TokenPositions, keys: int, dropped: int = 0) -> Terms:
    """The mask of places without a unit, where the positions know them, without the first, ``dropped`` ones."""
    there = positions.present
    if there is None:
        return Terms()
    there = there[:, :keys] if there.shape[1] >= keys else nn.functional.pad(there, (0, keys - there.shape[1]), value=1)
    return Terms(mask=(there[:, None, None, dropped:],))


def _of_units(given: Any, injected: Injected, m: int, like: Tensor) -> TokenPositions:
    """The positions of units whose i-th one is the i-th token.

    Raises:
        PositionError: they are none, or there are as many tokens, or the tokens attend to others.
    """
    if not isinstance(given, Positions):
        given = _encoded(given, injected)
    if isinstance(given, TokenPositions):
        return given.to(like.device)
    if injected.where == "cross":
        raise PositionError(
            "in cross-attention tokens stand at units of a structure; give structures or TokenPositions"
        )
    rows, units = size_of(given) or (len(like), m)
    if units != m:
        raise PositionError(
            f"the positions are of {units} units, and there are {m} tokens; if they are not one and the same, say "
            f"which unit each token is, structpe=TokenPositions.of(structures, units, handle.encodings), or make "
            f"batches with handle.collator(tokenizer)"
        )
    places = torch.arange(m, device=like.device).expand(rows, -1)
    present = None if given.present is None else given.present.to(like.device)
    return TokenPositions(given, m, places, places.new_zeros(rows), repeats=1, present=present)


def _encoded(given: Any, injected: Injected) -> Positions | TokenPositions:
    """The positions of structures, in any form.

    Raises:
        PositionError: they are none.
    """
    if given is None or isinstance(given, Mapping):
        raise PositionError(_missing(injected))
    if isinstance(given, str) or (isinstance(given, list | tuple) and given and isinstance(given[0], str)):
        words = str(given.split() if isinstance(given, str) else list(given))
        raise PositionError(
            f"structpe takes structures, one for each row, and words are given; a sentence is structpe.path("
            f"{words[:60]}{'...]' * (len(words) > 60)}), and with heads structpe.tree(words, heads)"
        )
    try:
        structures = [as_structure(each) for each in given] if isinstance(given, list | tuple) else as_structures(given)
    except StructPEError as error:
        raise PositionError(
            f"structpe takes what structpe.encode gives, structures or TokenPositions; given is "
            f"{type(given).__name__} ({error})"
        ) from error
    if not structures:
        raise PositionError("structpe is an empty list; give a structure for each row, or None for a pass without")
    encodings = injected.position.encodings
    if injected.where == "cross":
        return TokenPositions.of(structures, [range(each.unit_count) for each in structures], encodings)
    return encode(structures, encodings)


def size_of(positions: Positions) -> tuple[int, int] | None:
    """The number of structures, 1 if all have the same positions, and of their units; None if only pairs are listed."""
    for value in positions.values():
        if isinstance(value, Tensor):
            return value.shape[0], value.shape[1]
        if isinstance(value, Lookup):
            return max(len(value.rows), value.index.shape[0]), value.index.shape[1]
    return None if positions.present is None else (positions.present.shape[0], positions.present.shape[1])


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


def check_trial(host: Host, injected: Injected) -> None:
    """Check the terms of an injected model on the first of some small structures that its encodings support.

    If they support none, errors are found in the first pass.

    Raises:
        PositionError: a term cannot be used in this model, or not in this attention, or cannot start at zero.
    """
    like = next((each for each in injected.parameters()), torch.zeros(()))
    if like.is_meta:
        return
    was = injected.training
    injected.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            for structure in host.samples(injected.structures == "path"):
                if _answers(injected, structure, like, host.takes):
                    return
    finally:
        injected.train(was)


def _answers(injected: Injected, structure: Structure, like: Tensor, takes: frozenset[str]) -> bool:
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
        if "vectors" not in takes:
            additive(terms, q[:, :, 1:], units)
        elif "linear" not in takes:
            for change in TokenUnits(place, place, units, 1).terms(terms).maps:
                change(q, q)
    injected.mixes = any(_mixes(injected, prepared, site, like.new_ones(1, units, dims.width)) for site in sites)
    return True


def _mixes(injected: Injected, prepared: Any, site: Site, x: Tensor) -> bool:
    """Whether the vectors (1, u, d) of the first and the last unit change those of others."""
    if not injected.position.sites & {"inputs", "layer"}:
        return False
    found, (first, last) = injected.change(x, prepared, site, 1), (x.clone(), x.clone())
    first[:, 0], last[:, -1] = 0, 0
    ahead, behind = (injected.change(each, prepared, site, 1) for each in (first, last))
    return not torch.equal(found[:, 1:], ahead[:, 1:]) or not torch.equal(found[:, :-1], behind[:, :-1])

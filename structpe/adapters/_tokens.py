"""From units to tokens: the positions and terms of the tokens of a batch, and its collator.

Shapes: b batch, p structures (b, one for all, or one for each group of beams), h heads, n queries, m keys, u units of
the largest structure, r rows that a structure uses.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int, Integer
from numpy.typing import NDArray
from torch import Tensor

from structpe.data.batch import as_one
from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions import Positions
from structpe.positions.batch import encode
from structpe.structure import Structure
from structpe.terms import Factor, Lookup, Map, SparsePairs, Terms, Toeplitz
from structpe.transforms.units import as_tokenizer, split

__all__ = ["IGNORED", "NONE", "Collator", "TokenPositions", "TokenUnits", "padded"]


NONE = -1
"""The unit of a token that has none: special tokens, prompts, padding, generated text."""


class TokenUnits:
    """The unit of each query and each key. Pairs without a unit on both sides do not change.

    Tokens of one unit have its position, but vectors of their own.

    Args:
        queries: (b, n) unit of each query, -1 for none.
        keys: (b, m) unit of each key, -1 for none.
        units: u.
        structures: p, of which b is a multiple.
        keeps: whether results for an index are kept for the next layer; not under gradient checkpointing, which
            recomputes everything.
        repeats: largest number of tokens of one unit.
    """

    def __init__(
        self,
        queries: Int[Tensor, "b n"],
        keys: Int[Tensor, "b m"],
        units: int,
        structures: int,
        keeps: bool = True,
        repeats: int = 1,
    ) -> None:
        self.units, self.structures, self.keeps, self.repeats = units, structures, keeps, repeats
        self.turns = tuple(_turns(each) if repeats > 1 else None for each in (queries, keys))
        self.there = queries != NONE, keys != NONE
        self.queries, self.keys = queries.clamp(min=0), keys.clamp(min=0)
        self.group = len(queries) // structures
        self.structure = torch.arange(len(queries), device=queries.device) // self.group
        self._made: list[tuple[Any, Any]] = []

    def terms(self, terms: Terms) -> Terms:
        """The terms of the tokens.

        Raises:
            PositionError: a term does not belong to single queries or pairs.
        """
        if lost := terms.used() & {"feature_map", "projection"}:
            raise PositionError(
                f"a position model that changes attention as a whole ({', '.join(sorted(lost))}) cannot enter another "
                f"model; choose one with biases, vectors of pairs, masks or rotations"
            )
        masks = [self._dense(mask, True) for mask in terms.mask]
        for listed in terms.pairs:
            masks.append(self._dense(listed.dense(self.structures, self.units, self.units), True))
        return Terms(
            maps=tuple(self._map(each) for each in terms.maps),
            factors=tuple(self._factor(each) for each in terms.factors),
            bias=tuple(self._pairs(each, 0.0) for each in terms.bias),
            gate=tuple(self._pairs(each, 1.0) for each in terms.gate),
            mask=tuple(masks),
            key=tuple(self._lookup(each, 0.0) for each in terms.key),
            query=tuple(self._lookup(each, 0.0) for each in terms.query),
            product=tuple(self._lookup(each, 0.0) for each in terms.product),
            value=tuple(self._lookup(each, 0.0) for each in terms.value),
            act=terms.act,
            scale=terms.scale,
            causal=terms.causal,
        )

    def changed(self, change: Callable[..., tuple[Tensor, ...]], *given: Tensor) -> tuple[Tensor, ...]:
        """Apply a function of units to tokens: queries (b, ..., n, d), and keys (b, ..., m, d) if given.

        The function is applied to the first tokens of all units, then to the second ones, and so on: it changes the
        vector of a unit by the position of the unit only. Tokens without a unit do not change.
        """
        made = given
        for turn in range(self.repeats):
            units = self.in_groups(change, *(self._to_units(x, side, turn) for side, x in enumerate(given)))
            made = tuple(
                self._to_tokens(x, old, side, turn) for side, (x, old) in enumerate(zip(units, made, strict=True))
            )
        return made

    def _to_units(self, x: Tensor, side: int, turn: int) -> Tensor:
        """Scatter tokens (b, ..., n, d) to units (b, ..., u, d), 0 without a token; side 0 is queries, 1 keys."""
        place = torch.where(self._of_turn(side, turn), (self.queries, self.keys)[side], self.units)
        spread = place.view(len(place), *[1] * (x.ndim - 3), -1, 1).expand(x.shape)
        empty = x.new_zeros(*x.shape[:-2], self.units + 1, x.shape[-1])
        return empty.scatter(-2, spread, x)[..., : self.units, :]

    def _to_tokens(self, x: Tensor, otherwise: Tensor, side: int, turn: int) -> Tensor:
        """Gather tokens (b, ..., n, d) from units (b, ..., u, d); tokens without a unit are those of ``otherwise``."""
        if x.shape[-1] != otherwise.shape[-1]:
            raise PositionError(
                f"the position model makes heads of {otherwise.shape[-1]} channels {x.shape[-1]} wide, which tokens "
                f"without a unit are not; choose one that keeps the width"
            )
        form = (len(otherwise), *[1] * (x.ndim - 3), -1, 1)
        place = (self.queries, self.keys)[side].view(form).expand(*x.shape[:-2], -1, x.shape[-1])
        return torch.where(self._of_turn(side, turn).view(form), x.gather(-2, place).to(otherwise.dtype), otherwise)

    def _of_turn(self, side: int, turn: int) -> Tensor:
        """(b, n) whether each token has a unit, and is its token number ``turn``."""
        turns = self.turns[side]
        return self.there[side] if turns is None else self.there[side] & (turns == turn)

    def in_groups(self, change: Callable[..., Any], *given: Tensor) -> tuple[Tensor, ...]:
        """Apply a function of tensors with p rows to tensors with b rows, once for each beam of a group."""
        if self.group == 1 or self.structures == 1:
            return tuple(change(*given))
        beams = [[x.view(-1, self.group, *x.shape[1:])[:, i] for x in given] for i in range(self.group)]
        made = zip(*(change(*each) for each in beams), strict=True)
        return tuple(torch.stack(parts, dim=1).flatten(0, 1) for parts in made)

    def _pairs(self, x: Lookup | SparsePairs | Tensor, nothing: float) -> Lookup | Tensor:
        return self._dense(x, nothing) if isinstance(x, Tensor) else self._lookup(x, nothing)

    def _lookup(self, x: Lookup | SparsePairs, nothing: float) -> Lookup:
        if isinstance(x, SparsePairs):
            return self._lookup(_of_list(x, self.structures, self.units, nothing), nothing)
        return self._kept(x, lambda: self._placed(x, nothing)) if x.shared else self._placed(x, nothing)

    def _placed(self, x: Lookup, nothing: float) -> Lookup:
        """The lookup with one more row in the table, for pairs without units."""
        last = x.table.new_full((1, *x.table.shape[1:]), nothing)
        rows = self._kept(x.rows, lambda: self._rows(x))
        index = self._kept(x.index, lambda: self._index(x))
        return Lookup(torch.cat([x.table, last]), rows, index, shared=x.shared and self.keeps)

    def _rows(self, x: Lookup) -> Tensor:
        none = x.rows.new_full((len(x.rows), 1), len(x.table))
        rows = torch.cat([x.rows, none], dim=1)
        return rows if len(rows) == 1 else rows[self.structure]

    def _index(self, x: Lookup) -> Tensor:
        none, q, k = x.rows.shape[1], self.queries[:, :, None], self.keys[:, None, :]
        if isinstance(x.index, Toeplitz):
            given, place = x.index.diagonals, [k - q + x.index.n - 1]
        else:
            given, place = x.index, [q, k]
        if none > torch.iinfo(given.dtype).max:
            given = given.to(torch.int16 if none < 1 << 15 else torch.int32)
        index = given[(self._structure(given), *place)]
        return index.masked_fill(~self._both(), none)

    def _dense(self, x: Tensor, nothing: float | bool) -> Tensor:
        """(b, h or 1, n, m) from (p or 1, h or 1, u or 1, u or 1)."""
        whole = x.expand(-1, -1, self.units, self.units).movedim(1, 3)
        made = whole[self._structure(x), self.queries[:, :, None], self.keys[:, None, :]].movedim(3, 1)
        return made.masked_fill(~self._both()[:, None], nothing)

    def _factor(self, x: Factor) -> Factor:
        def of(side: Tensor, place: Tensor, there: Tensor) -> Tensor:
            whole = side.expand(-1, -1, self.units, -1).movedim(1, 2)
            made = whole[self._structure(side)[:, :, 0], place].movedim(2, 1)
            return made * there[:, None, :, None]

        return Factor(of(x.left, self.queries, self.there[0]), of(x.right, self.keys, self.there[1]))

    def _map(self, change: Map) -> Map:
        """The map for tokens; tokens without a unit do not change."""

        def turned(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
            of_q, of_k = self.changed(change, q, k)
            return of_q, of_k

        return turned

    def _structure(self, given: Tensor) -> Tensor:
        """(b, 1, 1) the row of each batch row in a tensor with p rows, or with one that all structures share."""
        of_each = torch.zeros_like(self.structure) if len(given) == 1 else self.structure
        return of_each[:, None, None]

    def _both(self) -> Tensor:
        return self.there[0][:, :, None] & self.there[1][:, None, :]

    def _kept(self, of: Any, make: Callable[[], Any]) -> Any:
        """The result of ``make``, computed once per object: layers share an index, or a whole lookup."""
        if not self.keeps or torch.compiler.is_compiling():
            return make()
        for known, made in self._made:
            if known is of:
                return made
        made = make()
        self._made.append((of, made))
        return made


def _turns(units: Tensor) -> Tensor:
    """(b, n) the number of earlier tokens of the same unit."""
    return (units[:, :, None] == units[:, None, :]).tril(-1).sum(-1)


def _of_list(x: SparsePairs, structures: int, units: int, nothing: float) -> Lookup:
    """A lookup of all pairs from listed pairs; other pairs have an additional last row."""
    none = len(x.table)
    index = x.index.new_full((structures, units, units), none, dtype=torch.int64)
    index[x.pairs.batch, x.pairs.query, x.pairs.key] = x.index.long()
    table = torch.cat([x.table, x.table.new_zeros(1, *x.table.shape[1:])])
    return Lookup(table, torch.arange(none + 1, device=index.device)[None], index)


@dataclass(frozen=True, eq=False)
class TokenPositions:
    """The positions of the units of b structures, and the unit of each token; the argument ``structpe`` of a batch.

    It is neither a tensor nor a mapping: trainers pass it on unchanged.

    Attributes:
        positions: positions of the units, from :func:`structpe.encode`.
        size: number of units of the largest structure.
        units: (b, n) unit of each token; -1 for none, as for special tokens, a prompt or padding.
        root: (b,) unit of the root, which all tokens of a decoder have in cross-attention without ``targets``.
        targets: (b, t) unit of each token of the decoder, for cross-attention; None for the root.
        repeats: largest number of tokens of one unit, such as the pieces of a word; None to count them.
        present: (b, n) which tokens are no padding, if the model is not told otherwise.
    """

    positions: Positions
    size: int
    units: Integer[Tensor, "b n"]
    root: Integer[Tensor, " b"]
    targets: Integer[Tensor, "b t"] | None = None
    repeats: int | None = None
    present: Tensor | None = None

    def __post_init__(self) -> None:
        for name in ("units", "targets"):
            given: Any = getattr(self, name)
            if given is not None and (not isinstance(given, Tensor) or given.ndim != 2 or given.is_floating_point()):
                raise PositionError(f"{name} of TokenPositions are (b, n) whole numbers, a unit for each token, or -1")
        if self.repeats is None:
            object.__setattr__(self, "repeats", _most(self.units))

    @classmethod
    def of(
        cls,
        structures: Sequence[Structure],
        units: Sequence[Sequence[int] | NDArray[Any]],
        encodings: Sequence[Encoding],
        length: int | None = None,
        left: bool = False,
    ) -> TokenPositions:
        """Encode structures, and pad the units of their tokens.

        Args:
            structures: b structures.
            units: for each structure, the unit of each token, -1 for none.
            encodings: encodings of the position models.
            length: n; None for the longest.
            left: whether padding is on the left.
        """
        return cls.joined(structures, units, encode(structures, encodings), length, left)

    @classmethod
    def joined(
        cls,
        structures: Sequence[Structure],
        units: Sequence[Sequence[int] | NDArray[Any]],
        positions: Positions,
        length: int | None = None,
        left: bool = False,
    ) -> TokenPositions:
        """Pad the units of the tokens of encoded structures; arguments as in :meth:`of`."""
        most = max(len(each) for each in units) if length is None else length
        padded = np.full((len(units), most), NONE, dtype=np.int64)
        for row, each in zip(padded, units, strict=True):
            row[slice(most - len(each), None) if left else slice(len(each))] = each
        owners = [(s.root or 0, s.unit_owner) for s in structures]
        root = [int(np.flatnonzero(owner == node)[0]) if (owner == node).any() else 0 for node, owner in owners]
        size = max(each.unit_count for each in structures)
        return cls(positions, size, torch.from_numpy(padded), torch.tensor(root))

    def __len__(self) -> int:
        return len(self.units)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> TokenPositions:
        """The positions on another device; itself if it is already there."""
        where = torch.empty(0, device=device).device  # with the number of the GPU
        if self.units.device == where:
            return self
        targets = None if self.targets is None else self.targets.to(where, non_blocking=non_blocking)
        units, root = (x.to(where, non_blocking=non_blocking) for x in (self.units, self.root))
        present = None if self.present is None else self.present.to(where, non_blocking=non_blocking)
        return TokenPositions(self.positions.to(where), self.size, units, root, targets, self.repeats, present)


def _most(units: Tensor) -> int:
    """The largest number of tokens of one unit, from units (b, n); 1 without units."""
    if units.numel() == 0 or int(units.max()) == NONE:
        return 1
    counts = units.new_zeros(len(units), int(units.max()) + 1)
    return int(counts.scatter_add_(1, units.clamp(min=0), (units != NONE).to(units.dtype)).max())


as_one(TokenPositions)


IGNORED = -100
"""The label of a token that the loss ignores."""


class _Row(NamedTuple):
    """One text.

    Attributes:
        ids: ids of the tokens.
        units: unit of each token.
        labels: labels of the tokens, or of the text that a decoder writes; None without a target.
        structure: the structure, with its units.
    """

    ids: list[int]
    units: list[int]
    labels: list[int] | None
    structure: Structure


class Collator:
    """Makes batches for a model of Hugging Face, with the positions as ``structpe``.

    An item is a dict. ``structure`` is the graph, whose labels are tokenized in the order of its nodes; apply
    :func:`structpe.transforms.levi` or ``linearise`` before, if needed. With ``text``, the sentence whose words are its
    nodes (feature ``span``), the text is tokenized instead. ``target`` is the text that the model learns to write, in
    the decoder of an encoder-decoder, or after the structure. An item may also be tokenized already: it then has
    ``input_ids`` and ``units``, the unit of each token or -1. ``labels`` and other numbers are stacked. Special tokens,
    prompt, suffix, target and padding have no unit.

    Args:
        tokenizer: a fast tokenizer of ``transformers``.
        encodings: encodings of the position models.
        encoder_decoder: whether the model is an encoder-decoder.
        prompt: text before the structure.
        suffix: text after the structure.
        special: whether to add the tokenizer's special tokens, such as [CLS] and </s>.
        places: whether batches with padding on the left have ``position_ids``, without which the place of a text would
            depend on the batch. Not for models without this argument.
    """

    def __init__(
        self,
        tokenizer: Any,
        encodings: Sequence[Encoding],
        encoder_decoder: bool,
        prompt: str = "",
        suffix: str = "",
        special: bool = True,
        places: bool = False,
    ) -> None:
        self.tokenizer, self.fast = tokenizer, as_tokenizer(tokenizer)
        self.encodings, self.encoder_decoder = tuple(encodings), encoder_decoder
        self.before, self.behind = self._ids(prompt), self._ids(suffix)
        self.special, self.places = special, places

    def __call__(self, items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Make a batch with ``input_ids``, ``attention_mask``, ``structpe``, and ``labels`` and other keys of items.

        Raises:
            PositionError: there is no item; an item has no structure, a value that is not a number, or lacks a key that
                others have and that has no neutral value; or the tokenizer has no padding.
        """
        if not items:
            raise PositionError("a batch needs one item or more, but the list is empty; leave the batch out")
        rows = [self._row(item) for item in items]
        padding = self.tokenizer.pad_token_id
        if padding is None and len({len(row.ids) for row in rows}) > 1:
            raise PositionError("the tokenizer has no padding; set it, tokenizer.pad_token = tokenizer.eos_token say")
        left = self.tokenizer.padding_side == "left"
        batch: dict[str, Any] = {
            "input_ids": padded([row.ids for row in rows], padding or 0, left),
            "attention_mask": padded([[1] * len(row.ids) for row in rows], 0, left),
        }
        if self.encodings:
            structures, units = [row.structure for row in rows], [row.units for row in rows]
            batch["structpe"] = TokenPositions.of(structures, units, self.encodings, left=left)
        if left and self.places:
            batch["position_ids"] = (batch["attention_mask"].cumsum(1) - 1).clamp(min=0)
        if any(row.labels is not None for row in rows):
            # Items without a target are ignored by the loss.
            none = [[] if self.encoder_decoder else [IGNORED] * len(row.ids) for row in rows]
            labels = [each if row.labels is None else row.labels for row, each in zip(rows, none, strict=True)]
            batch["labels"] = padded(labels, IGNORED, left and not self.encoder_decoder)
        return batch | _others(items, [len(row.ids) for row in rows], left)

    def _row(self, item: Mapping[str, Any]) -> _Row:
        structure = item.get("structure")
        if not isinstance(structure, Structure):
            raise PositionError(
                f"an item is a dict with 'structure', a Structure; given is {type(structure).__name__}; "
                f"structpe.as_structure makes one of other objects, structpe.path(words) of words, and "
                f"structpe.tree(words, heads) of words with heads"
            )
        if "input_ids" in item:
            ids, units = list(map(int, item["input_ids"])), list(map(int, item.get("units", ())))
            if len(ids) != len(units) or any(not NONE <= unit < structure.unit_count for unit in units):
                raise PositionError(
                    f"an item with input_ids has 'units', for each of the {len(ids)} tokens one of the "
                    f"{structure.unit_count} units or -1; given are {units}"
                )
        else:
            ids, units, structure = self._split(structure, item.get("text"))
        target = item.get("target")
        if target is None:
            return _Row(ids, units, None, structure)
        if self.encoder_decoder:
            return _Row(ids, units, self._written(target), structure)
        written = self._ids(target)
        if self.tokenizer.eos_token_id is not None:
            written.append(self.tokenizer.eos_token_id)
        ignored, none = [IGNORED] * len(ids), [NONE] * len(written)
        return _Row(ids + written, units + none, ignored + written, structure)

    def _split(self, structure: Structure, text: str | None) -> tuple[list[int], list[int], Structure]:
        """The ids of all tokens, the unit of each, and the structure with its units."""
        found = split(structure, self.fast, text, missing="unknown" if text is None else "none", blanks="keep")
        ids, units = found.ids.tolist(), list(range(len(found.ids)))
        if text is not None:
            pieces = self.fast.encode(text, add_special_tokens=False)
            # Several pieces of one character have the same span; they keep their order.
            at: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)
            for unit, (start, end) in enumerate(found.spans.tolist()):
                at[start, end].append(unit)
            ids, units = pieces.ids, [at[span].popleft() if at[span] else NONE for span in pieces.offsets]
        first, last = self._around(structure.nodes[0] if text is None else text) if self.special else ([], [])
        front, back = first + self.before, self.behind + last
        return front + ids + back, [NONE] * len(front) + units + [NONE] * len(back), found.structure

    def _around(self, text: str) -> tuple[list[int], list[int]]:
        """The ids of the special tokens before and after a text."""
        encoding = self.fast.encode(text, add_special_tokens=True)
        inner = [place for place, added in enumerate(encoding.special_tokens_mask) if not added]
        first, last = (inner[0], inner[-1] + 1) if inner else (len(encoding.ids), len(encoding.ids))
        return encoding.ids[:first], encoding.ids[last:]

    def _written(self, target: str) -> list[int]:
        """The ids of a text that a decoder writes, in the tokenizer's target language if it has one."""
        if getattr(self.tokenizer, "tgt_lang", None) is None:
            return list(self.fast.encode(target).ids)
        return list(self.tokenizer(text_target=target, truncation=False)["input_ids"])

    def _ids(self, text: str) -> list[int]:
        return list(self.fast.encode(text, add_special_tokens=False).ids)


_CONSUMED = ("structure", "text", "target", "input_ids", "units")


def _others(items: Sequence[Mapping[str, Any]], lengths: Sequence[int], left: bool) -> dict[str, Tensor]:
    """The other keys of items, stacked; missing labels are ignored by the loss."""
    made = {}
    for key in dict.fromkeys(key for item in items for key in item if key not in _CONSUMED):
        given = [item.get(key) for item in items]
        some = next((each for each in given if each is not None), None)
        lists = key == "labels" and isinstance(some, (list, tuple))
        for number, each in enumerate(given):
            if each is None:
                given[number] = _nothing(key, some, lengths[number], number)
        if lists:
            made[key] = padded([list(each) for each in given if each is not None], IGNORED, left)
            continue
        try:
            made[key] = torch.stack([torch.as_tensor(each) for each in given])
        except (TypeError, ValueError, RuntimeError) as error:
            raise PositionError(
                f"{key!r} of the items is not a number or an array of one shape, and cannot be batched; leave it out"
            ) from error
    return made


def _nothing(key: str, some: Any, length: int, number: int) -> Any:
    """A neutral value for a missing key of an item: labels that the loss ignores.

    Raises:
        PositionError: the key is not ``labels``, or the labels are real numbers.
    """
    if key == "labels" and isinstance(some, (list, tuple)):
        return [IGNORED] * length
    if key == "labels" and some is not None and not torch.as_tensor(some).is_floating_point():
        return torch.full_like(torch.as_tensor(some), IGNORED)
    raise PositionError(
        f"item {number} of the batch has no {key!r}, and others have; give it to all or none (a whole number as a "
        f"label may be left out, and is then {IGNORED})"
    )


def padded(rows: Sequence[Sequence[int]], padding: int, left: bool) -> Tensor:
    """Pad rows of ids to one tensor."""
    made = torch.full((len(rows), max(map(len, rows))), padding)
    for row, each in zip(made, rows, strict=True):
        row[slice(len(row) - len(each), None) if left else slice(len(each))] = torch.tensor(each, dtype=torch.int64)
    return made

"""Batches of tokens with positions, from structures and texts."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from structpe.adapters._places import NONE
from structpe.adapters._tokens import TokenPositions
from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.structure import Structure
from structpe.transforms.units import as_tokenizer, split

__all__ = ["IGNORED", "Collator", "padded"]

IGNORED = -100
"""The label of a token that has no part in the loss."""


class _Row(NamedTuple):
    """One text.

    Attributes:
        ids: of the tokens.
        units: unit of each token.
        labels: of each token, or of the text that a decoder writes; None if there is no target.
        structure: with its units.
    """

    ids: list[int]
    units: list[int]
    labels: list[int] | None
    structure: Structure


class Collator:
    """Makes a batch of a model of Hugging Face, with the positions as ``structpe``.

    An item is a dict. ``structure`` is the graph; its labels are split by the tokenizer, in the order of its nodes, for
    which one calls :func:`structpe.transforms.levi` or ``linearise`` before. With ``text``, the sentence whose words
    are its nodes (feature ``span``), the text is split instead. ``target`` is the text that the model learns to write:
    an encoder-decoder in its decoder, others behind the structure. Instead of being split, an item may have
    ``input_ids`` and ``units``, the unit of each token or -1. ``labels`` and other numbers are stacked. Special tokens,
    prompt, suffix, target and padding have no unit.

    Args:
        tokenizer: a fast tokenizer of ``transformers``.
        encodings: of the position models.
        encoder_decoder: whether the model has a decoder that reads an encoder.
        prompt: text before the structure.
        suffix: text behind it.
        special: whether the tokenizer's special tokens, such as [CLS] and </s>, are added.
        places: whether batches that are padded on the left have ``position_ids``, without which a text would begin at
            another place in each batch. Not for models without this argument.
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
        """A batch: ``input_ids``, ``attention_mask``, ``structpe``, and ``labels`` and others if items have them.

        Raises:
            PositionError: there is no item; one has no structure, or something that is no number, or lacks what
                others have and has no sign for nothing; or the tokenizer has no padding.
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
            # Where there is no target nothing is compared.
            none = [[] if self.encoder_decoder else [IGNORED] * len(row.ids) for row in rows]
            labels = [each if row.labels is None else row.labels for row, each in zip(rows, none, strict=True)]
            batch["labels"] = padded(labels, IGNORED, left and not self.encoder_decoder)
        return batch | _others(items, [len(row.ids) for row in rows], left)

    def _row(self, item: Mapping[str, Any]) -> _Row:
        structure = item.get("structure")
        if not isinstance(structure, Structure):
            raise PositionError(
                f"an item is a dict with 'structure', a Structure; given is {type(structure).__name__}; "
                f"structpe.as_structure makes one of other objects"
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
            at: defaultdict[tuple[int, int], deque[int]] = defaultdict(
                deque
            )  # pieces of one character have one span, and stay in order
            for unit, (start, end) in enumerate(found.spans.tolist()):
                at[start, end].append(unit)
            ids, units = pieces.ids, [at[span].popleft() if at[span] else NONE for span in pieces.offsets]
        first, last = self._around(structure.nodes[0] if text is None else text) if self.special else ([], [])
        front, back = first + self.before, self.behind + last
        return front + ids + back, [NONE] * len(front) + units + [NONE] * len(back), found.structure

    def _around(self, text: str) -> tuple[list[int], list[int]]:
        """The ids of the special tokens before and behind a text."""
        encoding = self.fast.encode(text, add_special_tokens=True)
        inner = [place for place, added in enumerate(encoding.special_tokens_mask) if not added]
        first, last = (inner[0], inner[-1] + 1) if inner else (len(encoding.ids), len(encoding.ids))
        return encoding.ids[:first], encoding.ids[last:]

    def _written(self, target: str) -> list[int]:
        """The ids of a text that a decoder writes: of several languages it is in the tokenizer's target language."""
        if getattr(self.tokenizer, "tgt_lang", None) is None:
            return list(self.fast.encode(target).ids)
        return list(self.tokenizer(text_target=target, truncation=False)["input_ids"])

    def _ids(self, text: str) -> list[int]:
        return list(self.fast.encode(text, add_special_tokens=False).ids)


_CONSUMED = ("structure", "text", "target", "input_ids", "units")


def _others(items: Sequence[Mapping[str, Any]], lengths: Sequence[int], left: bool) -> dict[str, Tensor]:
    """What items have besides, stacked; labels that one lacks are ignored ones."""
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
                f"{key!r} of the items is no number or array of one shape, and cannot be part of a batch; leave it out"
            ) from error
    return made


def _nothing(key: str, some: Any, length: int, number: int) -> Any:
    """The label of an item without one, as those of others are.

    Raises:
        PositionError: it is no label, or a number that nothing stands for.
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
    """Rows of ids as one tensor, as long as the longest."""
    made = torch.full((len(rows), max(map(len, rows))), padding)
    for row, each in zip(made, rows, strict=True):
        row[slice(len(row) - len(each), None) if left else slice(len(each))] = torch.tensor(each, dtype=torch.int64)
    return made

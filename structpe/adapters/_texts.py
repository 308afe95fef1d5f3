"""Prepares graphs and texts for a pretrained model that writes: tokens, units, encodings, batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structpe.adapters._collator import IGNORED, padded
from structpe.adapters._kinds import Kind
from structpe.adapters._places import NONE
from structpe.adapters._tokens import TokenPositions
from structpe.data.chunks import columns
from structpe.data.encode import join
from structpe.data.whole import as_one
from structpe.encodings.base import Encoded, Encoding
from structpe.errors import ConfigError, StructureError
from structpe.formats import Item
from structpe.plain.bounds import UNITS, bounded
from structpe.structure import Ids, Structure
from structpe.transforms.texts import Form, Written, with_readable_labels, written

__all__ = ["TextBatch", "TextExample", "Texts", "TextsConfig"]


@dataclass(frozen=True)
class TextsConfig:
    """How items are prepared for a pretrained model.

    Args:
        tokenizer: folder or name of a fast tokenizer; null for that of the checkpoint.
        graph: the text that the model reads: ``linear``, the depth-first walk with brackets; ``levi``, each node and
            each relation once; ``plain``, the nodes only.
        labels: ``readable`` writes node labels as words (``want-01`` as "want"); ``raw`` leaves them.
        prompt: before the graph, with the blank that separates it.
        suffix: behind the graph, with the blank that separates it; a decoder alone needs one, to see where its text
            begins.
        lowercase: whether texts are lowercased.
        longest_source: a graph of more tokens, prompt and suffix included, is an error; nothing is truncated.
        longest_target: longer texts are left out of training; their number is reported.
    """

    tokenizer: str | None = None
    graph: Form = "linear"
    labels: Literal["readable", "raw"] = "readable"
    prompt: str = ""
    suffix: str = ""
    lowercase: bool = False
    longest_source: int = 512
    longest_target: int = 256

    def __post_init__(self) -> None:
        for name in ("longest_source", "longest_target"):
            if (value := getattr(self, name)) < 1:
                raise ConfigError(f"prepare.{name} is {value}; it must be 1 or more")
        bounded(self, "prepare.", longest_source=UNITS, longest_target=UNITS)


@dataclass(frozen=True, eq=False)
class TextExample:
    """A graph as tokens, encoded, and a text for it.

    Attributes:
        structure: with its units.
        ids: (s,) of the tokens that are read.
        units: (s,) unit of each; -1 for none.
        encoded: of each encoding.
        target: (t,) ids of the text, with its end; None if there is no text.
        texts: all reference texts.
        id: of the item.
    """

    structure: Structure
    ids: Ids
    units: Ids
    encoded: Mapping[Encoding, Encoded]
    target: NDArray[np.int64] | None
    texts: tuple[str, ...]
    id: str

    @property
    def size(self) -> int:
        """Tokens to read."""
        return len(self.ids)

    @property
    def cost(self) -> int:
        """Tokens to read and to write."""
        return self.size + (0 if self.target is None else len(self.target))


@dataclass(frozen=True, eq=False)
class TextBatch:
    """What a model of Hugging Face reads.

    Attributes:
        given: its arguments: ``input_ids``, ``attention_mask``, and ``structpe`` if it has position models.
        labels: what its scores are compared with, -100 where nothing is; None without texts.
    """

    given: Mapping[str, Any]
    labels: Tensor | None

    def to(self, device: torch.device | str, non_blocking: bool = False) -> TextBatch:
        """The same on another device."""
        moved = {name: each.to(device, non_blocking=non_blocking) for name, each in self.given.items()}
        return TextBatch(moved, None if self.labels is None else self.labels.to(device, non_blocking=non_blocking))


as_one(TextBatch)


class Texts:
    """What training and use of a pretrained model share: its tokenizer and the form of the graph.

    Args:
        config: the form.
        tokenizer: of the ``tokenizers`` library.
        padding: id of a token that pads.
        last: id of the token that ends a text.
        kind: how the model writes.
        encodings: of its position models.
    """

    def __init__(
        self, config: TextsConfig, tokenizer: Any, padding: int, last: int, kind: Kind, encodings: Sequence[Encoding]
    ) -> None:
        self.config, self.padding, self.last, self.kind = config, padding, last, kind
        self.encodings = tuple(encodings)
        self.tokenizer = type(tokenizer).from_str(tokenizer.to_str())  # a copy that neither truncates nor pads
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    def structure(self, item: Item) -> Structure:
        """The item's graph, whose units are tokens."""
        return self._written(item).structure

    def examples(self, items: Iterable[Item], every_text: bool = False, jobs: int = 1) -> list[TextExample]:
        """Encode items.

        Args:
            items: from a reader.
            every_text: one example per reference text, for training; otherwise one per item, with the first text.
            jobs: processes that encode; the examples do not depend on their number.

        Raises:
            StructureError: a graph has more tokens than ``longest_source``, or lacks what its form needs.
        """
        each = [(item, self._written(item)) for item in items]
        encoded = columns([made.structure for _, made in each], self.encodings, jobs)
        examples = []
        for number, (item, made) in enumerate(each):
            mine = {encoding: column[number] for encoding, column in encoded.items()}
            base = TextExample(made.structure, made.ids, made.units, mine, None, item.texts, item.id)
            for text in (item.texts if every_text else item.texts[:1]) or (None,):
                target = None if text is None else self._target(made.text, text)
                if not every_text or target is None or len(target) <= self.config.longest_target:
                    examples.append(replace(base, target=target))
        return examples

    def collate(self, examples: Sequence[TextExample], writes: bool = False) -> TextBatch:
        """A batch.

        Args:
            examples: in their order.
            writes: whether texts are to be written: the targets are then left out.
        """
        left = writes and self.kind.left
        pairs = [(list(each.ids), None) if writes else self._row(each) for each in examples]
        rows, labels = [ids for ids, _ in pairs], [each for _, each in pairs if each is not None]
        given: dict[str, Any] = {
            "input_ids": padded(rows, self.padding, left),
            "attention_mask": padded([[1] * len(row) for row in rows], 0, left),
        }
        if self.encodings:
            positions = join({e: [each.encoded[e] for each in examples] for e in self.encodings})
            units = [[*each.units, *[NONE] * (len(row) - each.size)] for each, row in zip(examples, rows, strict=True)]
            structures = [each.structure for each in examples]
            given["structpe"] = TokenPositions.joined(structures, units, positions, left=left)
        return TextBatch(given, padded(labels, IGNORED, False) if labels else None)

    def _row(self, example: TextExample) -> tuple[list[int], list[int] | None]:
        """What is read in training, and the labels."""
        ids, target = example.ids.tolist(), example.target
        return (ids, None) if target is None else self.kind.row(ids, target.tolist())

    def text(self, ids: Sequence[int]) -> str:
        """Decode ids, up to the end of the text."""
        kept = list(ids)
        kept = kept[: kept.index(self.last)] if self.last in kept else kept
        return str(self.tokenizer.decode(kept)).strip()

    def _written(self, item: Item) -> Written:
        config = self.config
        graph = with_readable_labels(item.structure) if config.labels == "readable" else item.structure
        made = written(graph, self.tokenizer, config.graph, config.prompt, config.suffix)
        read = self.kind.source(made.added)
        if read > config.longest_source:
            raise StructureError(
                f"the graph has {read} tokens, longest_source is {config.longest_source}; raise "
                f"prepare.longest_source or leave this item out"
            ).at(graph.name or item.id)
        return replace(made, ids=made.ids[:read], units=made.units[:read])

    def _target(self, source: str, text: str) -> NDArray[np.int64]:
        ids = self.kind.target(self.tokenizer, source, text.lower() if self.config.lowercase else text)
        return np.array(ids if ids and ids[-1] == self.last else [*ids, self.last])

"""Models that write texts, from the items of a file to texts and their scores."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from structpe.data.bpe_dropout import ResampledExamples, Resplit
from structpe.data.prepare import Preparer
from structpe.errors import ConfigError, StructPEError, listed, located
from structpe.formats import READERS, Item, as_items, read
from structpe.formats.reading import paths_of
from structpe.nn.search import SearchConfig, search
from structpe.nn.seq2seq import EncoderDecoder
from structpe.structure import Structure
from structpe.system.printing import say
from structpe.tasks.config import NO_READER, kept_options
from structpe.tasks.graph_to_text.config import DataConfig, TextConfig
from structpe.tasks.graph_to_text.scores import Scores, score

__all__ = [
    "NAME_TEXTS",
    "OR_WRITE",
    "Generated",
    "Generator",
    "GraphTextExample",
    "Progress",
    "TextModel",
    "UnitTextModel",
    "by_size",
    "read_split",
    "with_reader",
    "with_texts",
]

Progress: TypeAlias = "Callable[[int, int], object] | None"
"""Called with the number of items done, and of all."""


NAME_TEXTS = "Name the column or attribute with texts by the option text (data.options.text, --option text=NAME)"
"""What to do if nothing can be learned from a file."""
OR_WRITE = f"{NAME_TEXTS}; to write only, use generate"
"""What to do if nothing in a file can be compared with."""


def with_reader(data: DataConfig) -> DataConfig:
    """Name the reader that the suffixes of the training files imply, if they imply exactly one."""
    if data.reader is not None or data.train is None:
        return data
    suffixes = {file.suffix for path in paths_of(data.train) for file in _files(path)}
    found = {known.name for known in READERS.values() if suffixes & set(known.suffixes)}
    return replace(data, reader=found.pop()) if len(found) == 1 else data


def _files(path: Path) -> Iterator[Path]:
    """The files in a folder, or a file itself, which may no longer exist."""
    inside = path.rglob("*") if path.is_dir() else [path]
    return (file for file in inside if not (file.is_dir() or file.name.startswith(".")))


def read_split(data: DataConfig, split: Literal["train", "dev", "test"], remedy: str | None = None) -> list[Item]:
    """Read all items of a split.

    Args:
        data: what the configuration says of data.
        split: which split.
        remedy: what to do if no item of a file has a text; None if they need none.

    Raises:
        ConfigError: the configuration does not name the split, or an item lacks the text that it needs.
        ReadError: a file is missing, or an item is bad and bad items are not skipped.
    """
    paths = {"train": data.train, "dev": data.dev, "test": data.test}[split]
    if not paths:
        raise ConfigError(f"the configuration names no {split} split; set data.{split} to a file or folder")
    found = []
    for path in [paths] if isinstance(paths, str) else paths:
        items = _read_path(path, data)
        if remedy is not None:
            items = with_texts(items, data.on_error, path, data.options.get("text"), remedy)
        found += items
    return found


def with_texts(
    items: Sequence[Item],
    on_error: Literal["raise", "skip"] = "raise",
    path: str | Path | None = None,
    column: str | None = None,
    remedy: str = NAME_TEXTS,
) -> list[Item]:
    """The items, each of which needs a text; with ``skip``, those that have one, and the others are counted.

    Args:
        items: from a file or from Python.
        on_error: whether an item without a text is an error.
        path: the file; None for items from Python.
        column: the name of the column or attribute with texts that the reader was given.
        remedy: what to do if no item of a file has a text.

    Raises:
        ConfigError: an item has no text, or with ``skip`` none has.
    """
    lacking = [item for item in items if not item.texts]
    if not lacking:
        return list(items)
    first, all_of_them = lacking[0], len(lacking) == len(items)
    wrong = f"item {first.id!r} has no text to learn from or to be scored against"
    where = [] if path is None else [path]
    if path is not None and all_of_them:
        there = listed([repr(key) for key in first.metadata], 6)
        asked = "" if column is None else f" (the option text is {column!r})"
        others = f", nor has another of {len(items)}" if len(items) > 1 else ""
        raise ConfigError(f"{wrong}{others}{asked}; beside the graph there are: {there}. {remedy}").at(*where)
    if on_error == "raise" or all_of_them:
        raise ConfigError(
            f"{wrong}; leave it out, give it one, or skip such items (on_error: skip, --on-error skip)"
        ).at(*where)
    ids = listed([repr(item.id) for item in lacking])
    say(f"{'' if path is None else f'{path}: '}skipped {len(lacking)} of {len(items)} items, which have no text: {ids}")
    return [item for item in items if item.texts]


def _read_path(path: str | Path, data: DataConfig) -> list[Item]:
    """Read all items of a file or folder with the reader of the configuration, and report skipped ones."""
    reading = read(path, data.reader, data.on_error, **data.options)
    if reading.skipped:
        say(f"{path}: {reading.report()}")
    return list(reading.items)


class GraphTextExample(Protocol):
    """A graph and a text for it, prepared for a model."""

    @property
    def structure(self) -> Structure:
        """The graph, with its units."""

    @property
    def ids(self) -> NDArray[Any]:
        """Ids of the source."""

    @property
    def target(self) -> Any:
        """Ids of the text; None without a text."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All reference texts."""

    @property
    def id(self) -> str:
        """Id of the item."""

    @property
    def size(self) -> int:
        """Number of units of the source."""

    @property
    def cost(self) -> int:
        """Number of units of the source and the text."""


class TextModel(ABC):
    """A model that writes texts for graphs, with the preparation of its examples.

    Attributes:
        model: the trained module.
        collate: makes a batch of examples. It does not hold the model, since it is sent to other processes.
        uses_all: whether every parameter contributes to every loss.
    """

    model: nn.Module
    collate: Callable[[Sequence[Any]], Any]
    uses_all: ClassVar[bool] = True

    @abstractmethod
    def examples(self, items: Iterable[Item], every_text: bool = False, jobs: int = 1) -> Sequence[GraphTextExample]:
        """Encode items.

        Args:
            items: from a reader.
            every_text: one example per reference text, for training; otherwise one per item, with the first text.
            jobs: processes that encode; the examples do not depend on their number.
        """

    def drawn(self, examples: Sequence[Any], seed: int) -> Sequence[Any] | ResampledExamples[Any]:
        """The training examples of each epoch, with random parts drawn from ``seed``."""
        del seed
        return examples

    @abstractmethod
    def loss(self, batch: Any, smoothing: float) -> tuple[Tensor, Tensor]:
        """Cross entropy with label smoothing, summed over the units of the texts, and their number."""

    @abstractmethod
    def texts(self, examples: Sequence[Any], config: SearchConfig, device: torch.device) -> list[str]:
        """Write a text for each example, as one batch. The model is in evaluation mode and on the device."""

    def write(
        self,
        examples: Sequence[GraphTextExample],
        numbers: Sequence[int],
        batch_size: int,
        config: SearchConfig,
        device: torch.device,
    ) -> Iterator[tuple[int, str]]:
        """Write texts in batches of similar size; yield the number of each example and its text.

        Args:
            examples: the examples that ``numbers`` refer to.
            numbers: the examples to write texts for.
            batch_size: examples per batch.
            config: the search.
            device: where the model is.
        """
        for batch in by_size(examples, numbers, batch_size):
            yield from zip(batch, self.texts([examples[i] for i in batch], config, device), strict=True)

    def unread(self, items: Iterable[Item]) -> list[str]:
        """The characters of items that the vocabulary has no unit for; none where this is not known."""
        del items
        return []

    def rate(self, name: str) -> float:
        """Factor of the learning rate of a parameter."""
        return 1.0

    def encoded(
        self, items: Sequence[Item], every_text: bool = False, jobs: int = 1, first: int = 1
    ) -> Sequence[GraphTextExample]:
        """As :meth:`examples`; an error names the item.

        Args:
            items, every_text, jobs: as of :meth:`examples`.
            first: number of the first item.
        """
        try:
            return self.examples(items, every_text, jobs)
        except StructPEError:
            for number, item in enumerate(items, first):
                with located(f"item {number}" + (f" ({item.id!r})" if item.id != str(number) else "")):
                    self.examples([item])
            raise


class UnitTextModel(TextModel):
    """An encoder-decoder trained from scratch, with a vocabulary of its own.

    Args:
        model: the encoder-decoder.
        preparer: makes its examples and batches.
        device: type of the device.
    """

    def __init__(self, model: EncoderDecoder, preparer: Preparer, device: str = "cpu") -> None:
        self.model: EncoderDecoder = model
        self.preparer = preparer
        self.collate = partial(preparer.collate, grouping=model.encoder.grouping, device=device)

    def examples(self, items: Iterable[Item], every_text: bool = False, jobs: int = 1) -> Sequence[GraphTextExample]:
        return self.preparer.examples(items, self.model.encoder.position.encodings, every_text, jobs=jobs)

    def unread(self, items: Iterable[Item]) -> list[str]:
        return self.preparer.unread(items)

    def drawn(self, examples: Sequence[Any], seed: int) -> Sequence[Any] | ResampledExamples[Any]:
        if not self.preparer.config.bpe_dropout:
            return examples
        return Resplit(examples, self.preparer, self.model.encoder.position.encodings, seed)

    def loss(self, batch: Any, smoothing: float) -> tuple[Tensor, Tensor]:
        return self.model.loss(batch, self.preparer.padding, smoothing)

    def texts(self, examples: Sequence[Any], config: SearchConfig, device: torch.device) -> list[str]:
        batch = self.preparer.collate(examples, grouping=self.model.encoder.grouping, device=device.type).to(device)
        with torch.no_grad():
            state = self.model.start(batch)
            found = search(self.model.step, state, self.preparer.first, self.preparer.last, config)
        texts = dict(zip(batch.order.tolist(), map(self.preparer.text, found), strict=True))
        return [texts[i] for i in range(len(examples))]


def by_size(examples: Sequence[GraphTextExample], numbers: Sequence[int], batch_size: int) -> list[list[int]]:
    """Batches of examples of similar size, the largest first: if memory does not suffice, the first batch fails."""
    order = sorted(numbers, key=lambda i: -examples[i].size)
    return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]


PAIRS = 1 << 24
"""Pairs of units of the examples that are kept from the check of all items to their texts, 128 MiB an encoding."""
WINDOW = 32
"""Batches that are sorted by size together; their texts are returned in the order of the items."""


@dataclass(frozen=True)
class Generated:
    """A generated text.

    Attributes:
        id: of the item.
        text: what the model wrote.
        references: the item's own texts.
    """

    id: str
    text: str
    references: tuple[str, ...]


class Generator:
    """A trained model that writes texts; :func:`structpe.load` makes one from the folder of a run.

    Args:
        text_model: the model, in evaluation mode and on the device.
        config: of the run.
        device: where the model is.
    """

    def __init__(self, text_model: TextModel, config: TextConfig, device: torch.device) -> None:
        self.text_model, self.config, self.device = text_model, config, device

    @property
    def model(self) -> nn.Module:
        """The module."""
        return self.text_model.model

    def generate(
        self,
        source: Any,
        search: SearchConfig | None = None,
        batch_size: int = 32,
        progress: Progress = None,
    ) -> Iterator[Generated]:
        """Yield a text for each item, in their order. All items are checked at once; texts are made batch by batch.

        Args:
            source: one or more items, or what :func:`structpe.formats.as_item` makes items of, such as structures,
                mappings with ``facts``, or graphs of networkx; or a file or folder, which is read as the run's own
                data.
            search: the search; None for that of the run.
            batch_size: items per batch.
            progress: called with the number of items done, and of all.

        Raises:
            ReadError, StructureError: the source is missing or bad, there is no item, or an object is not an item.
            ConfigError: the run has no reader for a file; the batch size is less than 1.
            EncodingError, PositionError: the position model does not fit a structure. As of the others, the error names
                the item, and comes before a text is written.
        """
        return self._checked(self._items(source), search, batch_size, progress)

    def _checked(
        self, items: Sequence[Item], search: SearchConfig | None, batch_size: int, progress: Progress
    ) -> Iterator[Generated]:
        """The texts of items, all of which are encoded first, and the largest is read by the model."""
        size: Any = batch_size
        if not isinstance(size, int) or size < 1:
            raise ConfigError(f"batch_size is {batch_size!r}; give a number of items, 1 or more")
        if not isinstance(search, SearchConfig | None):
            raise ConfigError(f"search is {search!r:.80}; give a SearchConfig, or None for that of the run")
        width = batch_size * WINDOW
        largest: GraphTextExample | None = None
        kept: list[Sequence[GraphTextExample] | None] = []
        room = PAIRS
        for start in range(0, len(items), width):
            examples = self.text_model.encoded(items[start : start + width], first=start + 1)
            room -= sum(example.size**2 for example in examples)
            kept.append(examples if room >= 0 else None)
            largest = max([*examples, *([largest] if largest is not None else [])], key=lambda example: example.size)
        if letters := self.text_model.unread(items):
            copy = "" if getattr(self.config.model, "copy_units", False) else "model.copy_units and "
            warnings.warn(
                f"the vocabulary has no unit for {listed(map(repr, letters))}, read as single bytes, which a model "
                f"seldom writes right; {copy}training texts with these characters help",
                stacklevel=3,
            )
        if largest is not None:
            with located(f"item {largest.id!r}"):
                self.text_model.texts([largest], SearchConfig(beam=1, longest=1), self.device)
        return self._generated(items, kept, search or self.config.search, batch_size, progress)

    def evaluate(
        self,
        source: Any,
        search: SearchConfig | None = None,
        batch_size: int = 32,
        progress: Progress = None,
    ) -> tuple[Scores, list[Generated]]:
        """Generate a text for each item, and score the texts against the references.

        Args:
            source, search, batch_size, progress: as in :meth:`generate`.

        Raises:
            ConfigError: an item has no reference.
            StructPEError: as in :meth:`generate`.
        """
        items = self._items(source)
        if isinstance(source, (str, Path)):
            data = self.config.data
            items = with_texts(items, data.on_error, source, data.options.get("text"), OR_WRITE)
        if without := [number for number, item in enumerate(items, 1) if not item.texts]:
            id = items[without[0] - 1].id
            raise ConfigError(f"item {without[0]} ({id!r}) has no reference text to be scored against; leave it out")
        texts = list(self._checked(items, search, batch_size, progress))
        return score([t.text for t in texts], [t.references for t in texts], self.config.lowercase), texts

    def _items(self, source: Any) -> Sequence[Item]:
        if isinstance(source, (str, Path)):
            if self.config.data.reader is None:
                raise ConfigError(NO_READER)
            with kept_options(self.config.data.options):
                return _read_path(source, self.config.data)
        return as_items(source)

    def _generated(
        self,
        items: Sequence[Item],
        kept: list[Sequence[GraphTextExample] | None],
        search: SearchConfig,
        batch_size: int,
        progress: Progress,
    ) -> Iterator[Generated]:
        """The texts of items; ``kept`` has the examples of each window, or None for those that are encoded again."""
        for first in range(0, len(items), batch_size * WINDOW):
            window = items[first : first + batch_size * WINDOW]
            place = first // (batch_size * WINDOW)
            examples = kept[place] or self.text_model.examples(window)
            kept[place] = None
            texts: dict[int, str] = {}
            for number, text in self.text_model.write(examples, range(len(examples)), batch_size, search, self.device):
                texts[number] = text
                if progress is not None:
                    progress(first + len(texts), len(items))
            for number, item in enumerate(window):
                yield Generated(item.id, texts[number], item.texts)

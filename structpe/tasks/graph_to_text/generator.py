"""A trained model of texts, ready for structures that it has not seen; and texts for all structures of a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from structpe.data.bpe_dropout import Drawn, Resplit
from structpe.data.prepare import Preparer
from structpe.errors import ConfigError
from structpe.formats import READERS, Item, read
from structpe.formats.reading import paths_of
from structpe.nn.search import SearchConfig, search
from structpe.nn.seq2seq import EncoderDecoder
from structpe.structure import Structure
from structpe.system.printing import say
from structpe.tasks.config import NO_READER, listed
from structpe.tasks.graph_to_text.config import DataConfig, TextConfig

__all__ = [
    "Example",
    "Generated",
    "Generator",
    "Writer",
    "WriterOfUnits",
    "by_size",
    "named",
    "read_path",
    "read_split",
    "write",
]


def named(data: DataConfig) -> DataConfig:
    """The same with the reader that the training files have by their suffixes, if there is one, by its name."""
    if data.reader is not None:
        return data
    suffixes = {file.suffix for path in paths_of(data.train) for file in _files(path)}
    found = {known.name for known in READERS.values() if suffixes & set(known.suffixes)}
    return replace(data, reader=found.pop()) if len(found) == 1 else data


def _files(path: Path) -> Iterator[Path]:
    """The files in a folder, or a file itself, which may be gone."""
    inside = path.rglob("*") if path.is_dir() else [path]
    return (file for file in inside if not (file.is_dir() or file.name.startswith(".")))


def read_split(data: DataConfig, split: Literal["train", "dev", "test"]) -> list[Item]:
    """All items of a split.

    Raises:
        ConfigError: the configuration names no such split.
        ReadError: a file is missing, or an item is bad and is not to be skipped.
    """
    paths = {"train": data.train, "dev": data.dev, "test": data.test}[split]
    if not paths:
        raise ConfigError(f"the configuration names no {split} split; set data.{split} to a file or folder")
    return [item for path in ([paths] if isinstance(paths, str) else paths) for item in read_path(path, data)]


def read_path(path: str | Path, data: DataConfig) -> list[Item]:
    """All items of a file or folder, read as the data of the configuration are; tells what was skipped."""
    reading = read(path, data.reader, data.on_error, **data.options)
    if reading.skipped:
        say(f"{path}: {reading.report()}")
    return list(reading.items)


class Example(Protocol):
    """A graph and a text for it, prepared for a model."""

    @property
    def structure(self) -> Structure:
        """The graph, with its units."""

    @property
    def ids(self) -> NDArray[Any]:
        """Ids of what is read."""

    @property
    def target(self) -> Any:
        """Ids of the text; None if there is no text."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All reference texts."""

    @property
    def id(self) -> str:
        """Id of the item."""

    @property
    def size(self) -> int:
        """Number of units to read."""

    @property
    def cost(self) -> int:
        """Number of units to read and to write."""


class Writer(ABC):
    """A model that writes texts for graphs.

    Attributes:
        model: what is trained.
        collate: from examples to a batch; it does not hold the model, as it is sent to other processes.
        uses_all: whether every parameter has a part in every loss.
    """

    model: nn.Module
    collate: Callable[[Sequence[Any]], Any]
    uses_all: ClassVar[bool] = True

    @abstractmethod
    def examples(self, items: Iterable[Item], every_text: bool = False, jobs: int = 1) -> Sequence[Example]:
        """Encode items.

        Args:
            items: from a reader.
            every_text: one example per reference text, for training; otherwise one per item, with the first text.
            jobs: processes that encode; the examples do not depend on their number.
        """

    def drawn(self, examples: Sequence[Any], seed: int) -> Sequence[Any] | Drawn[Any]:
        """The training examples as each epoch has them; ``seed`` of what is random in them."""
        del seed
        return examples

    @abstractmethod
    def loss(self, batch: Any, smoothing: float) -> tuple[Tensor, Tensor]:
        """Cross entropy with label smoothing, summed over the units of the texts, and their number."""

    @abstractmethod
    def texts(self, examples: Sequence[Any], config: SearchConfig, device: torch.device) -> list[str]:
        """The text that the model, in evaluation mode and on the device, writes for each of the examples."""

    def rate(self, name: str) -> float:
        """What the learning rate is multiplied by for a parameter of the model."""
        return 1.0


class WriterOfUnits(Writer):
    """A model trained from the beginning, with units of its own.

    Args:
        model: the encoder-decoder.
        preparer: makes its examples and batches.
        device: type of the device that computes.
    """

    def __init__(self, model: EncoderDecoder, preparer: Preparer, device: str = "cpu") -> None:
        self.model: EncoderDecoder = model
        self.preparer = preparer
        self.collate = partial(preparer.collate, grouping=model.encoder.grouping, device=device)

    def examples(self, items: Iterable[Item], every_text: bool = False, jobs: int = 1) -> Sequence[Example]:
        return self.preparer.examples(items, self.model.encoder.position.encodings, every_text, jobs=jobs)

    def drawn(self, examples: Sequence[Any], seed: int) -> Sequence[Any] | Drawn[Any]:
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


def by_size(examples: Sequence[Example], numbers: Sequence[int], batch_size: int) -> list[list[int]]:
    """Batches of examples of like size, the largest first: should memory not suffice, it is known at once."""
    order = sorted(numbers, key=lambda i: -examples[i].size)
    return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]


def write(
    writer: Writer,
    examples: Sequence[Example],
    batches: Iterable[Sequence[int]],
    config: SearchConfig,
    device: torch.device,
) -> Iterator[tuple[int, str]]:
    """Number of an example, and the text that the model writes for it, for each example of the batches.

    Args:
        writer: with the model on the device, in evaluation mode.
        examples: what the numbers number.
        batches: numbers of examples.
        config: how texts are searched for.
        device: where the model is.
    """
    for numbers in batches:
        yield from zip(numbers, writer.texts([examples[i] for i in numbers], config, device), strict=True)


WINDOW = 32
"""Batches that are sorted by size together; their texts come in the order of the items."""


@dataclass(frozen=True)
class Generated:
    """What a model wrote for an item.

    Attributes:
        id: of the item.
        text: what the model wrote.
        references: the item's own texts.
    """

    id: str
    text: str
    references: tuple[str, ...]


class Generator:
    """A trained model that writes texts; :func:`structpe.load` makes one of the folder of a run.

    Args:
        writer: with the model in evaluation mode, on the device.
        config: of the run.
        device: where the model is.
    """

    def __init__(self, writer: Writer, config: TextConfig, device: torch.device) -> None:
        self.writer, self.config, self.device = writer, config, device

    @property
    def model(self) -> nn.Module:
        """The model."""
        return self.writer.model

    def generate(
        self,
        source: str | Path | Item | Structure | Sequence[Item | Structure],
        search: SearchConfig | None = None,
        batch_size: int = 32,
        progress: Callable[[int, int], object] | None = None,
    ) -> Iterator[Generated]:
        """A text for each item, in their order. Arguments are checked at once, texts are made one batch after another.

        Args:
            source: items or structures, one or more, or a file or folder of items, read as the run's own data.
            search: how texts are searched for; None as the run's configuration says.
            batch_size: items at once.
            progress: called with the number of items done, and of all.

        Raises:
            ReadError: the source is missing or bad.
            ConfigError: there is no item, or something is neither an item nor a structure; the run has no reader for a
                file; the batch size is less than 1.
            EncodingError, PositionError: the position model does not fit a structure.
        """
        items = self._items(source)
        size: Any = batch_size
        if not isinstance(size, int) or size < 1:
            raise ConfigError(f"batch_size is {batch_size!r}; give a number of items, 1 or more")
        if not isinstance(search, SearchConfig | None):
            raise ConfigError(f"search is {search!r:.80}; give a SearchConfig, or None for that of the run")
        return self._generated(items, search or self.config.search, batch_size, progress)

    def _items(self, source: str | Path | Item | Structure | Sequence[Item | Structure]) -> Sequence[Item]:
        if isinstance(source, (str, Path)):
            if self.config.data.reader is None:
                raise ConfigError(NO_READER)
            return read_path(source, self.config.data)
        given: list[Item | Structure] = listed(
            source,
            (Item, Structure),
            wrong="generate takes items or structures, or the path of a file",
            hint="structpe.read makes items of files, structpe.as_structure structures of what other libraries hold",
            none="there is no item to write a text for; give one or more",
        )
        return [Item(each, id=str(i)) if isinstance(each, Structure) else each for i, each in enumerate(given, 1)]

    def _generated(
        self,
        items: Sequence[Item],
        search: SearchConfig,
        batch_size: int,
        progress: Callable[[int, int], object] | None,
    ) -> Iterator[Generated]:
        for first in range(0, len(items), batch_size * WINDOW):
            window = items[first : first + batch_size * WINDOW]
            examples = self.writer.examples(window)
            batches = by_size(examples, range(len(examples)), batch_size)
            texts: dict[int, str] = {}
            for number, text in write(self.writer, examples, batches, search, self.device):
                texts[number] = text
                if progress is not None:
                    progress(first + len(texts), len(items))
            for number, item in enumerate(window):
                yield Generated(item.id, texts[number], item.texts)

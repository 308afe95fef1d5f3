"""A data set that lies in a folder: its splits as items, or as the benchmark that reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from structpe.datasets.card import BenchmarkName, Card, CorpusError, Split
from structpe.errors import ConfigError
from structpe.readers.base import Item, Reading, Skipped, read, stream
from structpe.registry import unknown

if TYPE_CHECKING:
    from structpe.datasets import Benchmark

__all__ = ["Corpus"]


@dataclass(frozen=True)
class Corpus:
    """A data set on this machine.

    Args:
        card: what it is.
        folder: where its files are.
    """

    card: Card
    folder: Path

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of its splits."""
        return tuple(self.card.splits)

    @property
    def is_there(self) -> bool:
        """Whether every file of it is there; what is in them is looked at by ``verify``."""
        names = [name for file in self.card.files for name in file.results]
        return all(any(self.folder.glob(name)) if "*" in name else (self.folder / name).is_file() for name in names)

    def files(self, split: str) -> list[Path]:
        """The files of a split, in their order.

        Raises:
            ConfigError: there is no such split.
            CorpusError: a file is not there, or benchmarks alone read the split.
        """
        part = self._split(split)
        if not part.file:
            by = " or ".join(each.name for each in self.card.benchmarks) or "nothing"
            raise CorpusError(f"split {split!r} of {self.card.name} is read by the benchmark {by}; call .benchmark()")
        found: list[Path] = []
        for name in part.file:
            files = sorted(self.folder.glob(name)) if "*" in name else [self.folder / name]
            if not files or not all(file.is_file() for file in files):
                get = f"structpe data get {self.card.name}"
                raise CorpusError(f"there is no file {name} in {self.folder}; fetch it: {get}")
            found += files
        return found

    def read(self, split: str, on_error: Literal["raise", "skip"] = "raise") -> Reading:
        """All items of a split.

        Args:
            split: its name.
            on_error: what to do with bad items, as in :func:`structpe.readers.read`.

        Raises:
            ConfigError: there is no such split.
            CorpusError: a file is not there.
            ReadError: as :func:`structpe.readers.read`.
        """
        part = self._split(split)
        readings = [read(file, self._reader(part), on_error, **part.options) for file in self.files(split)]
        return Reading(
            tuple(item for reading in readings for item in reading),
            tuple(skipped for reading in readings for skipped in reading.skipped),
        )

    def stream(self, split: str, skip: Callable[[Skipped], object] | None = None) -> Iterator[Item]:
        """The items of a split one by one.

        Args:
            split: its name.
            skip: told of each bad item, which is then left out; None raises the first.
        """
        part = self._split(split)
        for file in self.files(split):
            yield from stream(file, self._reader(part), skip, **part.options)

    def benchmark(self, name: str | None = None, **options: Any) -> Benchmark:
        """The benchmark that reads the set.

        Args:
            name: of the benchmark, where there are several.
            options: of the benchmark.

        Raises:
            ConfigError: no benchmark of this name reads the set, or there are several and none is named.
            ReadError: a file is missing or damaged.
        """
        from structpe.datasets import load

        entry = self._benchmark(name)
        return load(entry.name, self.folder / entry.folder, **{**entry.options, **options})

    def _benchmark(self, name: str | None) -> BenchmarkName:
        known = {entry.name: entry for entry in self.card.benchmarks}
        if not known:
            raise ConfigError(f"no benchmark reads {self.card.name}; read its splits: {', '.join(self.splits)}")
        if name is None:
            if len(known) > 1:
                raise ConfigError(f"several benchmarks read {self.card.name}; name one of {', '.join(known)}")
            return next(iter(known.values()))
        if name not in known:
            raise ConfigError(unknown(f"benchmark of {self.card.name}", name, sorted(known)))
        return known[name]

    def _split(self, name: str) -> Split:
        if name not in self.card.splits:
            raise ConfigError(unknown(f"split of {self.card.name}", name, list(self.splits)))
        return self.card.splits[name]

    def _reader(self, part: Split) -> str | None:
        return part.reader or self.card.reader

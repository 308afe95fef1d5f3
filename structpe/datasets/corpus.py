"""A data set in a folder: its splits as items, or the benchmark that reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from structpe.datasets.card import BenchmarkName, Card, CorpusError, Split
from structpe.errors import ConfigError
from structpe.formats.reading import Item, Reading, Skipped, read, stream
from structpe.registry import unknown

if TYPE_CHECKING:
    from structpe.datasets import Benchmark

__all__ = ["Corpus"]


@dataclass(frozen=True)
class Corpus:
    """A data set on this machine.

    Args:
        card: its card.
        folder: folder with its files.
    """

    card: Card
    folder: Path

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        return tuple(self.card.splits)

    @property
    def is_there(self) -> bool:
        """Whether all its files exist. Their contents are checked by ``verify``."""
        names = [name for file in self.card.files for name in file.results]
        return all(any(self.folder.glob(name)) if "*" in name else (self.folder / name).is_file() for name in names)

    def files(self, split: str) -> list[Path]:
        """The files of a split, in order.

        Raises:
            ConfigError: the split is unknown.
            CorpusError: a file does not exist, or only benchmarks read the split.
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
        """Read all items of a split.

        Args:
            split: name of the split.
            on_error: what to do with bad items, as in :func:`structpe.formats.read`.

        Raises:
            ConfigError: the split is unknown.
            CorpusError: a file does not exist.
            ReadError: see :func:`structpe.formats.read`.
        """
        part = self._split(split)
        readings = [read(file, self._reader(part), on_error, **part.options) for file in self.files(split)]
        return Reading(
            tuple(item for reading in readings for item in reading),
            tuple(skipped for reading in readings for skipped in reading.skipped),
        )

    def stream(self, split: str, skip: Callable[[Skipped], object] | None = None) -> Iterator[Item]:
        """Read the items of a split one by one.

        Args:
            split: name of the split.
            skip: called with each bad item, which is then skipped; None raises the first error.
        """
        part = self._split(split)
        for file in self.files(split):
            yield from stream(file, self._reader(part), skip, **part.options)

    def benchmark(self, name: str | None = None, **options: Any) -> Benchmark:
        """Load the benchmark that reads the set.

        Args:
            name: name of the benchmark; needed if there are several.
            options: options of the benchmark.

        Raises:
            ConfigError: no benchmark of this name reads the set, or there are several and no name is given.
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

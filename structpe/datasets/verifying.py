"""Comparison of a data set with its card: checksums, and the number of items of each split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from structpe.datasets.card import CorpusError, File
from structpe.datasets.corpus import Corpus
from structpe.datasets.fetching.download import Tell
from structpe.datasets.records import State, checked, recorded, results
from structpe.errors import MissingExtra, StructPEError

__all__ = ["Report", "verify"]

PARTS = {"train": "train", "valid": "valid", "dev": "valid", "test": "test"}
"""Names of splits in cards -> names in benchmarks."""


@dataclass(frozen=True)
class Report:
    """The result of :func:`verify`.

    Args:
        corpus: the data set.
        files: state of each file.
        splits: state of each split; empty if they were not read.
    """

    corpus: Corpus
    files: tuple[State, ...]
    splits: tuple[State, ...] = ()

    @property
    def good(self) -> bool:
        """Whether all files and splits are good."""
        return all(state.good for state in (*self.files, *self.splits))


def verify(
    corpus: Corpus, read: bool = False, parts: tuple[str, ...] = (), tell: Callable[[str], Tell] | None = None
) -> Report:
    """Read every file and compare it with its card, or with its record if the card has no checksum.

    Args:
        corpus: the data set.
        read: whether to read the splits too, and count their items.
        parts: names of the parts or files to check; all by default.
        tell: (name of the file) -> callback for the progress of the file.

    Raises:
        ConfigError: a part is unknown.
        CorpusError: the folder does not exist, or a file cannot be read.
    """
    if corpus.folder.is_file():
        raise CorpusError("this is a file; give the folder that the set is in").at(corpus.folder)
    if not corpus.folder.is_dir():
        raise CorpusError(f"there is no such folder; fetch the set: structpe data get {corpus.card.name}").at(
            corpus.folder
        )
    known = recorded(corpus.folder)
    wanted = corpus.card.chosen(parts)
    begun = {file.part for file in corpus.card.files if _is_begun(file, corpus.folder)}
    states = [
        state
        for file in wanted
        for state in checked(
            file,
            corpus.folder,
            known,
            tell(file.name) if tell is not None else None,
            bool(parts) or (not known and (file.part in begun or not begun)),
        )
    ]
    return Report(corpus, tuple(states), tuple(_counted(corpus, parts, states)) if read else ())


def _is_begun(file: File, folder: Path) -> bool:
    return any((folder / name).is_file() for name in results(file, folder))


def _counted(corpus: Corpus, parts: tuple[str, ...], files: Sequence[State]) -> Iterator[State]:
    """Count the items of each split with its reader or with the benchmark."""
    loaded: dict[str, int] = {}
    unfetched = [state.name for state in files if state.word == "not fetched"]
    for name, split in corpus.card.splits.items():
        if parts and split.file and not any(_wanted(corpus, each, parts) for each in split.file):
            continue
        lacking = [each for each in unfetched if not split.file or any(_is(each, name) for name in split.file)]
        if lacking:
            yield State(name, "not fetched", f"it needs {lacking[0]}")
            continue
        try:
            if split.file:
                found = sum(1 for _ in corpus.stream(name))
            else:
                loaded = loaded or _of_benchmark(corpus)
                found = loaded[PARTS.get(name, name)]
        except MissingExtra as error:
            yield State(name, "not checked", str(error))
        except StructPEError as error:
            yield State(name, "changed", str(error))
        else:
            yield _count(name, found, split.items)


def _wanted(corpus: Corpus, name: str, parts: tuple[str, ...]) -> bool:
    return any(_is(result, name) for file in corpus.card.chosen(parts) for result in file.results)


def _is(result: str, name: str) -> bool:
    return result == name or PurePosixPath(result).match(name)


def _count(name: str, found: int, expected: int | None) -> State:
    if expected is None:
        return State(name, "not checked", f"{found} items, the card does not say how many")
    good = found == expected
    return State(name, "ok" if good else "changed", f"{found} items" + ("" if good else f", the card says {expected}"))


def _of_benchmark(corpus: Corpus) -> dict[str, int]:
    benchmark = corpus.benchmark(corpus.card.benchmarks[0].name if corpus.card.benchmarks else None)
    split = benchmark.splits[0]
    return {"all": len(benchmark.targets), **{part: len(numbers) for part, numbers in split._asdict().items()}}

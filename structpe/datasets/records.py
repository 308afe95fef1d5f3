"""The record of a data folder, with the checksums of its files when they were fetched; and checks against the card.

If a card has no checksum, the first fetch is trusted, and later contents are compared with its record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import msgspec

from structpe.datasets.catalogue import Card, Corpus, CorpusError, File
from structpe.datasets.downloads import Seen, Tell, digest_of, sha256_of, writing
from structpe.errors import MissingExtra, StructPEError
from structpe.plain import from_json
from structpe.system.files import atomic_text

__all__ = ["FileState", "Report", "checked", "record", "recorded", "results", "verify"]

NAME = ".structpe.json"


@dataclass(frozen=True)
class FileState:
    """The state of one file.

    Args:
        name: name of the file, in the folder of the set.
        word: ``ok`` (as the card says), ``as first seen`` (the card has no checksum), ``not checked`` (there is no
            checksum at all), ``not fetched`` (it was never fetched), ``changed``, or ``missing`` (it was fetched
            before, or was requested).
        detail: the checksums.
    """

    name: str
    word: str
    detail: str = ""

    @property
    def good(self) -> bool:
        """Whether the file is neither changed nor missing."""
        return self.word not in ("changed", "missing")

    @property
    def there(self) -> bool:
        """Whether the file exists."""
        return self.word not in ("not fetched", "missing")


def recorded(folder: Path) -> dict[str, Seen]:
    """Read the record of a folder; empty if it is missing or damaged."""
    try:
        return msgspec.convert(from_json((folder / NAME).read_bytes())["files"], dict[str, Seen])
    except (OSError, ValueError, TypeError, KeyError, msgspec.ValidationError):
        return {}


def record(folder: Path, card: Card, new: Mapping[str, Seen]) -> None:
    """Add files to the record of a folder."""
    files = {**recorded(folder), **new}
    data = {"card": card.name, "files": {name: vars(files[name]) for name in sorted(files)}}
    with writing(folder):
        atomic_text(folder / NAME, json.dumps(data, indent=1) + "\n")


def results(file: File, folder: Path) -> list[str]:
    """Names of the results of a file of a card, whether they exist or not; for a pattern, of those that exist."""
    if not file.is_pattern:
        return list(file.results)
    return sorted(path.relative_to(folder).as_posix() for path in folder.glob(file.name) if path.is_file())


def checked(
    file: File, folder: Path, known: Mapping[str, Seen], tell: Tell | None = None, wanted: bool = True
) -> list[FileState]:
    """Check the results of a file of a card.

    Args:
        file: a file of the card.
        folder: folder of the set.
        known: the record of the folder.
        tell: called with the number of bytes read.
        wanted: whether a file that was never recorded counts as missing.

    Raises:
        CorpusError: a file cannot be read.
    """
    names = results(file, folder) or [file.name]
    return [_state(file, folder, name, known, tell, wanted) for name in names]


def _state(
    file: File, folder: Path, name: str, known: Mapping[str, Seen], tell: Tell | None, wanted: bool
) -> FileState:
    place = folder / name
    if not place.is_file():
        return FileState(name, "missing" if wanted or name in known else "not fetched")
    try:
        seen = sha256_of(place, tell)
    except OSError as error:
        raise CorpusError(f"cannot be read: {error.strerror}; check its permissions").at(place) from None
    if file.sha256 is not None and file.unpack is None:
        if seen.sha256 == file.sha256:
            return FileState(name, "ok")
        return FileState(name, "changed", f"sha256 {seen.sha256}, the card says {file.sha256}")
    if file.digest is not None and file.unpack is None:
        if (other := digest_of(place, file.digest)) == file.digest:
            return FileState(name, "ok")
        return FileState(name, "changed", f"digest {other}, the card says {file.digest}")
    if name not in known:
        return FileState(name, "not checked", seen.sha256)
    if seen.sha256 == known[name].sha256:
        return FileState(name, "as first seen", seen.sha256)
    return FileState(name, "changed", f"sha256 {seen.sha256}, first seen was {known[name].sha256}")


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
    files: tuple[FileState, ...]
    splits: tuple[FileState, ...] = ()

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
        wrong = f"there is no such folder; fetch the set: structpe data get {corpus.card.name}"
        raise CorpusError(wrong).at(corpus.folder)
    known = recorded(corpus.folder)
    begun = {
        file.part
        for file in corpus.card.files
        if any((corpus.folder / name).is_file() for name in results(file, corpus.folder))
    }
    states: list[FileState] = []
    for file in corpus.card.chosen(parts):
        wanted = bool(parts) or (not known and (file.part in begun or not begun))
        states += checked(file, corpus.folder, known, tell(file.name) if tell is not None else None, wanted)
    return Report(corpus, tuple(states), tuple(_counted(corpus, parts, states)) if read else ())


def _counted(corpus: Corpus, parts: tuple[str, ...], files: Sequence[FileState]) -> Iterator[FileState]:
    """Count the items of each split with its reader or with the benchmark."""
    loaded: dict[str, int] = {}
    unfetched = [state.name for state in files if state.word == "not fetched"]
    for name, split in corpus.card.splits.items():
        chosen = [result for file in corpus.card.chosen(parts) for result in file.results]
        if parts and split.file and not any(_is(result, each) for each in split.file for result in chosen):
            continue
        lacking = [each for each in unfetched if not split.file or any(_is(each, name) for name in split.file)]
        if lacking:
            yield FileState(name, "not fetched", f"it needs {lacking[0]}")
            continue
        try:
            if split.file:
                found = sum(1 for _ in corpus.stream(name))
            else:
                loaded = loaded or _of_benchmark(corpus)
                found = loaded[PARTS.get(name, name)]
        except MissingExtra as error:
            yield FileState(name, "not checked", str(error))
        except StructPEError as error:
            yield FileState(name, "changed", str(error))
        else:
            yield _count(name, found, split.items)


def _is(result: str, name: str) -> bool:
    return result == name or PurePosixPath(result).match(name)


def _count(name: str, found: int, expected: int | None) -> FileState:
    if expected is None:
        return FileState(name, "not checked", f"{found} items, the card does not say how many")
    if found == expected:
        return FileState(name, "ok", f"{found} items")
    return FileState(name, "changed", f"{found} items, the card says {expected}")


def _of_benchmark(corpus: Corpus) -> dict[str, int]:
    benchmark = corpus.benchmark(corpus.card.benchmarks[0].name if corpus.card.benchmarks else None)
    split = benchmark.splits[0]
    return {"all": len(benchmark.targets), **{part: len(numbers) for part, numbers in split._asdict().items()}}

"""Cards of data sets: description, licence, files, splits and benchmarks.

A card is a YAML file. Its keys are the fields of the classes here. An unknown key is an error: a misspelt checksum must
not be mistaken for a missing one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from structpe.errors import ConfigError, StructPEError, listed, located
from structpe.formats.reading import Item, Reading, Skipped, read, stream
from structpe.plain import from_yaml
from structpe.plain.options import Builder
from structpe.registry import unknown

if TYPE_CHECKING:
    from structpe.datasets import Benchmark

__all__ = [
    "BenchmarkName",
    "Card",
    "CardSplit",
    "Corpus",
    "CorpusError",
    "File",
    "card",
    "card_of",
    "cards",
    "filled",
    "parsed",
    "read_card",
]


Unpack = Literal["zip", "tar.gz", "gz", "numbers"]
SHA256 = re.compile(r"[0-9a-f]{64}")
DIGEST = re.compile(r"md5:[0-9a-f]{32}|(sha1|git):[0-9a-f]{40}")


class CorpusError(StructPEError):
    """A data set that is missing, cannot be fetched, or is not what its card says."""


@dataclass(frozen=True)
class File:
    """A file of a data set.

    Args:
        name: path in the folder of the set, with ``/``. A name with ``*`` matches several files.
        url: a URL, or what follows the ``base`` of the card; None if the file is not public.
        sha256: checksum of the file as it is fetched; None if it is not known.
        bytes: size of the file as it is fetched; None if it is not known.
        digest: where no sha256 is known, another published digest of the file as it is fetched: ``md5:`` or ``sha1:``
            and its digits, or ``git:`` and the name of the blob in the commit that the URL names.
        unpack: ``zip``, ``tar.gz`` and ``gz`` unpack the file and remove it; ``numbers`` converts a pickle with lists
            of numbers into an ``.npz`` file; None leaves the file as it is.
        into: folder in the folder of the set into which an archive is unpacked.
        strip: whether to leave out the single folder at the top of the archive.
        leaves: files that must exist afterwards, by default the file itself. Name all of them if ``--from`` may give
            the archive unpacked.
        part: name of the part that it belongs to, for users who want some parts only.
    """

    name: str
    url: str | None = None
    sha256: str | None = None
    bytes: int | None = None
    digest: str | None = None
    unpack: Unpack | None = None
    into: str = ""
    strip: bool = False
    leaves: tuple[str, ...] = ()
    part: str = ""

    @property
    def results(self) -> tuple[str, ...]:
        """Names of the files that exist in the folder of the set afterwards."""
        return self.leaves or (self.name,)

    @property
    def is_pattern(self) -> bool:
        """Whether the name matches files whose names are not known."""
        return "*" in self.name


@dataclass(frozen=True)
class CardSplit:
    """A split of a data set.

    Args:
        file: names of its files, in order; a name with ``*`` matches several files, in sorted order.
        items: number of items; None if it is not known.
        reader: name of the reader; None uses the one of the card.
        options: options of the reader.
    """

    file: tuple[str, ...] = ()
    items: int | None = None
    reader: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BenchmarkName:
    """A benchmark that reads the set.

    Args:
        name: name in :data:`structpe.datasets.BENCHMARKS`.
        folder: folder that it reads, in the folder of the set.
        options: options of the benchmark.
    """

    name: str
    folder: str = "."
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Card:
    """Description of a data set.

    Args:
        name: name of the set.
        kind: kind of its items, in a word.
        description: description in a sentence.
        licence: an SPDX identifier, the name of a licence that has none, or ``none stated``.
        citation: publication to cite.
        homepage: page of its authors.
        base: beginning of the URLs of its files; a file without ``url`` has the URL base + name.
        files: all files.
        splits: splits by name.
        reader: name of the reader of its splits; None if only benchmarks read it.
        benchmarks: the benchmarks that read it.
        maker: name of the function that generates it, for a set that is not fetched.
        pattern: pattern of names, for a card that describes many sets, such as ``tu:{name}``. All texts of the card may
            use the words in braces, also in lower case as ``{name_lower}``.
        notes: notes for users.
    """

    name: str
    kind: str
    description: str
    licence: str
    citation: str
    homepage: str | None = None
    base: str | None = None
    files: tuple[File, ...] = ()
    splits: Mapping[str, CardSplit] = field(default_factory=dict)
    reader: str | None = None
    benchmarks: tuple[BenchmarkName, ...] = ()
    maker: str | None = None
    pattern: str | None = None
    notes: str = ""

    @property
    def size(self) -> int | None:
        """Bytes to fetch; None if the size of a file is not known."""
        sizes = [file.bytes for file in self.files]
        return None if None in sizes or not sizes else sum(size or 0 for size in sizes)

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts, in the order of the files."""
        return tuple(dict.fromkeys(file.part for file in self.files if file.part))

    def chosen(self, parts: Sequence[str]) -> list[File]:
        """The files of some parts, given by names of parts or files; all files if none is given.

        Raises:
            ConfigError: a name is unknown.
        """
        known = [*self.parts, *(file.name for file in self.files)]
        if wrong := [part for part in parts if part not in known]:
            raise ConfigError(f"{self.name} has no part {wrong[0]!r}; its parts and files: {listed(known)}")
        return [file for file in self.files if not parts or file.part in parts or file.name in parts]


def parsed(text: str, where: str) -> Card:
    """Read a card from YAML text.

    Args:
        text: the YAML text.
        where: its place, for errors.

    Raises:
        ConfigError: the text is not YAML, a key is unknown or missing, a value has the wrong type, or names do not fit.
    """
    try:
        return card_of(from_yaml(text, "the card"), where)
    except ConfigError as error:
        raise error if error.places else error.at(where) from None


def card_of(data: Any, where: str) -> Card:
    """Build a card from plain data, and check it.

    Raises:
        ConfigError: see :func:`parsed`.
    """
    if isinstance(data, dict):
        files, splits = data.get("files"), data.get("splits")
        if isinstance(files, list):
            data = {**data, "files": [_with_url(_listed(file, "leaves"), data.get("base")) for file in files]}
        if isinstance(splits, dict):
            data = {**data, "splits": {name: _listed(split, "file") for name, split in splits.items()}}
    with located(where):
        card = Builder().build(Card, data, "the card")
    for problem in _problems(card):
        raise ConfigError(problem).at(where)
    return card


def _with_url(file: Any, base: Any) -> Any:
    """Complete the URL of a file with the base of the card."""
    if not isinstance(file, dict) or not isinstance(base, str):
        return file
    url = file.get("url", file.get("name"))
    return {**file, "url": base + url if isinstance(url, str) and "://" not in url else url}


def _listed(part: Any, key: str) -> Any:
    """Replace a single name by a list of it, for a key that takes a list of names."""
    return {**part, key: [part[key]]} if isinstance(part, dict) and isinstance(part.get(key), str) else part


def _problems(card: Card) -> list[str]:
    problems = []
    names = [name for file in card.files for name in (file.name, *file.leaves, file.into) if name]
    names += [name for part in card.splits.values() for name in part.file] + [each.folder for each in card.benchmarks]
    problems += [f"the name {name!r} is outside the folder of the set" for name in names if not _inside(name)]
    for file in card.files:
        if not PurePosixPath(file.name).parts:
            problems.append(f"a file has the name {file.name!r}; give a name in the folder of the set")
        if file.sha256 is not None and not SHA256.fullmatch(file.sha256):
            problems.append(f"sha256 of {file.name} is {file.sha256!r}; give 64 digits 0-9 and a-f")
        if file.digest is not None and not DIGEST.fullmatch(file.digest):
            problems.append(
                f"digest of {file.name} is {file.digest!r}; give md5:, sha1: or git: and its digits 0-9, a-f"
            )
        if file.url is not None and not file.url.startswith(("https://", "http://")):
            problems.append(f"url of {file.name} is {file.url!r}; give an http or https URL")
    results = [result for file in card.files for result in file.results]
    twice = {name for name, times in Counter(results).items() if times > 1}
    problems += [f"two files leave {name!r}" for name in sorted(twice)]
    for name, part in card.splits.items():
        if part.file and not (part.reader or card.reader):
            problems.append(f"split {name!r} has files but no reader; name one")
        lacking = [each for each in part.file if not any(_names(each, result) for result in results)]
        problems += [f"split {name!r} reads {each!r}, which no file leaves" for each in lacking]
    return problems


def _inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name and ":" not in name


def _names(name: str, result: str) -> bool:
    """Whether a name in a split, maybe with ``*``, means this file; the folder itself is not a valid pattern."""
    return bool(PurePosixPath(name).parts) and (name == result or PurePosixPath(result).match(name))


def read_card(file: Path) -> Card:
    """Read a card from a YAML file.

    Raises:
        ConfigError: see :func:`parsed`.
    """
    return parsed(file.read_text(encoding="utf-8"), str(file))


def filled(data: Any, words: Mapping[str, str]) -> Any:
    """Replace ``{word}`` in every text of plain data.

    Args:
        data: the plain data.
        words: replacement of each word.
    """
    if isinstance(data, str):
        for word, text in words.items():
            data = data.replace(f"{{{word}}}", text)
        return data
    if isinstance(data, Sequence):
        return [filled(each, words) for each in data]
    if isinstance(data, Mapping):
        return {key: filled(each, words) for key, each in data.items()}
    return data


WORD = r"[A-Za-z0-9_-]+"


def cards() -> dict[str, Card]:
    """All cards by name, in alphabetical order. A card for many sets has its pattern as name."""
    return {name: card_of(data, _where(name)) for name, data in _data().items()}


def card(name: str) -> Card:
    """Find the card of a data set.

    Args:
        name: name of the set, or a name that matches the pattern of a card for many sets, such as ``tu:NCI109``.

    Raises:
        ConfigError: the set is unknown.
    """
    known = _data()
    if name in known and "pattern" not in known[name]:
        return card_of(known[name], _where(name))
    for pattern, data in known.items():
        if words := _words(data.get("pattern"), name):
            lower = {f"{word}_lower": text.lower() for word, text in words.items()}
            return card_of({**filled(data, words | lower), "name": name}, _where(pattern))
    raise ConfigError(unknown("data set", name, sorted(known)))


def _words(pattern: str | None, name: str) -> dict[str, str] | None:
    """The values that a name has for the words in braces of a pattern; None if the name does not match."""
    if pattern is None:
        return None
    pieces = re.split(r"(\{\w+\})", pattern)
    shape = "".join(f"(?P<{p[1:-1]}>{WORD})" if p.startswith("{") else re.escape(p) for p in pieces)
    found = re.fullmatch(shape, name)
    return found.groupdict() if found else None


@cache
def _data() -> dict[str, dict[str, Any]]:
    """Contents of the card files, which are part of the package; cached."""
    found = {}
    for file in files("structpe.datasets").joinpath("cards").iterdir():
        if file.name.endswith(".yaml"):
            data = from_yaml(file.read_text(encoding="utf-8"), file.name)
            if not isinstance(data, dict) or not isinstance(data.get("name"), str):
                raise ConfigError("the card has no name; give one").at(_where(file.name))
            found[data["name"]] = data
    return dict(sorted(found.items()))


def _where(name: str) -> str:
    return f"card of {name}"


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
        readings = [read(file, part.reader, on_error, **part.options) for file in self.files(split)]
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
            yield from stream(file, part.reader, skip, **part.options)

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

    def _split(self, name: str) -> CardSplit:
        if name not in self.card.splits:
            raise ConfigError(unknown(f"split of {self.card.name}", name, list(self.splits)))
        split = self.card.splits[name]
        return replace(split, reader=split.reader or self.card.reader)

"""A card says what a data set is, whose it is, where its files are, and what reads them.

A card is a YAML file. What may stand in it are the fields of the classes here: a key that is none of them is an error,
so that a misspelt checksum is never taken for an absent one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from structpe.errors import ConfigError, StructPEError
from structpe.plain import from_yaml
from structpe.plain.typed import Builder

__all__ = ["BenchmarkName", "Card", "CorpusError", "File", "Split", "card_of", "filled", "parsed", "read_card"]

Unpack = Literal["zip", "tar.gz", "gz", "numbers"]
SHA256 = re.compile(r"[0-9a-f]{64}")


class CorpusError(StructPEError):
    """A data set that cannot be had: not at hand, not reachable, or not what its card says."""


@dataclass(frozen=True)
class File:
    """A file of a data set.

    Args:
        name: where it lies in the folder of the set, with ``/``. With ``*`` it stands for all files of such names.
        url: where to get it: an address, or what follows the ``base`` of the card; None where it is nowhere public.
        sha256: its checksum, of the file as it is fetched; None where nobody could compute it.
        bytes: its size, likewise.
        unpack: what becomes of it: an archive is unpacked and removed; ``numbers`` turns a pickle with lists of numbers
            into an ``.npz`` file of the same; None leaves it as it is.
        into: folder within the set's that an archive is unpacked in.
        strip: whether the one folder at the top of the archive is left out.
        leaves: what must be there afterwards; by default the file itself. All of it where ``--from`` gives it unpacked.
        part: what it belongs to, for those who want some parts only.
    """

    name: str
    url: str | None = None
    sha256: str | None = None
    bytes: int | None = None
    unpack: Unpack | None = None
    into: str = ""
    strip: bool = False
    leaves: tuple[str, ...] = ()
    part: str = ""

    @property
    def results(self) -> tuple[str, ...]:
        """What it leaves in the folder of the set."""
        return self.leaves or (self.name,)

    @property
    def is_pattern(self) -> bool:
        """Whether the name stands for files of unknown names."""
        return "*" in self.name


@dataclass(frozen=True)
class Split:
    """A split of a data set.

    Args:
        file: names of its files, in their order; a name with ``*`` stands for all files of such names, sorted.
        items: how many items there are; None where that is not known.
        reader: name of the reader; None takes that of the card.
        options: of the reader.
    """

    file: tuple[str, ...] = ()
    items: int | None = None
    reader: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BenchmarkName:
    """A benchmark that reads the set.

    Args:
        name: of the benchmark, in :data:`structpe.datasets.BENCHMARKS`.
        folder: which it is given, within the folder of the set.
        options: of the benchmark.
    """

    name: str
    folder: str = "."
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Card:
    """What is known of a data set.

    Args:
        name: by which it is asked for.
        kind: what its items are, in a word.
        description: what it is, in a sentence.
        licence: an SPDX identifier, the name of a licence that has none, or ``none stated``.
        citation: whom to cite.
        homepage: where its authors describe it.
        base: what the addresses of files begin with; a file without ``url`` has its name behind it.
        files: all there are.
        splits: by their names.
        reader: name of the reader of its splits; None where benchmarks alone read it.
        benchmarks: those that read it.
        maker: name of what generates it, for a set that is made and not fetched.
        pattern: of names, for a card that stands for many sets: ``tu:{name}``; the words in braces may be used in all
            texts of the card, also in lower case as ``{name_lower}``.
        notes: what a user must know.
    """

    name: str
    kind: str
    description: str
    licence: str
    citation: str
    homepage: str | None = None
    base: str | None = None
    files: tuple[File, ...] = ()
    splits: Mapping[str, Split] = field(default_factory=dict)
    reader: str | None = None
    benchmarks: tuple[BenchmarkName, ...] = ()
    maker: str | None = None
    pattern: str | None = None
    notes: str = ""

    @property
    def size(self) -> int | None:
        """Bytes to be fetched; None where that is not known of every file."""
        sizes = [file.bytes for file in self.files]
        return None if None in sizes or not sizes else sum(size or 0 for size in sizes)

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of its parts, in the order of the files."""
        return tuple(dict.fromkeys(file.part for file in self.files if file.part))


def parsed(text: str, where: str) -> Card:
    """The card that a YAML text is.

    Raises:
        ConfigError: it is no YAML, a key is unknown or missing, a value is of another type, or names do not fit.
    """
    try:
        return card_of(from_yaml(text, "the card"), where)
    except ConfigError as error:
        raise error if error.places else error.at(where) from None


def card_of(data: Any, where: str) -> Card:
    """The card that plain data describe, checked.

    Raises:
        ConfigError: as :func:`parsed`.
    """
    if isinstance(data, dict):
        files, splits = data.get("files"), data.get("splits")
        if isinstance(files, list):
            data = {**data, "files": [_with_url(_listed(file, "leaves"), data.get("base")) for file in files]}
        if isinstance(splits, dict):
            data = {**data, "splits": {name: _listed(split, "file") for name, split in splits.items()}}
    try:
        card = Builder().build(Card, data, "the card")
    except ConfigError as error:
        raise error.at(where) from None
    for problem in _problems(card):
        raise ConfigError(problem).at(where)
    return card


def _with_url(file: Any, base: Any) -> Any:
    """A file with a complete URL: its own, or the base of the card followed by its name."""
    if not isinstance(file, dict) or not isinstance(base, str):
        return file
    url = file.get("url", file.get("name"))
    return {**file, "url": base + url if isinstance(url, str) and "://" not in url else url}


def _listed(part: Any, key: str) -> Any:
    """A part of a card that may give one name where a list of names is meant."""
    return {**part, key: [part[key]]} if isinstance(part, dict) and isinstance(part.get(key), str) else part


def _problems(card: Card) -> list[str]:
    problems = []
    names = [name for file in card.files for name in (file.name, *file.leaves, file.into) if name]
    names += [name for part in card.splits.values() for name in part.file] + [each.folder for each in card.benchmarks]
    problems += [f"the name {name!r} leads out of the folder of the set" for name in names if not _inside(name)]
    for file in card.files:
        if not PurePosixPath(file.name).parts:
            problems.append(f"a file has the name {file.name!r}; a name within the folder of the set is needed")
        if file.sha256 is not None and not SHA256.fullmatch(file.sha256):
            problems.append(f"sha256 of {file.name} is {file.sha256!r}; 64 digits 0-9 and a-f are needed")
        if file.url is not None and not file.url.startswith(("https://", "http://")):
            problems.append(f"url of {file.name} is {file.url!r}; an address of http or https is needed")
    results = [result for file in card.files for result in file.results]
    twice = {name for name, times in Counter(results).items() if times > 1}
    problems += [f"two files leave {name!r}" for name in sorted(twice)]
    for name, part in card.splits.items():
        if part.file and not (part.reader or card.reader):
            problems.append(f"split {name!r} has files, and there is no reader for them")
        problems += [
            f"split {name!r} reads {each!r}, which no file leaves" for each in part.file if not _left(card, each)
        ]
    return problems


def _inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name and ":" not in name


def _left(card: Card, name: str) -> bool:
    """Whether a file of the card leaves this."""
    results = [result for file in card.files for result in file.results]
    if not PurePosixPath(name).parts:  # the folder itself; as a pattern that would be an error
        return False
    return name in results or any(PurePosixPath(result).match(name) for result in results)


def read_card(file: Path) -> Card:
    """The card in a file.

    Raises:
        ConfigError: as :func:`parsed`.
    """
    return parsed(file.read_text(encoding="utf-8"), str(file))


def filled(data: Any, words: Mapping[str, str]) -> Any:
    """Plain data with ``{word}`` in every text replaced.

    Args:
        data: as YAML gives it.
        words: what to put for each.
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

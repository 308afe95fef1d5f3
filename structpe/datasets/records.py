"""The record of a data folder: the checksums of its files when they were fetched, stored with the data.

If a card has no checksum, the first fetch is trusted, and later contents are compared with its record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from structpe.datasets.card import Card, CorpusError, File
from structpe.datasets.fetching.download import Seen, Tell, sha256_of, writing
from structpe.files import atomic_text
from structpe.plain import from_json

__all__ = ["State", "checked", "record", "recorded", "results"]

NAME = ".structpe.json"


@dataclass(frozen=True)
class State:
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
) -> list[State]:
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


def _state(file: File, folder: Path, name: str, known: Mapping[str, Seen], tell: Tell | None, wanted: bool) -> State:
    place = folder / name
    if not place.is_file():
        return State(name, "missing" if wanted or name in known else "not fetched")
    try:
        seen = sha256_of(place, tell)
    except OSError as error:
        raise CorpusError(f"cannot be read: {error.strerror}; check its permissions").at(place) from None
    if file.sha256 is not None and file.unpack is None:
        good = seen.sha256 == file.sha256
        return State(name, "ok" if good else "changed", "" if good else _differs(seen, "the card says", file.sha256))
    if name in known:
        good = seen.sha256 == known[name].sha256
        detail = seen.sha256 if good else _differs(seen, "first seen was", known[name].sha256)
        return State(name, "as first seen" if good else "changed", detail)
    return State(name, "not checked", seen.sha256)


def _differs(seen: Seen, by: str, expected: str) -> str:
    return f"sha256 {seen.sha256}, {by} {expected}"

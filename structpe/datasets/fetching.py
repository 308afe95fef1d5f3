"""Fetch a data set into its folder, from the network or a local copy: checked, unpacked, resumable."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import numpy as np

from structpe.datasets.archives import unpack, unpack_gz
from structpe.datasets.catalogue import Card, Corpus, CorpusError, File
from structpe.datasets.catalogue import card as card_named
from structpe.datasets.downloads import Download, Seen, Tell, digest_of, download, sha256_of, sweep_note, writing
from structpe.datasets.pickles import pickled_numbers
from structpe.datasets.records import record, recorded, results
from structpe.datasets.trees import MAKERS
from structpe.errors import listed
from structpe.system.files import atomic_write, left_in, lock, sweep, user_cache

__all__ = ["Hooks", "Source", "find", "folder_of", "get", "root"]

VARIABLE = "STRUCTPE_DATA"


def root(given: str | Path | None = None) -> Path:
    """The folder that contains the folders of all data sets.

    Args:
        given: the folder; by default the environment variable ``STRUCTPE_DATA``, or else the cache folder of the
            operating system.
    """
    if given is not None:
        return Path(given).expanduser()
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    return user_cache() / "structpe" / "data"


def folder_of(card: Card, given: str | Path | None = None) -> Path:
    """The folder of a data set in :func:`root`: the name of the set, with ``-`` for ``:``."""
    return root(given) / card.name.replace(":", "-")


MOST = 200_000
"""Files of a folder."""


class Source:
    """A local copy: a file or a folder.

    Args:
        path: path of the copy.
        card: card of the set.

    Raises:
        CorpusError: the path does not exist, or has too many files.
    """

    def __init__(self, path: Path, card: Card) -> None:
        if not path.exists():
            raise CorpusError("there is no such file or folder; check --from").at(path)
        self.path, self.card = path, card
        below = (each for each in path.rglob("*") if each.is_file() and not each.name.startswith("."))
        self.files = [path] if path.is_file() else sorted(islice(below, MOST + 1))
        if len(self.files) > MOST:
            raise CorpusError(f"the folder holds more than {MOST} files; give the folder of the data itself").at(path)

    def find(self, file: File) -> Path | None:
        """Find a file as it would be fetched; None if it is not in the copy.

        A file with another name is used if its checksum is right, or if it is the only possible one.

        Raises:
            CorpusError: the file of this name has another checksum, or several files match and there is no checksum.
        """
        named = self._named(_names(file))
        if file.sha256 is None:
            alone = not named and self.path.is_file() and len(self.card.files) == 1 and not self._is_result(file)
            found = self.path if alone else self._only(named)
            if found is None or file.digest is None or digest_of(found, file.digest) == file.digest:
                return found
            if file.unpack is None:
                raise self._another(found, f"digest {digest_of(found, file.digest)}", file.digest)
            return None
        size = file.bytes
        for candidate in [*named, *(each for each in self.files if each not in named and size is not None)]:
            if size in (None, candidate.stat().st_size) and sha256_of(candidate).sha256 == file.sha256:
                return candidate
        if named and file.unpack is None:
            raise self._another(named[0], f"sha256 {sha256_of(named[0]).sha256}", file.sha256)
        return None

    def _another(self, found: Path, has: str, expected: str | None) -> CorpusError:
        wrong = f"it has {has}, and the card of {self.card.name} says {expected}"
        return CorpusError(f"{wrong}: another version, or damaged; give the right one").at(found)

    def find_results(self, file: File) -> dict[str, Path] | None:
        """Find the results of a file, already unpacked; None if one of them is missing."""
        found = {name: self._only(self._named([name])) for name in file.results}
        whole = {name: path for name, path in found.items() if path is not None}
        return whole if len(whole) == len(found) else None

    def find_pattern(self, file: File) -> dict[str, Path]:
        """Find the files that match a pattern, in the folder or in one below it."""
        if self.path.is_file():
            return {}
        depth = len(PurePosixPath(file.name).parts)
        tops = {each.parents[depth - 1] for each in self.files if each.match(file.name)}
        if len(tops) > 1:
            listed = ", ".join(str(top) for top in sorted(tops)[:3])
            wrong = f"files {file.name} are in several folders, such as {listed}; give one of them"
            raise CorpusError(wrong).at(self.path)
        return {each.relative_to(top).as_posix(): each for top in tops for each in self.files if each.match(file.name)}

    def _is_result(self, file: File) -> bool:
        return file.unpack is not None and self.path.name in {PurePosixPath(name).name for name in file.leaves}

    def _named(self, names: Sequence[str]) -> list[Path]:
        """Files with one of these names; those in the right folders are preferred."""
        for name in names:
            parts = PurePosixPath(name).parts
            for length in range(len(parts), 0, -1):
                if found := [each for each in self.files if each.parts[-length:] == parts[-length:]]:
                    return found
        return []

    def _only(self, found: list[Path]) -> Path | None:
        if len(found) > 1:
            listed = ", ".join(str(each) for each in found[:3])
            raise CorpusError(f"several files could be meant: {listed}; give one of them, or its folder").at(self.path)
        return found[0] if found else None


def _names(file: File) -> list[str]:
    """Possible names of a file: its path in the set, or the end of its URL."""
    end = unquote(urlsplit(file.url).path).lstrip("/") if file.url else ""
    return [file.name, *([end] if end else [])]


UNPACKING = "unpacking"
"""The place whose hidden folder archives are unpacked in."""
PLAIN = Download("")


def _ignore(*_: object) -> None:
    """Ignore a message, or the progress of a file."""


def _untold(name: str) -> Tell:
    """The progress of each file is ignored by default."""
    return _ignore


@dataclass(frozen=True)
class Hooks:
    """Callbacks and settings of :func:`get`.

    Args:
        say: called with messages about files that are fetched, unpacked, or trusted on first use.
        tell: (name of the file) -> callback for the progress of the file.
        download: number and length of attempts; its ``url`` is not used.
    """

    say: Callable[[str], object] = _ignore
    tell: Callable[[str], Tell] = _untold
    download: Download = PLAIN


def get(
    name: str,
    to: str | Path | None = None,
    source: str | Path | None = None,
    parts: Sequence[str] = (),
    hooks: Hooks | None = None,
) -> Corpus:
    """Fetch the missing files of a data set.

    Files that are present and right are kept: a second call continues an interrupted one. Processes that fetch the same
    set wait for each other.

    Args:
        name: name of the set.
        to: folder that contains the folder of the set; by default :func:`root`.
        source: a local copy, a file or a folder, to use instead of the network.
        parts: names of the parts or files to fetch; all by default.
        hooks: callbacks and settings.

    Raises:
        ConfigError: the set or a part is unknown.
        CorpusError: a file cannot be fetched, or is damaged or another version.
    """
    card, hooks = card_named(name), hooks or Hooks()
    folder, wanted = folder_of(card, to), card.chosen(parts)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder, hooks):
        sweep(*left_in(folder))
        for file in wanted:
            sweep_note(folder / file.name)
        work = _Work(card, folder, Source(Path(source).expanduser(), card) if source is not None else None, hooks)
        try:
            lacking = work.complete(wanted)
        finally:
            work.save()
    if lacking:
        raise CorpusError(_absent(card, lacking, source, folder))
    return Corpus(card, folder)


def find(name: str, to: str | Path | None = None) -> Corpus:
    """Find a data set that was fetched before; neither the network nor a file is read.

    Args:
        name: name of the set.
        to: folder that contains the folder of the set, as in :func:`get`.

    Raises:
        ConfigError: the set is unknown.
    """
    card = card_named(name)
    return Corpus(card, folder_of(card, to))


@contextmanager
def _alone(folder: Path, hooks: Hooks) -> Iterator[None]:
    """Lock the folder; say so if another process has the lock."""
    from filelock import FileLock, Timeout

    with writing(folder):
        lock = FileLock(folder / ".structpe.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            hooks.say(f"another process fetches into {folder}; waiting for it")
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


class _Work:
    """Fetches one set into one folder.

    Args:
        card: card of the set.
        folder: folder of the set.
        source: a local copy; None for the network.
        hooks: callbacks and settings.
    """

    def __init__(self, card: Card, folder: Path, source: Source | None, hooks: Hooks) -> None:
        self.card, self.folder, self.source, self.hooks = card, folder, source, hooks
        self.known = recorded(folder)
        self.unsaved: dict[str, Seen] = {}

    def complete(self, wanted: Sequence[File]) -> list[File]:
        """Fetch or make the missing files; return those that are not available."""
        missing = [file for file in wanted if not self.there(file)]
        if self.card.maker is not None and missing and self.source is None:
            self.make(self.card.maker)
            return []
        return [file for file in missing if not self.fetch(file)]

    def there(self, file: File) -> bool:
        """Whether the results of a file exist, as recorded or as the card says."""
        names = results(file, self.folder)
        return bool(names) and all(self._good(file, name) for name in names)

    def _good(self, file: File, name: str) -> bool:
        place = self.folder / name
        if not place.is_file():
            return False
        if name in self.known:  # it was checked when it was fetched; `verify` reads it again
            newer = file.unpack is None and file.sha256 not in (None, self.known[name].sha256)
            return not newer and place.stat().st_size == self.known[name].bytes
        if file.sha256 is None or file.unpack is not None:
            return False
        seen = sha256_of(place)
        if right := seen.sha256 == file.sha256:
            self.keep({name: seen})
        return right

    def keep(self, seen: Mapping[str, Seen]) -> None:
        """Remember checksums; :meth:`save` writes them to the record."""
        self.known = {**self.known, **seen}
        self.unsaved.update(seen)

    def save(self) -> None:
        """Write new checksums to the record."""
        if self.unsaved:
            record(self.folder, self.card, self.unsaved)
            self.unsaved = {}

    def make(self, maker: str) -> None:
        """Generate the set."""
        self.hooks.say(f"making {self.card.name}")
        MAKERS[maker](self.folder, self.hooks.tell(self.card.name))
        for file in self.card.files:
            seen = sha256_of(self.folder / file.name)
            if file.sha256 not in (None, seen.sha256):
                wrong = f"sha256 is {seen.sha256}, and the card says {file.sha256}: another Python wrote it"
                raise CorpusError(wrong).at(self.folder / file.name)
            self.keep({file.name: seen})

    def fetch(self, file: File) -> bool:
        """Fetch a file and unpack it; return False if it is neither public nor in the local copy."""
        if self.source is None:
            return file.url is not None and self._download(file)
        if file.is_pattern:
            found = self.source.find_pattern(file)
            return bool(found) and self._copy(file, found)
        if given := self.source.find(file):
            self.hooks.say(f"{file.name}: from {given}")
            self._settle(file, given)
            return True
        unpacked = self.source.find_results(file) if file.unpack is not None else None
        return unpacked is not None and self._copy(file, unpacked)

    def _download(self, file: File) -> bool:
        place = self.folder / file.name
        with writing(place):
            place.parent.mkdir(parents=True, exist_ok=True)
        if file.unpack is not None and place.is_file():  # it is complete, and unpacking was interrupted
            return self._unpacked(file, place)
        self.hooks.say(f"{file.name}: from {file.url}")
        wanted = replace(
            self.hooks.download, url=str(file.url), sha256=file.sha256, bytes=file.bytes, digest=file.digest
        )
        try:
            seen = download(wanted, place, self.hooks.tell(file.name))
        except CorpusError as error:
            raise CorpusError(f"{error.message}. {_by_hand(self.card, file, self.folder)}").at(*error.places) from None
        if file.sha256 is None and file.digest is None:
            self.hooks.say(f"{file.name}: the card has no checksum; sha256 {seen.sha256} is trusted on first use")
        if file.unpack is None:
            self.keep({file.name: seen})
        else:
            self._unpacked(file, place)
        self.save()
        return True

    def _unpacked(self, file: File, place: Path) -> bool:
        """Unpack a downloaded file and remove it."""
        self._settle(file, place)
        with writing(place):
            place.unlink()
        return True

    def _copy(self, file: File, found: Mapping[str, Path]) -> bool:
        for name, given in found.items():
            self.hooks.say(f"{name}: from {given}")
            self.keep({name: _copied(given, self.folder / name)})
        return True

    def _settle(self, file: File, given: Path) -> None:
        """Unpack a file, or copy it to its place."""
        place = self.folder / file.results[0]
        if file.unpack is None:
            self.keep({file.name: _copied(given, place)})
            return
        if file.unpack == "gz":
            _written(place, lambda hidden: unpack_gz(given, hidden))
        elif file.unpack == "numbers":
            _written(place, lambda hidden: _as_npz(given, hidden))
        else:
            self._unpack(file, given)
        if lacking := [name for name in file.results if not (self.folder / name).is_file()]:
            raise CorpusError(f"the archive has no {lacking[0]}; it is not the one that the card describes").at(given)
        self.keep({name: sha256_of(self.folder / name) for name in file.results})

    def _unpack(self, file: File, given: Path) -> None:
        """Unpack into a hidden folder, then move the files: a half-unpacked file is never used."""
        self.hooks.say(f"unpacking {given.name}")
        with writing(self.folder), lock(self.folder / UNPACKING) as work:
            hidden = work / "new"
            hidden.mkdir()
            for path in unpack(given, str(file.unpack), hidden, file.strip):
                name = (PurePosixPath(file.into) / path.relative_to(hidden).as_posix()).as_posix()
                if self._wanted(file, name, given):
                    place = self.folder / name
                    place.parent.mkdir(parents=True, exist_ok=True)
                    path.replace(place)

    def _wanted(self, file: File, name: str, given: Path) -> bool:
        """Whether to keep a file of an archive: one that the card names, or any in a folder of the archive.

        Raises:
            CorpusError: it would replace another file of the set.
        """
        if name in file.results:
            return True
        others = {each for other in self.card.files if other is not file for each in (other.name, *other.results)}
        if name in self.known or any(name == each or name.startswith(f"{each}.part") for each in others):
            wrong = f"the archive is refused: it holds {name!r}, which is another file of the set"
            raise CorpusError(f"{wrong}; do not trust its source").at(given)
        return bool(file.into)


def _copied(given: Path, place: Path) -> Seen:
    with writing(place):
        if not (place.exists() and place.samefile(given)):
            _written(place, lambda hidden: shutil.copyfile(given, hidden))
    return sha256_of(place)


def _written(place: Path, write: Callable[[Path], object]) -> None:
    with writing(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(place, write)


def _as_npz(given: Path, place: Path) -> None:
    """Convert the numbers of a pickle to a format that cannot run code."""
    numbers = pickled_numbers(given)
    with place.open("wb") as target:
        np.savez(target, allow_pickle=False, **numbers)


def _absent(card: Card, lacking: Sequence[File], source: str | Path | None, folder: Path) -> str:
    """The error for missing files: their names, and the remedy."""
    names = listed((file.name for file in lacking), 5)
    if source is not None:
        return f"{source} lacks files of {card.name}: {names}. Give the folder that holds them"
    why = f"{card.name} cannot be fetched, as these files are not public: {names}"
    return f"{why}. {_by_hand(card, lacking[0], folder)}. {' '.join(card.notes.split())}".rstrip()


def _by_hand(card: Card, file: File, folder: Path) -> str:
    """Instructions for getting a file without the network."""
    what = f"fetch {file.url} elsewhere" if file.url else f"get {file.name} from its owner"
    place = Path(file.name).name
    if len(card.files) > 1:
        what += f", with the other files that 'structpe data show {card.name}' lists, into a folder,"
        place = "FOLDER"
    command = f"structpe data get {card.name} --to {shlex.quote(str(folder.parent))} --from {place}"
    return f"To use a local copy, {what} and give the command: {command}"

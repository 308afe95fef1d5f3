"""Search of a local copy, a file or a folder given by the user, for the files of a card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from structpe.datasets.card import Card, CorpusError, File
from structpe.datasets.fetching.download import sha256_of

__all__ = ["Source"]

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
        self.files = [path] if path.is_file() else sorted(islice(_below(path), MOST + 1))
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
            if not named and self.path.is_file() and len(self.card.files) == 1 and not self._is_result(file):
                return self.path
            return self._only(named)
        size = file.bytes
        for candidate in [*named, *(each for each in self.files if each not in named and size is not None)]:
            if size in (None, candidate.stat().st_size) and sha256_of(candidate).sha256 == file.sha256:
                return candidate
        if named and file.unpack is None:
            raise CorpusError(
                f"it has sha256 {sha256_of(named[0]).sha256}, and the card of {self.card.name} says {file.sha256}: "
                "another version, or damaged; give the right one"
            ).at(str(named[0]))
        return None

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
            raise CorpusError(f"files {file.name} are in several folders, such as {listed}; give one of them").at(
                self.path
            )
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


def _below(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))

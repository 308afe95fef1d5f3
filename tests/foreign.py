"""What a user may have under a name that structpe uses for its own: it is never changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

__all__ = ["FOREIGN", "FOREIGN_IDS", "a_file", "contents"]


def a_file(place: Path) -> None:
    """A file with a text."""
    place.write_text("mine")


def a_folder(place: Path) -> None:
    """A folder with a file in it."""
    place.mkdir()
    (place / "mine").write_text("mine")


def a_link_to_a_file(place: Path) -> None:
    """A link to a file elsewhere."""
    (place.parent / "precious.txt").write_text("mine")
    place.symlink_to(place.parent / "precious.txt")


def a_link_to_a_folder(place: Path) -> None:
    """A link to a folder elsewhere, in which all is as in one of structpe's."""
    a_folder(place.parent / "precious")
    (place.parent / "precious" / "structpe.lock").touch()
    place.symlink_to(place.parent / "precious")


FOREIGN: list[Callable[[Path], None]] = [a_file, a_folder, a_link_to_a_file, a_link_to_a_folder]
FOREIGN_IDS = [make.__name__ for make in FOREIGN]


def contents(folder: Path) -> dict[str, str]:
    """Everything in a folder: the text of files, where links lead."""
    return {
        path.relative_to(folder).as_posix(): f"-> {path.readlink()}"
        if path.is_symlink()
        else path.read_bytes().decode("latin-1")
        if path.is_file()
        else "folder"
        for path in sorted(folder.rglob("*"))
    }

"""Checksums of files, in a file next to them, in the format of ``sha256sum -c SHA256SUMS``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from structpe.errors import StoreError
from structpe.files import atomic_text, sealed, sha256_of, unsealed

__all__ = ["SUMS", "check", "read_sealed", "seal", "sealed_lines", "sums_of", "wrong"]

SUMS = "SHA256SUMS"
"""The file with a line for each file of its folder: the checksum, two spaces, the name."""


def sums_of(folder: Path, names: Iterable[str]) -> str:
    """The content of :data:`SUMS` for the current files of a folder."""
    return "".join(f"{sha256_of(folder / name)}  {name}\n" for name in sorted(names))


def seal(folder: Path, names: Iterable[str]) -> None:
    """Write the checksums of files, which must not change afterwards."""
    atomic_text(folder / SUMS, sums_of(folder, names))


def wrong(folder: Path, names: Iterable[str]) -> str:
    """What is wrong with the files of a folder; empty if they are unchanged.

    Args:
        folder: the folder, with :data:`SUMS`.
        names: the required files.
    """
    for name in (*names, SUMS):
        if not (folder / name).is_file():
            return f"it has no {name}"
    now, written = sums_of(folder, names), (folder / SUMS).read_bytes()
    if written == now.encode():
        return ""
    lines = written.decode("utf-8", "replace").splitlines(keepends=True)
    listed = [line.partition("  ")[2] for line in lines]
    changed = [
        name for line, name in zip(now.splitlines(keepends=True), sorted(names), strict=True) if line not in lines
    ]
    if changed and listed == [f"{name}\n" for name in sorted(names)]:
        return f"its {changed[0]} has other bytes than its checksum says"
    return f"its {SUMS} is not whole"


def check(folder: Path, names: Iterable[str], remedy: str) -> None:
    """Compare files with their checksums.

    Raises:
        StoreError: a file is missing or has changed.
    """
    if found := wrong(folder, tuple(names)):
        raise StoreError(f"the folder is damaged: {found}; {remedy}").at(folder)


def sealed_lines(content: Mapping[str, Any]) -> str:
    """The JSON of :func:`structpe.files.sealed`, indented."""
    return json.dumps(json.loads(sealed(content)), indent=2)


def read_sealed(text: str) -> dict[str, Any]:
    """The inverse of :func:`structpe.files.sealed`; text of an older structpe, without a checksum, is not checked.

    Raises:
        ValueError: it is not a JSON object, or has changed.
    """
    content = json.loads(text)
    return content if isinstance(content, dict) and "sha256" not in content else unsealed(text)

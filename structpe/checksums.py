"""Checksums of files, in a file next to them, as ``sha256sum -c SHA256SUMS`` reads them too."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from structpe.errors import StoreError
from structpe.files import atomic_write, sealed, sha256_of, unsealed

__all__ = ["SUMS", "check", "read_sealed", "seal", "sealed_lines", "told", "wrong"]

SUMS = "SHA256SUMS"
"""The file with a line for each file of its folder: the checksum, two blanks, the name."""


def told(folder: Path, names: Iterable[str]) -> str:
    """What :data:`SUMS` holds for files of a folder as they are now."""
    return "".join(f"{sha256_of(folder / name)}  {name}\n" for name in sorted(names))


def seal(folder: Path, names: Iterable[str]) -> None:
    """Write down the checksums of files, which from then on must stay as they are."""
    text = told(folder, names)
    atomic_write(folder / SUMS, lambda hidden: hidden.write_text(text, encoding="utf-8"))


def wrong(folder: Path, names: Iterable[str]) -> str:
    """What is wrong with the files of a folder; the empty string where they are as they were written.

    Args:
        folder: with :data:`SUMS`.
        names: the files that must be there.
    """
    for name in (*names, SUMS):
        if not (folder / name).is_file():
            return f"it has no {name}"
    now, written = told(folder, names), (folder / SUMS).read_bytes()
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
    """Compare the checksums of files with those that were written down.

    Raises:
        StoreError: a file is missing, or is not as it was written.
    """
    if found := wrong(folder, tuple(names)):
        raise StoreError(f"the folder is damaged: {found}; {remedy}").at(str(folder))


def sealed_lines(content: Mapping[str, Any]) -> str:
    """What :func:`structpe.files.sealed` gives, in lines that a person can read."""
    return json.dumps(json.loads(sealed(content)), indent=2)


def read_sealed(text: str) -> dict[str, Any]:
    """What :func:`structpe.files.sealed` was given; without a checksum, as an older structpe wrote it, as it is.

    Raises:
        ValueError: it is no JSON object, or not as it was written.
    """
    content = json.loads(text)
    return content if isinstance(content, dict) and "sha256" not in content else unsealed(text)

"""Paths and seeds on the command line."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from pathlib import Path

from structpe.cli.base import UsageError

__all__ = ["check_picture", "path_of", "seed_of"]


def path_of(text: str) -> Path:
    """A path, for ``type=`` of an argument.

    Raises:
        ArgumentTypeError: it is empty, which is the current folder in Python; or ``-``, which is not supported.
    """
    if not text.strip():
        raise ArgumentTypeError("the path is empty; give a file or folder, '.' for the current one")
    if text == "-":
        raise ArgumentTypeError("'-' is not a file, and pipes are not supported; give a file")
    return Path(text)


def seed_of(text: str) -> int:
    """A seed, for ``type=`` of an argument.

    Raises:
        ArgumentTypeError: it is not a whole number that PyTorch accepts.
    """
    try:
        seed = int(text)
    except ValueError:
        raise ArgumentTypeError(f"a seed is a whole number; given is {text!r}") from None
    if not 0 <= seed < 1 << 63:
        raise ArgumentTypeError(f"a seed is 0 or more and has at most 63 bits; given is {seed}")
    return seed


def check_picture(out: Path, suffixes: str) -> None:
    """Check the name of a picture to be written.

    Raises:
        UsageError: it ends in none of the suffixes, or is a folder.
    """
    if out.suffix.lower() not in re.findall(r"\.\w+", suffixes):
        raise UsageError(f"--out {out} has no known suffix; give a name that ends in {suffixes}")
    if out.is_dir():
        raise UsageError(f"--out {out} is a folder; give a file")

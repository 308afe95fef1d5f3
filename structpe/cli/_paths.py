"""Paths and seeds on the command line."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path

__all__ = ["path_of", "seed_of"]


def path_of(text: str) -> Path:
    """A path as it is typed, for ``type=`` of an argument.

    Raises:
        ArgumentTypeError: it is empty, which Python takes for the current folder; or ``-``, which is no file here.
    """
    if not text.strip():
        raise ArgumentTypeError("the path is empty; give a file or folder, '.' for the current one")
    if text == "-":
        raise ArgumentTypeError("'-' is no file, and nothing is read from a pipe or written to one; give a file")
    return Path(text)


def seed_of(text: str) -> int:
    """A seed as it is typed, for ``type=`` of an argument.

    Raises:
        ArgumentTypeError: it is no whole number that PyTorch can start from.
    """
    try:
        seed = int(text)
    except ValueError:
        raise ArgumentTypeError(f"a seed is a whole number; given is {text!r}") from None
    if not 0 <= seed < 1 << 63:
        raise ArgumentTypeError(f"a seed is 0 or more and has at most 63 bits; given is {seed}")
    return seed

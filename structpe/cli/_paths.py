"""Paths and seeds on the command line."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path

__all__ = ["path_of", "seed_of"]


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

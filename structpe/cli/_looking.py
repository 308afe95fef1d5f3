"""Shared by the commands that show one structure of a file."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structpe.cli._reading import BY_RUN, Report, Wanted, parse_yaml, wanted, wanted_by
from structpe.cli.base import UsageError

if TYPE_CHECKING:
    from structpe.formats import Item
    from structpe.structure import Structure

__all__ = ["WITH_RUN", "item_of", "parse_position", "wanted_for"]

WITH_RUN = f"by default from its suffix; with --checkpoint {BY_RUN}"


def item_of(wanted: Wanted, index: int) -> tuple[Item, Callable[[], list[Structure]]]:
    """The item of a file by its index, and a function that reads all structures of the file.

    Skipped items are not counted.

    Raises:
        UsageError: there are fewer items.
        ReadError: the file, or an item up to this one, cannot be read.
    """
    from structpe.formats import stream

    if not 0 <= index < sys.maxsize:
        raise UsageError(f"--index is {index}; structures are counted from 0, and there are fewer than {sys.maxsize}")
    count, last = 0, None
    skip = None if wanted.on_error == "raise" else Report().add
    items = stream(wanted.path, wanted.reader, skip, **wanted.options)
    for last in islice(items, index + 1):  # noqa: B007, the last one is used
        count += 1
    if last is None or count <= index:
        found = f"has {count} structures, 0..{count - 1}" if count else "has no good structure"
        raise UsageError(f"--index is {index}, but {wanted.path} {found}")
    return last, lambda: wanted.read().structures


def wanted_for(given: Namespace, path: Path) -> Wanted:
    """How to read the file of a picture: for the trained model of ``--checkpoint``, if there is one.

    Raises:
        StructPEError: see :func:`~structpe.cli._reading.wanted` and :func:`~structpe.cli._reading.wanted_by`.
    """
    if given.checkpoint is None:
        return wanted(path, given)
    from structpe.tasks.runs import load_run

    return wanted_by(load_run(given.checkpoint), path, given)


def parse_position(text: str) -> Any:
    """The plain description of a position model from its notation on the command line: a name, or YAML.

    Raises:
        UsageError: it is not YAML.
    """
    return parse_yaml(text, f"--position {text!r}")

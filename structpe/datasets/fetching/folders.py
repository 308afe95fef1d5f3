"""Folders of data sets on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from structpe.datasets.card import Card

__all__ = ["folder_of", "root"]

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
    return _cache() / "structpe" / "data"


def folder_of(card: Card, given: str | Path | None = None) -> Path:
    """The folder of a data set in :func:`root`: the name of the set, with ``-`` for ``:``."""
    return root(given) / card.name.replace(":", "-")


def _cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")

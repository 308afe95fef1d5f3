"""JSON by Python's own reader, with bounds on its size and its depth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from structpe.errors import undamaged

__all__ = ["LARGEST", "from_json", "read_json"]

LARGEST = 1 << 26
"""Bytes of a text: 64 MiB."""
DEEPEST = 100
"""Lists and mappings within one another."""


def from_json(text: str | bytes) -> Any:
    """Read a JSON text.

    Raises:
        ValueError: it is not JSON, or a bound is exceeded.
    """
    if len(text) > LARGEST:
        raise ValueError(f"{len(text)} bytes of JSON are given, {LARGEST} are allowed")
    try:
        data = json.loads(text)
    except RecursionError:
        raise _too_deep() from None
    layer, depth = [[data]], 0
    while layer := [each for value in layer for each in _inner(value)]:
        depth += 1
        if depth > DEEPEST:
            raise _too_deep()
    return data


def read_json(path: Path, remedy: str) -> Any:
    """Read a JSON file.

    Args:
        path: the file.
        remedy: advice for a damaged file.

    Raises:
        StoreError: it is missing, not JSON in UTF-8, or exceeds a bound.
        OSError: it cannot be opened.
    """
    with undamaged(path, remedy):
        if (size := path.stat().st_size) > LARGEST:
            raise ValueError(f"{size} bytes of JSON are given, {LARGEST} are allowed")
        return from_json(path.read_bytes())


def _inner(value: Any) -> list[Any]:
    """Lists and mappings directly within one."""
    values = value.values() if isinstance(value, dict) else value
    return [each for each in values if isinstance(each, (dict, list))]


def _too_deep() -> ValueError:
    return ValueError(f"lists and mappings are nested deeper than {DEEPEST}")

"""Digests of training data: a run resumes only with the data that it began with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from structpe.errors import StoreError
from structpe.structure import Structure

__all__ = ["Content", "digest", "refuse_changed", "structures"]

Content: TypeAlias = Mapping[str, str]
"""The digest of each part of the training data, by a readable name."""

PARTS: Mapping[str, Callable[[Structure], Any]] = {
    "node labels": lambda s: s.nodes,
    "edges": lambda s: (s.directed, s.edges),
    "relation labels": lambda s: s.relations,
    "reading order": lambda s: s.order,
    "root": lambda s: None if s.root is None else int(s.root),
    "units": lambda s: (s.units, s.owner),
    "features": lambda s: dict(sorted(s.features.items())),
}


def structures(what: str, each: Sequence[Structure]) -> dict[str, str]:
    """Digests of all parts of structures except their names.

    Args:
        what: name of the structures, such as ``training graphs``.
        each: the structures, in training order.
    """
    return {f"{part} of the {what}": digest(look(s) for s in each) for part, look in PARTS.items()}


def digest(values: Iterable[Any]) -> str:
    """A digest of texts, numbers, arrays, None, and lists, tuples and dicts of these."""
    found = hashlib.sha256()
    for value in values:
        _feed(value, found.update)
    return found.hexdigest()


def refuse_changed(began: Content, now: Content) -> None:
    """Check that the training data have not changed since the run began.

    Raises:
        StoreError: a part has changed; the message names it.
    """
    if other := [part for part in dict.fromkeys([*began, *now]) if began.get(part) != now.get(part)]:
        raise StoreError(
            f"the training data have changed since this run began: {', '.join(other)}. Restore them, or train afresh"
        )


def _feed(value: Any, into: Callable[[bytes], object]) -> None:
    """Feed a value, its type and length first: otherwise different values could give the same bytes."""
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return _feed(["objects", value.shape, *value.ravel().tolist()], into)
        into(json.dumps(["array", value.dtype.str, value.shape]).encode())
        into(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, dict):
        _feed([list(value), *value.values()], into)
    elif isinstance(value, (list, tuple)):
        if all(isinstance(each, (str, int, float, type(None))) for each in value):
            return _feed_bytes(json.dumps(value).encode(), into)
        into(f"list {len(value)}".encode())
        for each in value:
            _feed(each, into)
    else:
        _feed_bytes(json.dumps(value).encode(), into)
    return None


def _feed_bytes(text: bytes, into: Callable[[bytes], object]) -> None:
    into(f"json {len(text)} ".encode() + text)

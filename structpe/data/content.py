"""What a training learns from, as digests of its parts: a run goes on with what it began with, or says what changed."""

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
"""The digest of each part of what is trained on, under what a person calls it."""

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
    """Digests of all parts of structures but their names.

    Args:
        what: they are, such as ``training graphs``.
        each: in the order in which they are trained on.
    """
    return {f"{part} of the {what}": digest(look(s) for s in each) for part, look in PARTS.items()}


def digest(values: Iterable[Any]) -> str:
    """Of texts, numbers, arrays, None, and lists, tuples and dicts of these; different values have different ones."""
    found = hashlib.sha256()
    for value in values:
        _feed(value, found.update)
    return found.hexdigest()


def refuse_changed(began: Content, now: Content) -> None:
    """Go on only with what a run began with.

    Raises:
        StoreError: a part of it is another now; it is named.
    """
    if other := [part for part in dict.fromkeys([*began, *now]) if began.get(part) != now.get(part)]:
        raise StoreError(
            f"the training data are not those that this run began with; other now: {', '.join(other)}. Bring them "
            f"back, or train afresh"
        )


def _feed(value: Any, into: Callable[[bytes], object]) -> None:
    """Every value says first what it is and how long, so that no two run into one another."""
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


def _feed_bytes(told: bytes, into: Callable[[bytes], object]) -> None:
    into(f"json {len(told)} ".encode() + told)

"""The cards that come with structpe, by name. Some describe many sets, such as all treebanks."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

from structpe.datasets.card import Card, card_of, filled
from structpe.errors import ConfigError
from structpe.plain import from_yaml
from structpe.registry import unknown

__all__ = ["card", "cards"]

WORD = r"[A-Za-z0-9_-]+"


def cards() -> dict[str, Card]:
    """All cards by name, in alphabetical order. A card for many sets has its pattern as name."""
    return {name: card_of(data, _where(name)) for name, data in _data().items()}


def card(name: str) -> Card:
    """Find the card of a data set.

    Args:
        name: name of the set, or a name that matches the pattern of a card for many sets, such as ``tu:NCI109``.

    Raises:
        ConfigError: the set is unknown.
    """
    known = _data()
    if name in known and "pattern" not in known[name]:
        return card_of(known[name], _where(name))
    for pattern, data in known.items():
        if words := _words(data.get("pattern"), name):
            lower = {f"{word}_lower": text.lower() for word, text in words.items()}
            return card_of({**filled(data, words | lower), "name": name}, _where(pattern))
    raise ConfigError(unknown("data set", name, sorted(known)))


def _words(pattern: str | None, name: str) -> dict[str, str] | None:
    """The words in braces of a pattern, as a name gives them; None if the name does not match."""
    if pattern is None:
        return None
    pieces = re.split(r"(\{\w+\})", pattern)
    shape = "".join(f"(?P<{p[1:-1]}>{WORD})" if p.startswith("{") else re.escape(p) for p in pieces)
    found = re.fullmatch(shape, name)
    return found.groupdict() if found else None


@cache
def _data() -> dict[str, dict[str, Any]]:
    """Contents of the card files, read once: they are part of the package."""
    found = {}
    for file in files("structpe.datasets").joinpath("cards").iterdir():
        if file.name.endswith(".yaml"):
            data = from_yaml(file.read_text(encoding="utf-8"), file.name)
            if not isinstance(data, dict) or not isinstance(data.get("name"), str):
                raise ConfigError("the card has no name; give one").at(_where(file.name))
            found[data["name"]] = data
    return dict(sorted(found.items()))


def _where(name: str) -> str:
    return f"card of {name}"

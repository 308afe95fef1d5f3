"""Encodings as the laws ask for them: with their defaults, but for what only a user can know."""

from __future__ import annotations

from structpe.encodings import ENCODINGS, Encoding

__all__ = ["asked"]

TOLD = {"feature": {"missing": 0}}


def asked(name: str) -> Encoding:
    return ENCODINGS[name](**TOLD.get(name, {}))

"""Encodings as the laws ask for them: with their defaults, but for what only a user can know."""

from __future__ import annotations

import numpy as np

from structpe.encodings import ENCODINGS, Encoding

__all__ = ["asked", "unpadded"]

TOLD = {"feature": {"missing": 0}}


def asked(name: str) -> Encoding:
    return ENCODINGS[name](**TOLD.get(name, {}))


def unpadded(pairs: np.ndarray) -> np.ndarray:
    """Paths of pairs without the padding that they share: a column pads them to its longest."""
    if pairs.ndim < 3 or pairs.dtype.kind == "f":
        return pairs
    return pairs[tuple(slice(int(places.max()) + 1) for places in np.nonzero(pairs != -1))]

"""Texts as tensors, for libraries that store numbers only: their bytes, or their indices in a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.converters.base import ConversionError

__all__ = ["as_numbers", "as_texts"]


def as_numbers(texts: Sequence[str], vocabulary: Sequence[str] | None, what: str) -> NDArray[Any]:
    """(n,) int64, the index of each text in the vocabulary; without one (n, longest) uint8, UTF-8 padded with zeros.

    Raises:
        ConversionError: a text is not in the vocabulary, or has a zero byte.
    """
    if vocabulary is not None:
        number = {text: place for place, text in enumerate(vocabulary)}
        if lacking := [text for text in texts if text not in number]:
            raise ConversionError(f"{what} {lacking[0]!r} is not in the vocabulary that was given; add it")
        return np.array([number[text] for text in texts], dtype=np.int64)
    coded = [text.encode("utf-8", "surrogatepass") for text in texts]
    if wrong := [text for text in texts if "\0" in text]:
        raise ConversionError(f"{what} {wrong[0]!r} holds a zero byte, which marks the end of a text; remove it")
    longest = max(map(len, coded), default=0)
    return np.array([list(code.ljust(longest, b"\0")) for code in coded], dtype=np.uint8).reshape(len(coded), longest)


def as_texts(numbers: NDArray[Any], vocabulary: Sequence[str] | None, what: str) -> tuple[str, ...]:
    """The inverse of :func:`as_numbers`.

    Raises:
        ConversionError: there are numbers without a vocabulary or out of its range, or bytes that are not UTF-8.
    """
    if numbers.dtype == np.uint8 and numbers.ndim == 2:
        try:
            return tuple(row.tobytes().rstrip(b"\0").decode("utf-8", "surrogatepass") for row in numbers)
        except UnicodeDecodeError:
            raise ConversionError(f"the rows of {what} are not UTF-8") from None
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
        raise ConversionError(f"{what} has dtype {numbers.dtype} and shape {numbers.shape}; give one number for each")
    if vocabulary is None:
        raise ConversionError(f"{what} numbers texts of a vocabulary; give it")
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < len(vocabulary):
        low, high = int(numbers.min()), int(numbers.max())
        raise ConversionError(f"{what} is {low} to {high}; the vocabulary that was given has {len(vocabulary)} texts")
    return tuple(vocabulary[number] for number in numbers.tolist())

"""Which unit stands at a place: the number of its text in a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from structpe.encodings.base import Encoded, Encoding
from structpe.errors import EncodingError
from structpe.structure import Structure

__all__ = ["Words"]


@dataclass(frozen=True)
class Words(Encoding, name="words"):
    """w_u: 1 + i where the text of the unit is ``texts[i]``, 0 where it is none of them.

    For position models in which each word has parameters of its own (Wang B. et al. 2020).

    Args:
        texts: the known texts; :meth:`fit` finds them, in alphabetical order.

    Raises:
        EncodingError: no text is known.
    """

    arity = 1
    causal = True

    texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", tuple(self.texts))
        if len(set(self.texts)) != len(self.texts):
            raise EncodingError(f"encoding 'words': {len(self.texts)} texts are given, some of them twice")

    @property
    def size(self) -> int:
        """Number of values: a learned table has as many rows."""
        return 1 + len(self.texts)

    def fit(self, structures: Sequence[Structure]) -> Words:
        return replace(self, texts=tuple(sorted({text for s in structures for text in s.unit_texts})))

    def one(self, structure: Structure) -> Encoded:
        if not self.texts:
            raise self.error(
                structure, "no text is known, so that all words would look alike; fit the encoding to a data set first"
            )
        return Encoded(np.array([self._numbers.get(text, 0) for text in structure.unit_texts], dtype=np.int64))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {text: 1 + i for i, text in enumerate(self.texts)}

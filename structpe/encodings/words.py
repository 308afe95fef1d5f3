"""The number of the text of each unit in a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

import numpy as np

from structpe.computed import computed
from structpe.encodings.base import Column, Encoded, Encoding
from structpe.errors import EncodingError
from structpe.structure import Structure

__all__ = ["Words"]


@dataclass(frozen=True)
class Words(Encoding, name="words"):
    """The number of the text of each unit in a vocabulary.

    w_u: 1 + i if the text of the unit is ``texts[i]``, else 0.

    For position models with separate parameters for each word (Wang B. et al. 2020).

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
        """Number of values, and of the rows of a learned table."""
        return 1 + len(self.texts)

    def fit(self, structures: Sequence[Structure]) -> Words:
        return replace(self, texts=tuple(sorted({text for s in structures for text in s.unit_texts})))

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        if not self.texts and structures:
            raise self.error(
                structures[0], "no text is known, so all words would be equal; fit the encoding to a data set first"
            )
        units = np.array([each.unit_count for each in structures], dtype=np.int64)
        texts = chain.from_iterable(each.unit_texts for each in structures)
        numbers = np.fromiter(map(self._numbers.get, texts, repeat(0)), dtype=np.int64, count=int(units.sum()))
        return Column.of_units(units, numbers)

    @computed
    def _numbers(self) -> dict[str, int]:
        return {text: 1 + i for i, text in enumerate(self.texts)}

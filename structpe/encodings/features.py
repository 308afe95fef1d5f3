"""Values that a structure brings with it: features of its nodes, words of its units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

import numpy as np

from structpe.computed import computed
from structpe.encodings.base import FIT, Column, Encoded, Encoding, check_key
from structpe.encodings.graphs import of_units
from structpe.errors import EncodingError, listed
from structpe.structure import Structure

__all__ = ["Feature", "Words"]


@dataclass(frozen=True)
class Feature(Encoding, name="feature"):
    """A feature of the nodes, such as languages, coordinates or marks from a reader or transform.

    f_u: the row of the node of each unit in ``structure.features[key]``.

    Args:
        key: name of the feature, an array with a row per node.
        missing: the value of every unit of a structure without this feature; None if the feature is required.

    Raises:
        EncodingError: the structure does not have the feature.
    """

    arity = 1
    causal = True

    key: str = "feature"
    missing: int | None = None

    def __post_init__(self) -> None:
        check_key(self, self.key)

    def one(self, structure: Structure) -> Encoded:
        if self.key in structure.features:
            given = np.asarray(structure.features[self.key])
            # Marks and small integers may index a table, which needs int64 in PyTorch.
            return Encoded(of_units(structure, given if given.dtype.kind == "f" else given.astype(np.int64)))
        if self.missing is None:
            known = listed(sorted(structure.features))
            raise self.error(
                structure,
                f"the structure has no feature {self.key!r}, it has: {known}; give it one with "
                f"Structure(features={{{self.key!r}: ...}}), or give a value with missing=",
            )
        return Encoded(np.full(structure.unit_count, self.missing))


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
        if len(set(self.texts)) != len(self.texts):
            raise EncodingError(f"encoding 'words': {len(self.texts)} texts are given, some of them twice")

    @property
    def size(self) -> int:
        """Number of values, and of the rows of a learned table."""
        return 1 + len(self.texts)

    def fit(self, structures: Sequence[Structure]) -> Words:
        return replace(self, texts=tuple(sorted({text for s in structures for text in s.unit_texts})))

    def many(self, structures: Sequence[Structure]) -> Column:
        if not self.texts and structures:
            raise self.error(structures[0], f"no text is known, so all words would be equal; {FIT}")
        units = np.array([each.unit_count for each in structures], dtype=np.int64)
        texts = chain.from_iterable(each.unit_texts for each in structures)
        numbers = np.fromiter(map(self._numbers.get, texts, repeat(0)), dtype=np.int64, count=int(units.sum()))
        return Column.of_units(units, numbers)

    @computed
    def _numbers(self) -> dict[str, int]:
        return {text: 1 + i for i, text in enumerate(self.texts)}

"""BPE dropout: a word is split otherwise each time (Provilkov et al. 2020)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structpe.data.drawn import Drawn
from structpe.data.parts import columns
from structpe.data.prepare import Example, Preparer
from structpe.data.vocabulary import UNKNOWN
from structpe.encodings.base import Encoding
from structpe.structure import Structure

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["Merges", "Resplit", "Unit"]


class Unit(NamedTuple):
    """A subword unit: its text as the vocabulary writes it, and its id."""

    text: str
    id: int


class Merges:
    """The splits of a byte-level BPE vocabulary in which each merge is left out with probability p.

    A word begins as its bytes. In each round, every pair of neighbours that may be merged is left out with probability
    p, and of those that remain the pair that was learned first is merged, the leftmost of equals. A round in which none
    remains is the last. (Provilkov et al. 2020, algorithm 1.) p = 0 gives the tokenizer's own split, p = 1 the bytes.

    The library ``tokenizers`` draws from the same distribution (``BPE(dropout=p)``), but its random numbers cannot be
    seeded, so that a training could not be repeated; hence this class.

    Args:
        tokenizer: of :func:`structpe.data.vocabulary.train_vocabulary`. Units that were added to it stay whole.
        dropout: p.
    """

    def __init__(self, tokenizer: Tokenizer, dropout: float) -> None:
        self.tokenizer, self.dropout = tokenizer, dropout
        merges = json.loads(tokenizer.to_str())["model"]["merges"]
        self._rank = {(first, second): rank for rank, (first, second) in enumerate(merges)}
        self._id = tokenizer.get_vocab(with_added_tokens=False)
        self._whole = frozenset(tokenizer.get_added_tokens_decoder())

    def units(self, text: str, random: Random) -> list[Unit]:
        """A split of a text.

        Args:
            text: normalised and cut into words by the tokenizer.
            random: of it numbers are drawn.
        """
        given = self.tokenizer.encode(text, add_special_tokens=False)
        found: list[Unit] = []
        for _, word in groupby(
            zip(given.word_ids, map(Unit, given.tokens, given.ids), strict=True), lambda each: each[0]
        ):
            units = [unit for _, unit in word]
            if units[0].id in self._whole:
                found += units
            else:
                found += (Unit(part, self._id[part]) for part in self._parts("".join(u.text for u in units), random))
        return found

    def _parts(self, word: str, random: Random) -> list[str]:
        parts = list(word)
        while (place := self._merged(parts, random)) is not None:
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        return parts

    def _merged(self, parts: Sequence[str], random: Random) -> int | None:
        """Where a pair is merged in a round; None if nowhere."""
        possible = sorted((self._rank[pair], i) for i, pair in enumerate(pairwise(parts)) if pair in self._rank)
        return next((i for _, i in possible if random.random() >= self.dropout), None)


class Resplit(Drawn[Example]):
    """Training examples whose graphs and texts are split otherwise in each epoch.

    A split follows from the seed, the epoch and the number of the example. One of more units than
    ``prepare.longest_source`` or ``prepare.longest_target`` is not taken; the tokenizer's own is.

    Args:
        examples: in the tokenizer's own split, with texts.
        preparer: which has made them; its configuration has p.
        encodings: those of the position models.
        seed: of the splits.
    """

    def __init__(
        self, examples: Sequence[Example], preparer: Preparer, encodings: Sequence[Encoding], seed: int
    ) -> None:
        self.examples, self.preparer, self.encodings, self.seed = examples, preparer, tuple(encodings), seed
        self._merges = Merges(preparer.tokenizer, preparer.config.bpe_dropout)
        self._unknown = Unit(UNKNOWN, preparer.tokenizer.get_vocab()[UNKNOWN])

    def __len__(self) -> int:
        return len(self.examples)

    def of(self, epoch: int, numbers: Sequence[int]) -> list[Example]:
        """The examples of these numbers; encodings are computed for their new units."""
        splits = [self._split(self.examples[i], Random(f"{self.seed} {epoch} {i}")) for i in numbers]
        encoded = columns([split.structure for split in splits], self.encodings)
        examples = []
        for place, (i, split) in enumerate(zip(numbers, splits, strict=True)):
            mine = {encoding: column[place] for encoding, column in encoded.items()}
            graph = replace(self.preparer.graph(split.structure, split.ids, mine), target=split.target)
            examples.append(replace(self.examples[i], structure=split.structure, graph=graph))
        return examples

    def _split(self, example: Example, random: Random) -> _Split:
        structure, ids, config = example.structure, example.ids, self.preparer.config
        assert example.text is not None
        owned = [self._merges.units(label, random) or [self._unknown] for label in structure.nodes]
        units = [unit for each in owned for unit in each]
        target = self.preparer.whole([unit.id for unit in self._merges.units(example.text, random)])
        if len(units) <= config.longest_source:
            owner = np.repeat(np.arange(len(owned)), [len(each) for each in owned])
            structure = structure.with_units([unit.text for unit in units], owner)
            ids = np.array([unit.id for unit in units])
        return _Split(structure, ids, target if len(target) <= config.longest_target else example.target)


class _Split(NamedTuple):
    """A graph with its units and their ids, and the ids of a text."""

    structure: Structure
    ids: NDArray[np.int64]
    target: NDArray[np.int64]

"""BPE dropout: a word is split in a different way each time (Provilkov et al. 2020)."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from random import Random
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from structpe.data.chunks import columns
from structpe.data.prepare import UNKNOWN, Preparer, StructureWithText
from structpe.encodings.base import Encoding
from structpe.structure import Structure

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["Merges", "ResampledExamples", "Resplit", "Unit", "of_epoch"]

E = TypeVar("E")


class ResampledExamples(ABC, Generic[E]):
    """Examples that differ from epoch to epoch, and depend only on the epoch and their numbers.

    So a training that resumes after an interruption sees the same examples as without it, for any number of devices and
    of processes that prepare batches.
    """

    @abstractmethod
    def __len__(self) -> int:
        """Number of examples in every epoch."""

    @abstractmethod
    def of(self, epoch: int, numbers: Sequence[int]) -> Sequence[E]:
        """The examples of these numbers in an epoch."""


def of_epoch(examples: Sequence[E] | ResampledExamples[E], epoch: int, numbers: Sequence[int]) -> Sequence[E]:
    """The examples of these numbers in an epoch; those of a sequence are the same in all."""
    return examples.of(epoch, numbers) if isinstance(examples, ResampledExamples) else [examples[i] for i in numbers]


_KEPT = 1 << 16
"""The largest number of texts whose words are cached."""


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
    seeded, and a training could not be repeated.

    Args:
        tokenizer: of :func:`structpe.data.prepare.train_vocabulary`. Units that were added to it stay whole.
        dropout: p.
    """

    def __init__(self, tokenizer: Tokenizer, dropout: float) -> None:
        self.tokenizer, self.dropout = tokenizer, dropout
        merges = json.loads(tokenizer.to_str())["model"]["merges"]
        self._rank = {(first, second): rank for rank, (first, second) in enumerate(merges)}
        self._never = len(merges)
        self._id = tokenizer.get_vocab(with_added_tokens=False)
        self._whole = frozenset(tokenizer.get_added_tokens_decoder())
        self._cut: dict[str, list[str | list[Unit]]] = {}

    def units(self, text: str, random: Random) -> list[Unit]:
        """A split of a text.

        Args:
            text: normalised and cut into words by the tokenizer.
            random: random generator.
        """
        found: list[Unit] = []
        for word in self._words(text):
            if isinstance(word, str):
                found += [Unit(part, self._id[part]) for part in self._parts(word, random)]
            else:
                found += word
        return found

    def _words(self, text: str) -> list[str | list[Unit]]:
        """The words of a text; one that stays whole is its unit. Cached, since each epoch has the same texts."""
        if text not in self._cut:
            if len(self._cut) >= _KEPT:
                self._cut.clear()
            given = self.tokenizer.encode(text, add_special_tokens=False)
            units = zip(given.word_ids, map(Unit, given.tokens, given.ids), strict=True)
            words = [[unit for _, unit in word] for _, word in groupby(units, lambda each: each[0])]
            self._cut[text] = [w if w[0].id in self._whole else "".join(unit.text for unit in w) for w in words]
        return self._cut[text]

    def _parts(self, word: str, random: Random) -> list[str]:
        parts = list(word)
        ranks = [self._rank.get(pair, self._never) for pair in pairwise(parts)]
        while (place := self._merged(ranks, random)) is not None:
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
            del ranks[place]
            for i in range(max(place - 1, 0), min(place + 1, len(ranks))):
                ranks[i] = self._rank.get((parts[i], parts[i + 1]), self._never)
        return parts

    def _merged(self, ranks: Sequence[int], random: Random) -> int | None:
        """The place where a round merges a pair; None if it merges none. ``ranks`` has a rank per pair of neighbours.

        If the first pair is kept, as is likely, no other needs to be drawn.
        """
        first = min(ranks, default=self._never)
        if first == self._never:
            return None
        if random.random() >= self.dropout:
            return ranks.index(first)
        others = sorted((rank, i) for i, rank in enumerate(ranks) if rank < self._never)[1:]
        return next((i for _, i in others if random.random() >= self.dropout), None)


class Resplit(ResampledExamples[StructureWithText]):
    """Training examples whose graphs and texts are split in a different way in each epoch.

    A split depends on the seed, the epoch and the number of the example. If it has more units than
    ``prepare.longest_source`` or ``prepare.longest_target``, the tokenizer's own split is used.

    Args:
        examples: in the tokenizer's own split, with texts.
        preparer: the one that made them; its configuration has p.
        encodings: those of the position models.
        seed: of the splits.
    """

    def __init__(
        self, examples: Sequence[StructureWithText], preparer: Preparer, encodings: Sequence[Encoding], seed: int
    ) -> None:
        self.examples, self.preparer, self.encodings, self.seed = examples, preparer, tuple(encodings), seed
        self._merges = Merges(preparer.tokenizer, preparer.config.bpe_dropout)
        self._unknown = Unit(UNKNOWN, preparer.tokenizer.get_vocab()[UNKNOWN])

    def __len__(self) -> int:
        return len(self.examples)

    def of(self, epoch: int, numbers: Sequence[int]) -> list[StructureWithText]:
        """The examples of these numbers; encodings are computed for their new units."""
        splits = [self._split(self.examples[i], Random(f"{self.seed} {epoch} {i}")) for i in numbers]
        encoded = columns([split.structure for split in splits], self.encodings)
        examples = []
        for place, (i, split) in enumerate(zip(numbers, splits, strict=True)):
            mine = {encoding: column[place] for encoding, column in encoded.items()}
            graph = replace(self.preparer.graph(split.structure, split.ids, mine), target=split.target)
            examples.append(replace(self.examples[i], structure=split.structure, graph=graph))
        return examples

    def _split(self, example: StructureWithText, random: Random) -> _Split:
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

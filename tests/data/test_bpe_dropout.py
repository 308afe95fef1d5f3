"""BPE dropout draws what its algorithm says, again if asked again, and leaves what is read and written as it is."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import structpe
from structpe.data.bpe_dropout import Merges, Resplit
from structpe.data.prepare import PrepareConfig, Preparer, StructureWithText, train_vocabulary
from structpe.encodings.distance import Distance
from structpe.encodings.order import Order
from structpe.errors import ConfigError
from structpe.formats import Item
from tests.datasets import SAMPLES
from tests.examples import examples

TEXTS = ["the brave sailor followed the dog because he was happy .", "the dog follows the sailors , 1,000 of them"]
VOCABULARY = train_vocabulary(TEXTS * 3, [":ARG0", ":ARG0"], 320)
NONE, SOME, ALL = (Merges(VOCABULARY, dropout) for dropout in (0.0, 0.4, 1.0))


class Said(Random):
    """Numbers that are given."""

    def __init__(self, *numbers: float) -> None:
        super().__init__()
        self.numbers = list(numbers)

    def random(self) -> float:
        return self.numbers.pop(0)


def parts(merges: Merges, text: str, random: Random) -> list[str]:
    return [unit.text for unit in merges.units(text, random)]


def letters(merges: list[tuple[str, str]]) -> Tokenizer:
    """A tokenizer of words of a, b and c."""
    units = ["<unk>", "a", "b", "c", *("".join(pair) for pair in merges)]
    tokenizer = Tokenizer(models.BPE(vocab={unit: i for i, unit in enumerate(units)}, merges=merges))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Whitespace(), decoders.Fuse()
    return tokenizer


def test_words_of_few_texts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("structpe.data.bpe_dropout._KEPT", 2)
    merges = Merges(VOCABULARY, 0.0)
    for text in ("the dog", "the sailor", "a dog", "the dog"):
        assert [unit.text for unit in merges.units(text, Random(0))] == VOCABULARY.encode(text).tokens
        assert len(merges._cut) <= 2


def test_a_split_by_hand() -> None:
    """Pairs are asked in the order in which they were learned, from left to right; below p they are left out."""
    merges = Merges(letters([("a", "b"), ("b", "c"), ("ab", "c")]), 0.5)
    # abab: the first (a, b) is left out, the second merged; then the first is asked again, and merged.
    assert parts(merges, "abab", Said(0.1, 0.9, 0.9)) == ["ab", "ab"]
    # abc: (a, b) is left out, so that (b, c) is merged, after which no pair is left.
    assert parts(merges, "abc", Said(0.1, 0.9)) == ["a", "bc"]
    assert parts(merges, "abc", Said(0.5, 0.49)) == ["ab", "c"]
    assert parts(merges, "abc", Said(0.0, 0.0)) == ["a", "b", "c"]


@examples(50)
@given(st.one_of(st.text(max_size=30), st.sampled_from([*TEXTS, "x :ARG0 y", ":ARG0", "<s> ok", ""])), st.integers())
def test_without_dropout_it_is_the_tokenizer_and_with_all_of_it_bytes(text: str, seed: int) -> None:
    given_units = VOCABULARY.encode(text, add_special_tokens=False)
    units = NONE.units(text, Random(seed))
    assert [unit.id for unit in units] == given_units.ids
    assert [unit.text for unit in units] == given_units.tokens
    some = SOME.units(text, Random(seed))
    assert VOCABULARY.decode([unit.id for unit in some]) == VOCABULARY.decode(given_units.ids)
    added = VOCABULARY.get_added_tokens_decoder()
    assert all(len(unit.text) == 1 or unit.id in added for unit in ALL.units(text, Random(seed)))


def test_splits_are_as_frequent_as_those_of_the_library() -> None:
    """Which draws by itself, and cannot be told its random numbers: chance is 0.02 +- 0.004 of 12,000 draws."""
    library, many = Tokenizer.from_str(VOCABULARY.to_str()), 12_000
    library.model.dropout = 0.3
    theirs = Counter(tuple(library.encode("followed", add_special_tokens=False).tokens) for _ in range(many))
    merges, random = Merges(VOCABULARY, 0.3), Random(1)
    ours = Counter(tuple(parts(merges, "followed", random)) for _ in range(many))
    assert len(ours) > 5
    assert sum(abs(ours[split] - theirs[split]) for split in ours | theirs) / (2 * many) < 0.045


@pytest.fixture(scope="module")
def items() -> list[Item]:
    return list(structpe.read(SAMPLES / "amr_sample" / "train.txt"))[:20]


ENCODINGS = (Order(), Distance())


def prepared(items: list[Item], **options: object) -> tuple[Preparer, list[StructureWithText]]:
    preparer = Preparer.fit(items, replace(PrepareConfig(vocabulary=500, bpe_dropout=0.3), **options))
    return preparer, preparer.examples(items, ENCODINGS, every_text=True)


@pytest.mark.parametrize("graph", ["plain", "levi", "linear"])
def test_only_units_differ(items: list[Item], graph: str) -> None:
    preparer, examples = prepared(items, graph=graph)
    splits = set()
    for example, drawn in zip(examples, Resplit(examples, preparer, ENCODINGS, 1).of(0, range(20)), strict=True):
        structure = drawn.structure
        assert (structure.nodes, structure.relations, drawn.texts) == (
            example.structure.nodes,
            example.structure.relations,
            example.texts,
        )
        for node in range(structure.size):
            mine = [preparer.text(part.ids[part.structure.unit_owner == node]) for part in (example, drawn)]
            assert mine[0] == mine[1]
        assert preparer.text(drawn.target[1:-1]) == preparer.text(example.target[1:-1]) == example.text
        assert [drawn.target[0], drawn.target[-1]] == [preparer.first, preparer.last]
        assert structure.unit_texts == tuple(preparer.tokenizer.id_to_token(unit) for unit in drawn.ids)
        order, distance = (drawn.graph.encoded[encoding] for encoding in ENCODINGS)
        assert order.values.tolist() == Order().one(structure).values.tolist()
        np.testing.assert_array_equal(distance.pairs(), Distance().one(structure).pairs())
        splits.add((len(drawn.ids) > len(example.ids), len(drawn.target) > len(example.target)))
    assert (True, True) in splits


def test_each_epoch_has_its_own_and_always_the_same(items: list[Item]) -> None:
    preparer, examples = prepared(items)

    def split(seed: int, epoch: int, numbers: list[int]) -> list[tuple[list[int], list[int]]]:
        sent = pickle.dumps(Resplit(examples, preparer, ENCODINGS, seed))  # to a process that makes batches
        drawn = pickle.loads(sent).of(epoch, numbers)
        return [(each.ids.tolist(), each.target.tolist()) for each in drawn]

    whole = split(1, 0, list(range(20)))
    assert split(1, 0, [7, 3]) == [whole[7], whole[3]]
    for other in (split(1, 1, list(range(20))), split(2, 0, list(range(20)))):
        assert sum(one != another for one, another in zip(whole, other, strict=True)) > 15


def test_what_became_too_long_is_not_taken(items: list[Item]) -> None:
    _, examples = prepared(items)
    longest = {"longest_source": max(e.size for e in examples), "longest_target": max(len(e.target) for e in examples)}
    preparer, examples = prepared(items, **longest, bpe_dropout=0.9)
    drawn = Resplit(examples, preparer, ENCODINGS, 1).of(0, range(len(examples)))
    assert max(each.size for each in drawn) <= longest["longest_source"]
    assert max(len(each.target) for each in drawn) <= longest["longest_target"]
    kept = [new.ids is old.ids and new.target is old.target for new, old in zip(drawn, examples, strict=True)]
    assert 0 < sum(kept) < len(examples)


def test_a_probability_is_one() -> None:
    with pytest.raises(ConfigError, match=r"^prepare\.bpe_dropout is 1\.0; it must be 0 or more and below 1$"):
        PrepareConfig(bpe_dropout=1.0)

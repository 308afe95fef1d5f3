"""BLEU against its formula, and references of differing number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pytest

from structpe.errors import ConfigError
from structpe.tasks.graph_to_text.scores import score

TEXTS = ["the boy wants to go home now", "a dog runs in the old town", "she sang a song"]
REFERENCES = [
    ["the boy wants to go home at once", "the boy would like to go home now", "he wants to go"],
    ["the dog runs in the old town"],
    ["she sang a short song", "a song was sung by her"],
]


def bleu(texts: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """exp(min(0, 1 - r/c)) times the geometric mean of clipped precisions; r sums the nearest, then shorter, length."""
    matched, total = [0] * 4, [0] * 4
    for text, those in zip(texts, references, strict=True):
        for n in range(1, 5):
            mine, most = grams(text, n), Counter[tuple[str, ...]]()
            for reference in those:
                most |= grams(reference, n)
            matched[n - 1] += sum((mine & most).values())
            total[n - 1] += sum(mine.values())
    c = sum(len(text.split()) for text in texts)
    r = sum(
        min((abs(len(x.split()) - len(text.split())), len(x.split())) for x in those)[1]
        for text, those in zip(texts, references, strict=True)
    )
    precision = sum(math.log(m / t) for m, t in zip(matched, total, strict=True)) / 4
    return 100 * math.exp(min(0.0, 1 - r / c) + precision)


def grams(text: str, n: int) -> Counter[tuple[str, ...]]:
    words = text.split()
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def test_bleu_is_its_formula_with_as_many_references_as_each_item_has() -> None:
    assert score(TEXTS, REFERENCES).bleu == pytest.approx(bleu(TEXTS, REFERENCES), abs=1e-9)


def test_an_item_is_scored_by_its_own_references_only() -> None:
    """An empty text in place of a missing reference would be one of length 0, nearest to a short text."""
    short = ["a b c d", "x"]
    own = score(short, [["a b c d"], ["x y z w", "x y z w v"]])
    assert own.bleu == pytest.approx(bleu(short, [["a b c d"], ["x y z w", "x y z w v"]]), abs=1e-9)
    assert score(short, [["a b c d", ""], ["x y z w", "x y z w v"]]).bleu == own.bleu
    assert score(short, [["x y z w", "x y z w v"], ["x y z w"]]).bleu < own.bleu
    assert score(short[::-1], [["x y z w", ""], ["a b c d"]]).bleu > score(short[::-1], [["x y z w"], ["a b c d"]]).bleu


def test_signatures_say_how_it_was_computed() -> None:
    varied, single = score(TEXTS, REFERENCES), score(TEXTS, [those[:1] for those in REFERENCES])
    assert varied.bleu_signature.startswith("nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert single.chrf_signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:")
    assert str(varied).splitlines()[0] == f"BLEU   {varied.bleu:.2f}  {varied.bleu_signature}"
    assert str(varied).splitlines()[1] == f"chrF++ {varied.chrf:.2f}  {varied.chrf_signature}"


def test_the_same_text_is_perfect_and_case_counts_unless_told_otherwise() -> None:
    perfect = score(TEXTS, [[text] for text in TEXTS])
    assert (perfect.bleu, perfect.chrf) == (pytest.approx(100), pytest.approx(100))
    loud = [[text.upper()] for text in TEXTS]
    assert score(TEXTS, loud).bleu == 0
    assert score(TEXTS, loud, lowercase=True).bleu == pytest.approx(100)
    assert "case:lc" in score(TEXTS, loud, lowercase=True).bleu_signature


def test_what_cannot_be_scored() -> None:
    with pytest.raises(ConfigError, match="2 texts for 1 items; give one text per item, one at least"):
        score(["a", "b"], [["a"]])
    with pytest.raises(ConfigError, match="0 texts for 0 items"):
        score([], [])
    with pytest.raises(ConfigError, match="item 2 has no reference text to be scored against; leave it out"):
        score(["a", "b"], [["a"], []])

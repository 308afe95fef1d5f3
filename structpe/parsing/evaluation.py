"""Scores of a parser on gold trees."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from structpe.parsing.gold import as_doc, documents, gold_items
from structpe.parsing.models import ParsingError
from structpe.readers.base import Item

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

__all__ = ["Scores", "evaluate"]

AT_ONCE = 1000
"""Number of sentences in memory."""


@dataclass(frozen=True)
class Scores:
    """Percentages of words whose head (UAS), head and relation (LAS), and tag (TAG) are right.

    For ``las``, ``uas`` and ``tag``, words and sentences are given; all words count, including punctuation, with whole
    relations such as ``nsubj:pass``. ``spacy_...`` are from spaCy's scorer on running text, ten sentences at a time:
    words and sentences are predicted, punctuation does not count, and LAS and UAS are F-scores.

    Attributes:
        sentences: number of sentences.
        words: number of words.
        las: head and relation.
        uas: head.
        tag: XPOS, or UPOS for a word without it.
        spacy_las: head and relation, on running text.
        spacy_uas: head, on running text.
        spacy_tag: tag, on running text.
        spacy_words: words that spaCy's tokenizer found.
    """

    sentences: int
    words: int
    las: float
    uas: float
    tag: float
    spacy_las: float
    spacy_uas: float
    spacy_tag: float
    spacy_words: float


def evaluate(files: Iterable[str | Path], nlp: Language) -> Scores:
    """Score a parser on CoNLL-U files.

    Raises:
        ReadError, StructureError: a file is missing or bad.
        ParsingError: there is no sentence.
    """
    from spacy.training import Example

    items = gold_items(files)
    sentences, counts, examples = 0, [0, 0, 0, 0], list[Example]()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="spacy|thinc")  # about words that spaCy's tokenizer does not find
        while some := list(islice(items, AT_ONCE)):
            sentences += len(some)
            for right in _right(some, nlp):
                counts = [a + b for a, b in zip(counts, right, strict=True)]
            examples += [Example(nlp.make_doc(doc.text), doc) for doc in documents(some, nlp.vocab)]
        if not sentences:
            raise ParsingError("there is no sentence to score a parser on; give files with some")
        found = nlp.evaluate(examples)
    percent = [100 * count / counts[0] for count in counts[1:]]
    of_spacy = [100 * float(found[name] or 0) for name in ("dep_las", "dep_uas", "tag_acc", "token_acc")]
    return Scores(sentences, counts[0], *percent, *of_spacy)


def _right(items: Sequence[Item], nlp: Language) -> Iterator[list[int]]:
    """For each sentence: the numbers of words, and of those with the right head and relation, head, and tag."""
    gold = [as_doc(item, nlp.vocab) for item in items]
    for right, given in zip(gold, nlp.pipe(map(_bare, gold)), strict=True):
        pairs = list(zip(right, given, strict=True))
        heads = [one.head.i == other.head.i for one, other in pairs]
        both = [same and one.dep_ == other.dep_ for same, (one, other) in zip(heads, pairs, strict=True)]
        yield [len(pairs), sum(both), sum(heads), sum(one.tag_ == other.tag_ for one, other in pairs)]


def _bare(doc: Doc) -> Doc:
    """A copy with words and white space only, as one sentence."""
    from spacy.tokens import Doc as SpacyDoc

    starts: list[bool | int | None] = [place == 0 for place in range(len(doc))]
    spaces = [bool(word.whitespace_) for word in doc]
    return SpacyDoc(doc.vocab, words=[word.text for word in doc], spaces=spaces, sent_starts=starts)

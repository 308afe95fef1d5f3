"""Scores of a parser on gold trees."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from structpe.formats.reading import Item
from structpe.parsing.gold import as_doc, documents, gold_items
from structpe.parsing.models import ParsingError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

__all__ = ["Scores", "evaluate"]

TAGS = {"upos": "pos_", "xpos": "tag_"}
"""Where spaCy's words have each kind of tags."""
AT_ONCE = 1000
"""Number of sentences in memory."""


@dataclass(frozen=True)
class Scores:
    """Percentages of words whose head (UAS), head and relation (LAS), and tags (UPOS, XPOS) are right.

    For ``las``, ``uas``, ``upos`` and ``xpos``, words and sentences are given; all words count, including punctuation,
    with whole relations such as ``nsubj:pass``; of tags, the words that have one in the files. ``spacy_...`` are from
    spaCy's scorer on running text, ten sentences at a time: words and sentences are predicted, punctuation does not
    count, and LAS and UAS are F-scores. Scores of tags are None if the files have none, or the parser predicts none.

    Attributes:
        sentences: number of sentences.
        words: number of words.
        las: head and relation.
        uas: head.
        upos: universal tag.
        xpos: tag of the treebank.
        spacy_las: head and relation, on running text.
        spacy_uas: head, on running text.
        spacy_upos: universal tag, on running text.
        spacy_xpos: tag of the treebank, on running text.
        spacy_words: words that spaCy's tokenizer found.
    """

    sentences: int
    words: int
    las: float
    uas: float
    upos: float | None
    xpos: float | None
    spacy_las: float
    spacy_uas: float
    spacy_upos: float | None
    spacy_xpos: float | None
    spacy_words: float


def evaluate(files: Iterable[str | Path], nlp: Language) -> Scores:
    """Score a parser on CoNLL-U files.

    Raises:
        ReadError, StructureError: a file is missing or bad.
        ParsingError: there is no sentence.
    """
    from spacy.training import Example

    items = gold_items(files)
    sentences, counts, examples = 0, Counter[str](), list[Example]()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="spacy|thinc")  # about words that spaCy's tokenizer does not find
        while some := list(islice(items, AT_ONCE)):
            sentences += len(some)
            counts.update(_right(some, nlp))
            examples += [Example(nlp.make_doc(doc.text), doc) for doc in documents(some, nlp.vocab)]
        if not sentences:
            raise ParsingError("there is no sentence to score a parser on; give files with some")
        found = nlp.evaluate(examples)
    trees = {name: 100 * counts[name] / counts["words"] for name in ("las", "uas")}
    trees |= {f"spacy_{name}": 100 * float(found[f"dep_{name}"] or 0) for name in ("las", "uas")}
    tags: dict[str, float | None] = dict.fromkeys([*TAGS, *(f"spacy_{name}" for name in TAGS)])
    for name, score in (("upos", "pos_acc"), ("xpos", "tag_acc")):
        if counts[f"guessed {name}"]:
            tags[name] = 100 * counts[name] / counts[f"with {name}"]
            tags[f"spacy_{name}"] = None if found.get(score) is None else 100 * float(found[score])
    trees["spacy_words"] = 100 * float(found["token_acc"] or 0)
    return Scores(sentences, counts["words"], **{**trees, **tags})  # type: ignore[arg-type]  # only tags may be None


def _right(items: Sequence[Item], nlp: Language) -> Iterator[str]:
    """What is right, or counts, of each word: a name for each."""
    gold = [as_doc(item, nlp.vocab) for item in items]
    for right, given in zip(gold, nlp.pipe(map(_bare, gold)), strict=True):
        for one, other in zip(right, given, strict=True):
            yield "words"
            if one.head.i == other.head.i:
                yield "uas"
                if one.dep_ == other.dep_:
                    yield "las"
            for name, attribute in TAGS.items():
                tag, guessed = getattr(one, attribute), getattr(other, attribute)
                if tag:
                    yield f"with {name}"
                    if guessed:
                        yield f"guessed {name}"
                    if guessed == tag:
                        yield name


def _bare(doc: Doc) -> Doc:
    """A copy with words and white space only, as one sentence."""
    from spacy.tokens import Doc as SpacyDoc

    starts: list[bool | int | None] = [place == 0 for place in range(len(doc))]
    spaces = [bool(word.whitespace_) for word in doc]
    return SpacyDoc(doc.vocab, words=[word.text for word in doc], spaces=spaces, sent_starts=starts)

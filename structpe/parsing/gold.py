"""Sentences of CoNLL-U files with their trees, as documents of spaCy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from structpe.converters.spacy import to_doc
from structpe.readers.base import Item, stream

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

__all__ = ["as_doc", "documents", "gold_items"]

TOGETHER = 10
"""Sentences per document; with several, the parser learns where a sentence ends (advice of spaCy's manual)."""


def gold_items(files: Iterable[str | Path]) -> Iterator[Item]:
    """The sentences of CoNLL-U files or folders.

    Raises:
        ReadError: a file is missing or invalid.
        StructureError: a sentence is not a tree.
    """
    for file in files:
        yield from stream(file, "conllu")


def as_doc(item: Item, vocab: Vocab) -> Doc:
    """A sentence with heads, relations and tags: XPOS, or UPOS for a word without it, as in spaCy's converter."""
    pairs = zip(item.metadata["xpos"], item.metadata["upos"], strict=True)
    tags = [upos if xpos == "_" else xpos for xpos, upos in pairs]
    return to_doc(item.structure, vocab, item.metadata["space_after"], tags)


def documents(items: Iterable[Item], vocab: Vocab, together: int = TOGETHER) -> Iterator[Doc]:
    """Documents of ``together`` sentences each, in the order of the file; the last may have fewer."""
    from spacy.tokens import Doc

    sentences = iter(items)
    while group := [as_doc(item, vocab) for item in islice(sentences, together)]:
        yield _joined(group, Doc)


def _joined(group: Sequence[Doc], kind: type[Doc]) -> Doc:
    whole = kind.from_docs(list(group))
    assert whole is not None, "the group is not empty"
    return whole

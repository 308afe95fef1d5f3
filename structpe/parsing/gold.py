"""Sentences of CoNLL-U files with their trees, as documents of spaCy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from structpe.formats.reading import Item, stream
from structpe.formats.spacy import to_doc
from structpe.formats.text import shown
from structpe.parsing.formats import NOTHING, UPOS
from structpe.parsing.models import ParsingError

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

__all__ = ["TAGGERS", "as_doc", "documents", "gold_items"]

TOGETHER = 10
"""Sentences per document; with several, the parser learns where a sentence ends (advice of spaCy's manual)."""


TAGGERS = {"morphologizer": "upos", "tagger": "xpos"}
"""The component of a pipeline that predicts each kind of tags."""


def gold_items(files: Iterable[str | Path]) -> Iterator[Item]:
    """The sentences of CoNLL-U files or folders.

    Raises:
        ReadError: a file is missing or invalid.
        StructureError: a sentence is not a tree.
        ParsingError: a tag in UPOS is none of Universal Dependencies.
    """
    for file in files:
        for item in stream(file, "conllu"):
            if wrong := [tag for tag in item.metadata["upos"] if tag not in (*UPOS, NOTHING)]:
                raise ParsingError(
                    f"the tag {shown(wrong[0])} in UPOS is none of Universal Dependencies, which has "
                    f"{', '.join(UPOS)}; correct it, or write _ for no tag"
                ).at(item.structure.name)
            yield item


def as_doc(item: Item, vocab: Vocab) -> Doc:
    """A sentence with heads, relations, and the tags that it has: UPOS as ``pos_``, XPOS as ``tag_``."""
    upos, xpos = (["" if tag == NOTHING else tag for tag in item.metadata[name]] for name in ("upos", "xpos"))
    return to_doc(item.structure, vocab, item.metadata["space_after"], xpos, upos)


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

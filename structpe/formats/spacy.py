"""spaCy: a dependency tree per sentence of a parsed ``Doc`` or ``Span``, and back.

| structure | Doc |
|---|---|
| nodes, order | the words of a sentence as they are read, without tokens of whitespace |
| edges, relations | from head to dependent, ``dep_``; that of the root, ``ROOT``, is dropped |
| feature ``span`` | start and end of each word in the text of the sentence |

A token of whitespace is not a word: its dependents become those of its head. If it is the root, its first dependent
becomes the root and the head of the others. A structure has no tags, since they are not arrays; :func:`sentences`
yields items with tags. A Doc has only words, tags, heads and single spaces, so the order (nodes are the words in their
order), other features, units and the name are lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from structpe.errors import needing
from structpe.formats.converting import ConversionError, add_converter
from structpe.formats.reading import Item
from structpe.formats.trees import tree
from structpe.structure import Structure

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token
    from spacy.vocab import Vocab

__all__ = ["sentences", "spaces_between", "to_doc"]

ROOT = "ROOT"
"""spaCy's relation of the root."""


def sentences(doc: Doc | Span, whitespace: bool = False) -> Iterator[Item]:
    """The sentences of a parsed Doc, or those in a Span, as items.

    Args:
        doc: with heads and sentences, from any pipeline with a parser or created with them.
        whitespace: whether tokens of whitespace are nodes too.

    Yields:
        Items with the structure; ``metadata`` has ``text``, the sentence, to which the feature ``span`` refers;
        ``start``, its offset in the whole text; the tags ``upos`` and ``xpos`` (spaCy's ``pos_`` and ``tag_``), and
        ``space_after``, as in the reader ``conllu``. Sentences of whitespace only are left out.

    Raises:
        ConversionError: the Doc has words but no heads.
        StructureError: a sentence, or its part in a Span, has several roots.
    """
    if not len(doc):
        return
    if not _has_heads(doc):
        raise ConversionError(
            "the Doc has no dependency parse; make it with a pipeline that has a parser, such as "
            "spacy.load('en_core_web_sm') or one of 'structpe parse --train', or give Doc(..., heads=..., deps=...)"
        )
    number = 0
    for _, group in groupby(doc, key=lambda token: token.sent.start):
        tokens = list(group)
        words = [token for token in tokens if whitespace or not token.text.isspace()]
        if words:
            number += 1
            yield _item(tokens, words, number)


@cache
def _vocabulary() -> Vocab:
    """Made once: it takes longer than the Doc, and ``Doc.from_docs`` joins only Docs with the same vocabulary."""
    from spacy import blank  # an empty Vocab would not know white space

    return blank("xx").vocab


def to_doc(
    structure: Structure,
    vocab: Vocab | None = None,
    spaces: Sequence[bool] | None = None,
    tags: Sequence[str] | None = None,
    pos: Sequence[str] | None = None,
) -> Doc:
    """A rooted tree as a Doc of one sentence; ``Doc.from_docs`` joins several.

    Args:
        structure: a tree; words are in its order, or by number without an order.
        vocab: of the pipeline that will process the Doc; by default one without a language, the same for all Docs.
        spaces: whether a space follows each node; by default from the feature ``span``, or, without it, between all
            words.
        tags: ``tag_`` of each node.
        pos: ``pos_`` of each node, tags of Universal Dependencies.

    Raises:
        ConversionError: edges are undirected; a word is empty, which spaCy forbids; the number of spaces, tags or pos
            is wrong; spaCy does not have a ``pos``.
        StructureError: the structure is not a tree.
    """
    with needing("spacy", "trees"):
        from spacy.tokens import Doc as SpacyDoc
    _check(structure, {"spaces": spaces, "tags": tags, "pos": pos})
    reading = structure.reading
    place = np.argsort(reading)
    parents = structure.parents()
    relations = dict(zip(structure.edges[:, 1].tolist(), structure.relations, strict=False))
    columns: Any = {name: [c[node] for node in reading] for name, c in (("tags", tags), ("pos", pos)) if c is not None}
    return SpacyDoc(
        _vocabulary() if vocab is None else vocab,
        words=[structure.nodes[node] for node in reading],
        spaces=spaces_between(structure) if spaces is None else [bool(spaces[node]) for node in reading],
        heads=[int(place[node if parents[node] < 0 else parents[node]]) for node in reading],
        deps=[ROOT if parents[node] < 0 else relations.get(int(node), "dep") or "dep" for node in reading],
        **columns,
    )


def _read(doc: Any, whitespace: bool = False) -> Iterator[Structure]:
    for item in sentences(doc, whitespace):
        yield item.structure


def _has_heads(doc: Doc | Span) -> bool:
    """Whether words have heads. A word without one is its own head, like a root, but has no relation."""
    whole: Any = doc[0].doc
    return bool(whole.has_annotation("DEP") or (whole.has_annotation("HEAD") and any(t.head.i != t.i for t in whole)))


def _item(tokens: Sequence[Token], words: Sequence[Token], number: int) -> Item:
    number_of = {token.i: place for place, token in enumerate(words, 1)}
    heads = _heads(tokens, number_of)
    start = int(words[0].idx)
    structure = tree([word.text for word in words], heads, [word.dep_ for word in words], name=f"sentence {number}")
    span = np.array([(word.idx - start, word.idx - start + len(word.text)) for word in words], dtype=np.int64)
    text = str(words[0].doc[words[0].i : words[-1].i + 1].text)
    metadata = {
        "text": text,
        "start": start,
        "upos": tuple(word.pos_ or "_" for word in words),
        "xpos": tuple(word.tag_ or "_" for word in words),
        "space_after": tuple(_space_follows(word) for word in words),
    }
    return Item(replace(structure, features={"span": span}), (text,), str(number), metadata)


def _space_follows(word: Token) -> bool:
    """Whether whitespace follows, which is a separate token if it is more than one space."""
    last = word.i + 1 == len(word.doc)
    return bool(word.whitespace_) or (not last and word.doc[word.i + 1].text.isspace())


def _heads(tokens: Sequence[Token], number_of: dict[int, int]) -> list[int]:
    """Number of the head of each word; 0 for the root, or if the head is not among the tokens."""
    inside = {token.i for token in tokens}
    heads, adopted = [], 0
    for token in tokens:
        if token.i not in number_of:
            continue
        head = token
        above = token.head
        while above.i != head.i and above.i in inside and above.i not in number_of:
            head, above = above, above.head
        if above.i in number_of and above.i != token.i:
            heads.append(number_of[above.i])
        elif head.i == token.i:  # its own head, or one outside
            heads.append(0)
        else:  # below a root of whitespace
            heads.append(adopted)
            adopted = adopted or number_of[token.i]
    return heads


def _check(structure: Structure, columns: dict[str, Sequence[Any] | None]) -> None:
    from spacy.parts_of_speech import IDS

    if not structure.directed:
        raise ConversionError("the edges are undirected; those of a Doc lead from head to dependent")
    for name, column in columns.items():
        if column is not None and len(column) != structure.size:
            raise ConversionError(f"{len(column)} {name} for {structure.size} nodes; give one per node")
    for node, label in enumerate(structure.nodes):
        if not label:
            raise ConversionError(f"node {node} has an empty label, and spaCy allows no empty word; give it a text")
        if any("\ud800" <= character <= "\udfff" for character in label):
            raise ConversionError(f"node {node} ({label!r}) has half of a character (a surrogate); correct its text")
    if wrong := [tag for tag in columns["pos"] or () if tag not in IDS]:
        known = ", ".join(filter(None, IDS))
        raise ConversionError(f"spaCy has no pos {wrong[0]!r}; give one of {known}, or '' for none")


def spaces_between(structure: Structure) -> list[bool]:
    """Whether a space follows each word, as they are read: by the feature ``span``; without it, all but the last."""
    last = [False]
    if "span" not in structure.features:
        return [True] * (structure.size - 1) + last
    span = np.asarray(structure.features["span"])[structure.reading]
    known = span[:, 0] >= 0
    gap = span[1:, 0] > span[:-1, 1]
    return [bool(space) for space in np.where(known[1:] & known[:-1], gap, True)] + last


add_converter("spacy", "spacy.Doc spacy.Span", "a parsed Doc, one tree per sentence, and back", _read, to_doc)

"""Sentences with heads, relations and tags, which a parser learns from and is scored on: CoNLL-U, or from Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from structpe.errors import listed, located
from structpe.formats import Item, as_items
from structpe.formats.conllu import spans_with_ranges
from structpe.formats.reading import stream
from structpe.formats.spacy import sentences, spaces_between
from structpe.formats.text import shown
from structpe.parsing.formats import NOTHING, UPOS
from structpe.parsing.models import ParsingError

__all__ = ["gold_items", "names_files"]

TAGS = ("upos", "xpos")
"""The tags of words: universal ones, and those of the treebank."""


def names_files(given: Any) -> bool:
    """Whether sentences are given as a path, or as a list of paths."""
    return isinstance(given, (str, Path)) or (
        isinstance(given, (list, tuple)) and all(isinstance(each, (str, Path)) for each in given)
    )


def gold_items(given: Any) -> Iterator[Item]:
    """Sentences, each with ``upos``, ``xpos`` and ``space_after`` of its words in its metadata.

    Args:
        given: CoNLL-U files or folders; or items of the reader ``conllu``, mappings with ``tokens``, ``heads`` and
            maybe ``labels``, ``upos``, ``xpos`` and ``text`` or ``space_after``, trees of networkx, parsed documents
            of spaCy, and whatever :func:`structpe.formats.as_item` takes. Words without a tag have None, "" or "_".

    Raises:
        ReadError: a file is missing or invalid, or something is not an item; the error names it.
        StructureError: a sentence is not a tree.
        ParsingError: a tag in UPOS is not one of Universal Dependencies, there are not as many tags as words, or the
            words are not in the text.
    """
    if names_files(given):
        paths = [given] if isinstance(given, (str, Path)) else given
        found: Iterable[Item] = (item for file in paths for item in stream(file, "conllu"))
    else:
        found = map(_complete, as_items(_sentences(given)))
    for item in found:
        if wrong := [tag for tag in item.metadata["upos"] if tag not in (*UPOS, NOTHING)]:
            raise ParsingError(
                f"the tag {shown(str(wrong[0]))} in UPOS is none of Universal Dependencies, which has "
                f"{', '.join(UPOS)}; correct it, or write _ for no tag"
            ).at(item.structure.name or f"item {item.id!r}")
        yield item


def _sentences(given: Any) -> Any:
    """The same, with the sentences of each document of spaCy in its place, which have tags."""
    from spacy.tokens import Doc, Span

    if isinstance(given, (Doc, Span)):
        return list(sentences(given))
    if isinstance(given, (Sequence, Iterator)) and not isinstance(given, (str, bytes)):
        return [part for each in given for part in (sentences(each) if isinstance(each, (Doc, Span)) else [each])]
    return given


def _complete(item: Item) -> Item:
    """The sentence with tags and blanks, those that it has, or none."""
    structure, given = item.structure, item.metadata
    with located(structure.name or f"item {item.id!r}"):
        structure.parents()  # raises an error if it is not a tree
        tags = {name: tuple(tag or NOTHING for tag in _column(given, name, structure.size)) for name in TAGS}
        if given.get("space_after") is not None:
            after = tuple(bool(each) for each in _column(given, "space_after", structure.size))
            return replace(item, metadata={**given, **tags, "space_after": after})
        text = given.get("text", item.texts[0] if item.texts else None)
        if "span" not in structure.features and text is not None:
            words = [structure.nodes[node] for node in structure.reading]
            spans = spans_with_ranges(words, (), str(text))
            if (spans < 0).any():
                lost = listed(shown(word) for word, (start, _) in zip(words, spans, strict=True) if start < 0)
                raise ParsingError(f"these words are not in the text, one after another: {lost}; leave the text out")
            spans[structure.reading] = spans.copy()
            structure = replace(structure, features={**structure.features, "span": spans})
        spaces = [False] * structure.size
        for node, blank in zip(structure.reading, spaces_between(structure), strict=True):
            spaces[node] = blank
        return replace(item, metadata={**given, **tags, "space_after": tuple(spaces)})


def _column(given: Mapping[str, Any], name: str, size: int) -> Sequence[Any]:
    """A value for each word; nothing without such a column."""
    column = given.get(name)
    if column is None:
        return [NOTHING] * size
    if not isinstance(column, (list, tuple)) or len(column) != size:
        raise ParsingError(f"{name} is {repr(column)[:80]}; give a list with one for each of {size} words")
    if name in TAGS and (wrong := [tag for tag in column if not isinstance(tag, (str, type(None)))]):
        raise ParsingError(f"{name} has {wrong[0]!r}; give the names of tags, and None or '_' for no tag")
    return column

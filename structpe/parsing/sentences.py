"""Parsed sentences: trees with the positions of their words and subwords."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from structpe.encodings.graphs import ranks
from structpe.encodings.trees import Depth, SPRRelative, branches, left_child_right_sibling
from structpe.formats.reading import Item
from structpe.formats.spacy import sentences
from structpe.parsing.models import DEFAULT, ParsingError, load_parser
from structpe.structure import Ids, Structure
from structpe.transforms.units import AnyTokenizer, Rule, TokenizedStructure, as_tokenizer, expand, split

if TYPE_CHECKING:
    from spacy.language import Language

__all__ = ["Options", "ParsePositions", "Parsed", "parse", "parse_texts", "places", "with_places"]

LONGEST = 5000
"""The largest number of words of a sentence, since relative positions are a number for each pair of words."""


@dataclass(frozen=True, eq=False)
class ParsePositions:
    """The positions of the units of a tree.

    Attributes:
        depth: (u,) absolute SPR: the number of edges to the root. The encoding ``depth``.
        relative: (u, u) relative SPR: rel(t, s) of each pair. The encoding ``spr-relative``.
        branches: TPE: the index of each unit among its siblings, that of its parent, and so on up to the root, from 0;
            empty for the root. The encoding ``branch-path`` has these as one-hot vectors.
    """

    depth: Ids
    relative: Ids
    branches: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Options:
    """What to compute for a sentence.

    Attributes:
        tokenizer: any tokenizer for ``structpe.transforms.split``; None for no subwords.
        expand: positions of subwords, a rule of ``structpe.transforms.expand``.
        binary: whether TPE is that of the binary tree (left child, right sibling), in which branches are 0 or 1.
    """

    tokenizer: AnyTokenizer = None
    expand: Rule = "all"
    binary: bool = False


@dataclass(frozen=True, eq=False)
class Parsed:
    """A sentence, its tree, and the positions of its words and subwords.

    Attributes:
        item: the structure; its metadata has the text and tags.
        words: positions of the words, which are the nodes.
        split: the words split by the tokenizer, and a report of losses; None without a tokenizer. A word may have no
            subword, since two words may be one subword.
        subwords: positions of the units of the split; None without a tokenizer.
    """

    item: Item
    words: ParsePositions
    split: TokenizedStructure | None = None
    subwords: ParsePositions | None = None

    @property
    def structure(self) -> Structure:
        """The tree; with a tokenizer its nodes own subwords."""
        return self.item.structure if self.split is None else self.split.structure


def parse(text: str, model: str | Path | Language = DEFAULT, options: Options = Options()) -> list[Parsed]:
    """The sentences of a text as trees, with structural positions (SPR) and tree positions (TPE).

    Args:
        text: one sentence or several.
        model: a pipeline of spaCy that has a parser: its name, its folder or itself.
        options: whether to compute subwords, and their positions.

    Raises:
        ParsingError: the pipeline does not exist; a text or sentence is too long.
        StructPEError: the tokenizer is invalid or truncates.
    """
    nlp = load_parser(model) if isinstance(model, str | Path) else model
    return list(parse_texts([text], nlp, options))


def parse_texts(texts: Iterable[str], nlp: Language, options: Options = Options()) -> Iterator[Parsed]:
    """The sentences of many texts one by one, with the id TEXT.SENTENCE, both from 1; see :func:`parse`."""
    if options.tokenizer is not None:
        options = Options(as_tokenizer(options.tokenizer), options.expand, options.binary)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="spacy|thinc")  # about problems inside the libraries
        for number, doc in enumerate(nlp.pipe(_checked(texts, nlp.max_length)), 1):
            for item in sentences(doc):
                yield with_places(replace(item, id=f"{number}.{item.id}"), options)


def with_places(item: Item, options: Options = Options()) -> Parsed:
    """A sentence with its positions, from any tree and its text.

    Args:
        item: its structure is a tree in reading order; for subwords its metadata has the ``text``.
        options: what to compute.

    Raises:
        ParsingError: the sentence is too long.
        StructPEError: it is not a tree; the tokenizer is invalid or truncates.
    """
    structure = item.structure
    if structure.size > LONGEST:
        raise ParsingError(
            f"sentence {item.id} has {structure.size} words, but {LONGEST} are allowed at most, as positions of pairs "
            "fill the memory; give shorter sentences"
        )
    words = places(structure, options.binary)
    if options.tokenizer is None:
        return Parsed(item, words)
    made = split(structure, options.tokenizer, item.metadata["text"], missing="none", blanks="keep")
    return Parsed(item, words, made, places(expand(made.structure, options.expand), options.binary))


def places(structure: Structure, binary: bool = False) -> ParsePositions:
    """The positions of the units of a tree.

    Raises:
        EncodingError: it is not a tree whose edges lead away from its root, or has no reading order.
    """
    relative, depth = SPRRelative().one(structure).pairs(), Depth().one(structure).values
    parents, order = structure.parents(), ranks(structure)
    parents, branch = left_child_right_sibling(parents, order) if binary else (parents, branches(parents, order))
    return ParsePositions(depth, relative, tuple(_up(node, parents, branch) for node in structure.unit_owner.tolist()))


def _up(node: int, parents: Ids, branch: Ids) -> tuple[int, ...]:
    """The branches from a node up to the root."""
    found = []
    while parents[node] >= 0:
        found.append(int(branch[node]))
        node = int(parents[node])
    return tuple(found)


def _checked(texts: Iterable[str], longest: int) -> Iterator[str]:
    for number, text in enumerate(texts, 1):
        if len(text) > longest:
            raise ParsingError(
                f"text {number} has {len(text)} characters, {longest} at most; divide it, blank lines do so in a file"
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ParsingError(
                f"text {number} has {text[error.start]!r} at character {error.start + 1}, which is no character but a "
                "byte that was not UTF-8, or half of a pair; decode the text as what it is first"
            ) from None
        yield text

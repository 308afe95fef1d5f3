"""Parsed sentences as JSON, CoNLL-U and tables of text.

The JSON document is an object with ``format`` ("structpe.parse"), ``version`` (1), ``model``, and ``sentences``, a list
of objects:

* ``id``: TEXT.SENTENCE, both from 1; ``text``: the sentence; ``start``: its offset in the text;
* ``words``: a list of ``form``; ``start`` and ``end`` in the sentence; ``upos`` and ``xpos``, "_" if missing; ``head``:
  the index of its head in this list, from 0, null for the root; ``relation``; ``depth``: absolute SPR; ``branches``:
  TPE, the index of the word among its siblings, that of its head, and so on up to the root, each from 0;
* ``relative``: relative SPR: a row of integers for each word;
* ``subwords``: null without a tokenizer, else an object with ``expand``, the rule; ``units``, a list of ``text``,
  ``id``, ``word`` (its index in ``words``), ``start`` and ``end`` in the sentence (-1 for a token that is not in the
  text), ``depth`` and ``branches``; ``relative``, a row for each unit; ``alignment``, the losses, as in
  :class:`structpe.transforms.units.Alignment`, and ``complete``, whether there are none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from structpe.parsing.sentences import Parsed

__all__ = ["COLUMNS", "as_conllu", "as_json", "as_tsv", "record", "rows"]

COLUMNS = ("sentence", "word", "form", "head", "relation", "upos", "xpos", "depth", "branches", "relative")
"""Columns of the table of words; that of subwords also has ``subword`` and ``id`` after the form of the word."""

NOTHING = "_"
"""What stands for a tag that a word does not have."""
UPOS = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART"),
    *("PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
)
"""The tags of Universal Dependencies."""

BREAKS = re.compile(r"[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


def record(parsed: Parsed, expand: str = "all") -> dict[str, Any]:
    """A sentence as plain data for JSON.

    Args:
        parsed: the sentence.
        expand: the rule for positions of its subwords.
    """
    metadata = parsed.item.metadata
    heads, relations = _tree(parsed)
    columns: dict[str, Sequence[Any]] = {
        "form": parsed.structure.nodes,
        **_ends(parsed.structure.features["span"].tolist()),
        "upos": metadata["upos"],
        "xpos": metadata["xpos"],
        "head": heads,
        "relation": relations,
        "depth": parsed.words.depth.tolist(),
        "branches": parsed.words.branches,
    }
    return {
        "id": parsed.item.id,
        "text": metadata["text"],
        "start": metadata.get("start", 0),
        "words": _objects(columns),
        "relative": parsed.words.relative.tolist(),
        "subwords": _subwords(parsed, expand),
    }


def as_json(sentences: Iterable[Parsed], model: str, expand: str = "all") -> Iterator[str]:
    """The document, piece by piece; see the docstring of this module."""
    head = {"format": "structpe.parse", "version": 1, "model": model}
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "sentences": ['
    between = "\n"
    for parsed in sentences:
        yield between + json.dumps(record(parsed, expand), ensure_ascii=False)
        between = ",\n"
    yield "\n]}\n"


def as_conllu(sentences: Iterable[Parsed]) -> Iterator[str]:
    """CoNLL-U, sentence by sentence; MISC has ``Depth`` and ``Branches``, the latter from the word to the root.

    As Universal Dependencies ask for, white space in the text is single spaces, and tags of spaCy that are not in
    UPOS, such as ``SPACE``, are left out.
    """
    for parsed in sentences:
        metadata = parsed.item.metadata
        yield f"# sent_id = {parsed.item.id}\n# text = {' '.join(metadata['text'].split())}\n"
        heads, relations = _tree(parsed)
        for place, form in enumerate(parsed.structure.nodes):
            head = heads[place]
            misc = [] if metadata["space_after"][place] else ["SpaceAfter=No"]
            misc += [f"Depth={parsed.words.depth[place]}", f"Branches={_steps(parsed.words.branches[place])}"]
            upos, xpos = metadata["upos"][place], metadata["xpos"][place]
            tags = [upos if upos in UPOS else NOTHING, xpos]
            cells = [place + 1, form, "_", *tags, "_", 0 if head is None else head + 1, relations[place], "_"]
            yield "\t".join(map(str, [*cells, "|".join(misc)])) + "\n"
        yield "\n"


def as_tsv(sentences: Iterable[Parsed], subwords: bool = False) -> Iterator[str]:
    """A line for each word, or for each subword, separated by tabs; ``relative`` is a list separated by commas."""
    columns = [*COLUMNS]
    columns[3:3] = ["subword", "id"] if subwords else []
    yield "\t".join(columns) + "\n"
    for parsed in sentences:
        for row in rows(parsed, subwords):
            yield "\t".join(BREAKS.sub(" ", cell) for cell in row) + "\n"


def rows(parsed: Parsed, subwords: bool = False) -> Iterator[list[str]]:
    """The cells of :func:`as_tsv`; words count from 1, and the head of the root is 0."""
    metadata, structure = parsed.item.metadata, parsed.structure
    heads, relations = _tree(parsed)
    whose, at = (structure.unit_owner, parsed.subwords) if subwords else (range(structure.size), parsed.words)
    assert at is not None, "subwords need a tokenizer"
    for place, word in enumerate(map(int, whose)):
        head = heads[word]
        unit = [structure.unit_texts[place], str(parsed.split.ids[place])] if subwords and parsed.split else []
        yield [
            parsed.item.id,
            str(word + 1),
            structure.nodes[word],
            *unit,
            str(0 if head is None else head + 1),
            relations[word],
            metadata["upos"][word],
            metadata["xpos"][word],
            str(at.depth[place]),
            _steps(at.branches[place]),
            ",".join(map(str, at.relative[place].tolist())),
        ]


def _subwords(parsed: Parsed, expand: str) -> dict[str, Any] | None:
    if parsed.split is None or parsed.subwords is None:
        return None
    columns: dict[str, Sequence[Any]] = {
        "text": parsed.split.structure.unit_texts,
        "id": parsed.split.ids.tolist(),
        "word": parsed.split.structure.unit_owner.tolist(),
        **_ends(parsed.split.spans.tolist()),
        "depth": parsed.subwords.depth.tolist(),
        "branches": parsed.subwords.branches,
    }
    return {
        "expand": expand,
        "units": _objects(columns),
        "relative": parsed.subwords.relative.tolist(),
        "alignment": parsed.split.report.plain(),
    }


def _tree(parsed: Parsed) -> tuple[list[int | None], list[str]]:
    """Head and relation of each word; None and ``root`` of the root."""
    structure = parsed.structure
    relations = ["root"] * structure.size
    for edge, child in enumerate(structure.edges[:, 1].tolist()):
        relations[child] = structure.relation(edge) or "_"
    return [None if parent < 0 else int(parent) for parent in structure.parents()], relations


def _ends(spans: Sequence[Sequence[int]]) -> dict[str, Sequence[int]]:
    return {"start": [start for start, _ in spans], "end": [end for _, end in spans]}


def _objects(columns: dict[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _steps(branches: Sequence[int]) -> str:
    return ".".join(map(str, branches)) or "-"

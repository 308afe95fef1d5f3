"""Structures that are typed or pasted into the app, of bounded size."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from structpe.errors import MissingExtra, ReadError, StructPEError
from structpe.formats import Item, stream, tree
from structpe.formats.reading import choose
from structpe.structure import path

__all__ = ["FORMS", "LETTERS", "NODES", "Pasted", "bounded", "item_of_file", "item_of_text"]

LETTERS, NODES, FARTHEST = 4000, 150, 100_000
"""Largest number of letters of a pasted text, of units of a structure, and of items of a file before the one shown."""
HEAD = re.compile(r"(\d{1,4})(?::(\S+))?")


@dataclass(frozen=True)
class Pasted:
    """A form of pasted texts.

    Attributes:
        label: its name for users.
        help: what is expected.
        sample: a text of this form.
        heads: the heads of the sample, for a sentence.
        suffix: suffix of files of this form; empty if no reader reads it.
        reader: name of the reader.
    """

    label: str
    help: str
    sample: str
    heads: str = ""
    suffix: str = ""
    reader: str = ""


FORMS: dict[str, Pasted] = {
    "sentence": Pasted(
        "a sentence and its parse",
        "Words separated by blanks. Heads are numbers of words from 1, with 0 for the root, each with a relation if "
        "you like. Leave them empty to have the sentence parsed by spaCy.",
        "the keeper lit the lamp at dusk",
        "2:det 3:nsubj 0 5:det 3:obj 7:case 3:obl",
    ),
    "words": Pasted("words in their order", "Words separated by blanks.", "the keeper lit the lamp at dusk"),
    "conllu": Pasted(
        "a parse in CoNLL-U",
        "Ten columns separated by tabs, with a line for each word.",
        "1\tShe\tshe\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tsings\tsing\tVERB\t_\t_\t0\troot\t_\t_\n"
        "3\told\told\tADJ\t_\t_\t4\tamod\t_\t_\n4\tsongs\tsong\tNOUN\t_\t_\t2\tobj\t_\t_\n",
        suffix=".conllu",
        reader="conllu",
    ),
    "penman": Pasted(
        "a meaning graph in PENMAN (AMR)",
        "One graph in parentheses.",
        "(w / want-01\n   :ARG0 (b / boy)\n   :ARG1 (g / go-02\n            :ARG0 b\n            :time (n / night)))",
        suffix=".amr",
        reader="amr",
    ),
    "triples": Pasted(
        "facts as triples",
        "Subject, relation and object separated by tabs or by |, with a line for each fact.",
        "Ada Lovelace | wrote about | Analytical Engine\nCharles Babbage | designed | Analytical Engine\n"
        "Ada Lovelace | born in | London\nCharles Babbage | born in | London",
        suffix=".tsv",
        reader="triples",
    ),
    "smiles": Pasted("a molecule in SMILES", "One molecule.", "CC(=O)Oc1ccccc1C(=O)O", suffix=".smi", reader="smiles"),
}
"""Forms of pasted texts by name."""


def item_of_text(form: str, text: str, heads: str = "", options: Mapping[str, Any] | None = None) -> Item:
    """The structure of a pasted text.

    Args:
        form: a key of ``FORMS``.
        text: the text.
        heads: heads of the words of a sentence; empty to have it parsed.
        options: options of the reader.

    Raises:
        ReadError: there is no such form; the text is empty, too long, or bad.
        StructPEError: the structure is invalid or too large; a parser or a library is not installed.
    """
    if form not in FORMS:
        raise ReadError(f"there is no form {form!r} of texts; choose one of {', '.join(FORMS)}")
    if not text.strip():
        raise ReadError(f"the text is empty; give {FORMS[form].label}")
    if len(text) > LETTERS or len(heads) > LETTERS:
        raise ReadError(
            f"the text has {max(len(text), len(heads)):,} letters, and the app takes {LETTERS:,}; paste a part of it, "
            f"or write it to a file, which 'structpe show' and 'structpe app FILE' read"
        )
    if form == "words":
        return bounded(Item(path(text.split(), name="words")))
    if form == "sentence":
        return bounded(_sentence(text, heads))
    return bounded(_read(FORMS[form], _tabbed(text) if form == "triples" else text, options or {}))


def bounded(item: Item) -> Item:
    """The item, if its structure is not too large for the app.

    Raises:
        ReadError: it is.
    """
    size = max(item.structure.size, item.structure.unit_count)
    if size > NODES:
        raise ReadError(
            f"the structure has {size} nodes or units, and the app shows {NODES}; take a part of it, or draw it by "
            f"'structpe show', which shows 1,000"
        )
    return item


def item_of_file(file: str, index: int, reader: str = "", on_error: str = "raise", **options: Any) -> Item:
    """An item of a file, counted from 0 without those that are skipped.

    Raises:
        ReadError: the file is missing or bad, or has fewer items.
        StructPEError: the structure is invalid or too large.
    """
    if not file.strip():
        raise ReadError("no file is named; give its path")
    if not 0 <= index <= FARTHEST:
        raise ReadError(f"the number of the item is {index}; give one of 0..{FARTHEST:,}")
    chosen = choose(file, reader or None)
    chosen.check(options)
    items = stream(file, chosen.name, (lambda skipped: None) if on_error == "skip" else None, **options)
    found = list(islice(items, index, index + 1))
    if not found:
        raise ReadError(f"there is no item {index}; items are counted from 0, give a smaller number").at(file)
    return bounded(found[0])


def _read(form: Pasted, text: str, options: Mapping[str, Any]) -> Item:
    """The first item of a text, as its reader reads it from a file."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"pasted{form.suffix}"
        file.write_text(text.strip("\n") + "\n\n", encoding="utf-8")
        try:
            return _only(list(islice(stream(file, form.reader, **options), 2)))
        except StructPEError as error:
            error.places = tuple("the text" if place == str(file) else place for place in error.places)
            raise


def _only(items: list[Item]) -> Item:
    if len(items) != 1:
        raise ReadError("the text has no item, or more than one; give one sentence, graph or molecule")
    return items[0]


def _tabbed(text: str) -> str:
    """Triples with tabs between their parts."""
    return "\n".join("\t".join(part.strip() for part in line.split("|")) for line in text.splitlines())


def _sentence(text: str, heads: str) -> Item:
    words = text.split()
    if not heads.strip():
        return _parsed(text)
    found = [HEAD.fullmatch(head) for head in heads.split()]
    if None in found:
        wrong = heads.split()[found.index(None)]
        raise ReadError(f"{wrong!r} is not a head; give the number of a word, or one with a relation such as 3:nsubj")
    pairs = [(int(each[1]), each[2] or "") for each in found if each is not None]
    labels = [label for _, label in pairs]
    return Item(tree(words, [head for head, _ in pairs], labels if any(labels) else None, name="sentence"))


def _parsed(text: str) -> Item:
    """The first sentence of a text, parsed.

    Raises:
        ParsingError: there is no parser; the message says what to do.
    """
    from structpe.parsing import ParsingError, parse

    try:
        return _only([parsed.item for parsed in parse(text)])
    except (ParsingError, MissingExtra) as error:
        raise ParsingError(f"{error}; or type the head of each word, or choose 'words in their order'") from None

"""Texts: PENMAN, trees in brackets, SMILES, graph6, Python, words. ``as_structure(text, kind=...)``.

PENMAN and trees in brackets are recognised by their beginning. Nothing else is guessed: many words are SMILES too.
Files are read with ``structpe.read``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from structpe.formats.amr import graph
from structpe.formats.brackets import constituents
from structpe.formats.converting import ConversionError, add_converter
from structpe.formats.graph6 import graph6
from structpe.formats.python_ast import of_source
from structpe.formats.smiles import Kind, molecule
from structpe.registry import unknown
from structpe.structure import Structure, path

__all__ = ["from_text"]

PENMAN = re.compile(r"\s*(?:#[^\n]*\n\s*)*\(\s*[^\s()/]+\s*/")
KINDS: dict[str, Callable[[str, str], Structure]] = {
    "amr": graph,
    "ptb": lambda text, name: constituents(text, name=name).structure,
    "smiles": molecule,
    "graph6": graph6,
    "python": of_source,
    "tokens": lambda text, name: path(text.split(), name),
}
"""``(text, name)`` -> structure, for each kind of text."""


def from_text(
    text: str, kind: str | None = None, name: str = "", features: Kind = "none", strict: bool = True
) -> Structure:
    """The structure of a text.

    Args:
        text: one graph.
        kind: ``amr`` (PENMAN), ``ptb`` (a tree in brackets), ``smiles``, ``graph6``, ``python`` (the syntax tree of
            source code), or ``tokens`` (words between blanks, as a path graph). None: ``amr`` for a text such as
            ``(b / bark-01)``, ``ptb`` for other texts in parentheses.
        name: where it comes from, for error messages.
        features, strict: for ``smiles``, as in :func:`structpe.formats.smiles.molecule`.

    Raises:
        ConversionError: ``kind`` is unknown, or needed, or does not take an option.
        ReadError: the text is not of this kind.
    """
    if kind is None:
        kind = "amr" if PENMAN.match(text) else "ptb" if text.lstrip().startswith("(") else None
    if kind is None:
        known = ", ".join(f"kind={each!r}" for each in KINDS)
        raise ConversionError(f"a text does not say what it is; give one of {known}; files are read with read()")
    if kind not in KINDS:
        raise ConversionError(unknown("kind of text", kind, list(KINDS)))
    if kind == "smiles":
        return molecule(text, name, features, strict)
    if features != "none" or not strict:
        raise ConversionError(f"features and strict are options of kind='smiles'; the kind is {kind!r}")
    return KINDS[kind](text, name)


add_converter("text", "builtins.str", "texts: PENMAN, brackets, SMILES, graph6, Python, words", from_text)

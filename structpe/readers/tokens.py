"""Plain text as path graphs: a sentence per line, its tokens apart by blanks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from structpe.readers._text import lines, spans
from structpe.readers.base import Item, Outcome, attempt, reader
from structpe.structure import path as path_graph

__all__ = ["tokens"]


@reader("tokens", ".tokens .tok")
def tokens(path: Path) -> Iterator[Outcome]:
    """One sentence per line, tokens apart by blanks: path graphs.

    ``metadata["text"]`` is the line, the feature ``span`` where each token begins and ends in it. A blank line is a
    bad item, not nothing: in a pair of parallel files it would shift all that follows.
    """
    for number, line in lines(path):
        yield attempt(partial(_item, line, number, path.name), line=number)


def _item(line: str, number: int, file: str) -> Item:
    words = line.split()
    structure = path_graph(words, name=f"{file}:{number}")
    structure = replace(structure, features={"span": spans(words, line)})
    return Item(structure, id=str(number), metadata={"text": line})

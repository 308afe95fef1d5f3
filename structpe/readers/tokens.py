"""Plain text as path graphs: a sentence per line, with tokens separated by spaces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from structpe.readers._text import lines, spans
from structpe.readers.base import Item, Yielded, attempt, reader
from structpe.structure import path as path_graph

__all__ = ["tokens"]


@reader("tokens", ".tokens .tok")
def tokens(path: Path) -> Iterator[Yielded]:
    """One sentence per line, tokens separated by spaces: path graphs.

    ``metadata["text"]`` is the line, the feature ``span`` has start and end of each token in it. A blank line is a bad
    item and not ignored, because in parallel files it would shift all following lines.
    """
    for number, line in lines(path):
        yield attempt(partial(_item, line, number, path.name), line=number)


def _item(line: str, number: int, file: str) -> Item:
    words = line.split()
    structure = path_graph(words, name=f"{file}:{number}")
    structure = replace(structure, features={"span": spans(words, line)})
    return Item(structure, id=str(number), metadata={"text": line})

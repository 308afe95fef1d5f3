"""COGS: sentences, and their meaning as a logical form (Kim and Linzen 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from structpe.errors import ReadError
from structpe.readers._text import cut_off, ended_lines, longer, shown
from structpe.readers.base import Item, Yielded, attempt, reader
from structpe.structure import path as path_graph

__all__ = ["cogs"]


@reader("cogs", ".cogs", also=".tsv")
def cogs(path: Path) -> Iterator[Yielded]:
    """COGS, a sentence, its logical form and its type per line, separated by tabs: path graphs of the words.

    ``texts`` has the logical form, ``metadata["type"]`` the type of the example: ``in_distribution``, ``primitive``, or
    one of 21 kinds of generalization.
    """
    seen: set[str] = set()
    for number, line, ended in ended_lines(path):
        if line.strip():
            kind = line.rpartition("\t")[2]
            if not ended and (cut := cut_off(line, number, longer(kind, seen))) is not None:
                yield cut
                return
            seen.add(kind)
            yield attempt(partial(_item, line, number, path.name), line=number)


def _item(line: str, number: int, file: str) -> Item:
    columns = [column.strip() for column in line.split("\t")]
    if len(columns) != 3 or not all(columns):
        raise ReadError(f"the line is {shown(line)}; give a sentence, a logical form and a type, separated by tabs")
    sentence, form, kind = columns
    return Item(path_graph(sentence.split(), name=f"{file}:{number}"), (form,), str(number), {"type": kind})

"""Plain text as path graphs: a sentence per line, with tokens separated by spaces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.formats.text import lines, shown, spans
from structpe.formats.writing import WriteError, writer
from structpe.structure import path as path_graph

__all__ = ["tokens", "tokens_text"]


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


@writer("tokens", ".tokens .tok")
def tokens_text(item: Item) -> str:
    """The labels of a path graph separated by spaces, as one line.

    If ``metadata["text"]``, from the reader ``tokens``, is a line with the same tokens, it is written instead.

    Raises:
        WriteError: the structure is undirected, or not a path from its first token to its last; or a label is empty or
            contains white space.
    """
    structure = item.structure
    if not structure.directed:
        raise WriteError("the edges are undirected, but those of tokens lead to the next one; give directed=True")
    steps = np.stack([structure.reading[:-1], structure.reading[1:]], axis=1)
    if sorted(structure.edges.tolist()) != sorted(steps.tolist()):
        raise WriteError(
            "the structure is not a path along its order, as a line of tokens needs; structpe.transforms.linearise "
            "makes a path from any graph"
        )
    words = [structure.nodes[node] for node in structure.reading]
    for word in words:
        if word.split() != [word]:
            raise WriteError(f"the token {shown(word)} is empty or has white space; tokens are separated by spaces")
    text = item.metadata.get("text")
    if isinstance(text, str) and text.split() == words and "\n" not in text and text == text.rstrip("\r"):
        return f"{text}\n"
    return " ".join(words) + "\n"

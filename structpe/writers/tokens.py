"""Plain text: the tokens of a sequence separated by spaces, a sentence per line."""

from __future__ import annotations

import numpy as np

from structpe.readers._text import shown
from structpe.readers.base import Item
from structpe.writers.base import WriteError, writer

__all__ = ["tokens"]


@writer("tokens", ".tokens .tok")
def tokens(item: Item) -> str:
    """The labels of a path graph separated by spaces, as one line.

    If ``metadata["text"]``, from the reader ``tokens``, is a line with the same tokens, it is written instead.

    Raises:
        WriteError: the structure is not a path from its first token to its last, or a label is empty or contains white
            space.
    """
    structure = item.structure
    reading = np.arange(structure.size) if structure.order is None else np.argsort(structure.order)
    steps = np.stack([reading[:-1], reading[1:]], axis=1)
    if sorted(structure.edges.tolist()) != sorted(steps.tolist()):
        raise WriteError(
            "the structure is not a path along its order, as a line of tokens needs; structpe.transforms.linearise "
            "makes a path from any graph"
        )
    words = [structure.nodes[node] for node in reading]
    for word in words:
        if word.split() != [word]:
            raise WriteError(f"the token {shown(word)} is empty or has white space; tokens are separated by spaces")
    text = item.metadata.get("text")
    if isinstance(text, str) and text.split() == words and "\n" not in text and text == text.rstrip("\r"):
        return f"{text}\n"
    return " ".join(words) + "\n"

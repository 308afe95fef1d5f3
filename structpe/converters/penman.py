"""penman: graphs and trees of the penman library to structures and back, as with the reader and the writer ``amr``.

Relations get a colon, the name is the ``id``. Units and other features than the reader's are lost; so is the order, as
nodes are in the order of the text.
"""

from __future__ import annotations

from typing import Any

from structpe.converters.base import ConversionError, add_converter
from structpe.readers.amr import graph
from structpe.readers.base import Item
from structpe.structure import Structure
from structpe.writers.base import as_text

__all__ = ["from_penman", "to_penman"]


def from_penman(thing: Any) -> Structure:
    """The structure of a ``penman.Graph`` or ``penman.Tree``, named by its ``id``.

    Raises:
        ConversionError: the graph cannot be written as a tree, as it is not connected or has no top.
        ReadError: a node has no concept, or another error of the reader ``amr``.
    """
    import penman

    name = str(thing.metadata.get("id") or "")
    try:
        text = penman.format(thing) if isinstance(thing, penman.Tree) else penman.encode(thing)
    except (penman.PenmanError, TypeError) as error:
        raise ConversionError(f"penman cannot write the {type(thing).__name__}: {error}; correct it first") from None
    return graph(text, name)


def to_penman(structure: Structure) -> Any:
    """The structure as a ``penman.Graph``.

    Raises:
        WriteError: it cannot be written as PENMAN: see the writer ``amr``.
        MissingExtra: penman is not installed.
    """
    text = as_text(Item(structure, id=structure.name), "amr")
    import penman

    return penman.decode(text)


add_converter("penman", "penman.Graph penman.Tree", "graphs of meaning, and back", from_penman, to_penman)

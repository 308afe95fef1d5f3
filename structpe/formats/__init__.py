"""Formats: files and objects of other libraries, to structures and back. A file reads, writes and converts a format.

``read("file.amr")`` and ``write(items, "file.amr")`` choose a format by its suffix, ``as_structure(thing)`` by the
class of the thing; ``convert(structure, "networkx")`` is its inverse. Three registries find all formats by name.
"""

from structpe.formats.converting import CONVERTERS, Converter, as_structure, as_structures, convert, each_structure
from structpe.formats.dgl import import_dgl
from structpe.formats.items import as_item, as_items
from structpe.formats.reading import READERS, Item, Reader, Reading, Skipped, attempt, read, reader, stream
from structpe.formats.text import blocks, shown
from structpe.formats.trees import tree
from structpe.formats.triples import triples
from structpe.formats.writing import WRITERS, Writer, as_text, write

__all__ = [
    "CONVERTERS",
    "READERS",
    "WRITERS",
    "Converter",
    "Item",
    "Reader",
    "Reading",
    "Skipped",
    "Writer",
    "as_item",
    "as_items",
    "as_structure",
    "as_structures",
    "as_text",
    "attempt",
    "blocks",
    "convert",
    "each_structure",
    "import_dgl",
    "read",
    "reader",
    "shown",
    "stream",
    "tree",
    "triples",
    "write",
]

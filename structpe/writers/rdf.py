"""RDF: a statement per edge, as N-Triples, which are Turtle too."""

from __future__ import annotations

import zlib

from structpe.errors import StructureError
from structpe.readers._rdf_lines import Term
from structpe.readers._statements import statements
from structpe.readers.base import Item
from structpe.writers.base import WriteError, writer

__all__ = ["rdf"]


@writer("rdf", ".nt .nq .ttl")
def rdf(item: Item, base: str | None = None, graphs: bool = False) -> str:
    """N-Triples, a line per edge; N-Quads where each item is a graph of its own.

    Terms are those of the metadata that the reader ``rdf`` gives, or the labels, if these are terms as N-Triples write
    them. Blank nodes of items with other ids are other blank nodes. A statement that stands twice is one when it is
    read again; nodes are then numbered as statements mention them.

    Args:
        item: a directed graph.
        base: start of the IRIs that are made of other labels, such as ``http://example.org/``.
        graphs: whether to write the id of the item as the graph of each statement (``.nq``); else all items are one
            graph.

    Raises:
        WriteError: an undirected structure, a node without an edge, a label that is no term where there is no base,
            nodes of one term, or a literal with something to say.
    """
    try:
        found = list(statements(item.structure, item.metadata, base))
    except StructureError as error:
        raise WriteError(error.message).at(*error.places) from None
    named = f" {Term('iri', f'urn:item:{item.id}').notation()}" if graphs else ""
    mark = f"i{zlib.crc32(item.id.encode('utf-8', 'surrogatepass')):08x}"
    return "".join(" ".join(_written(term, mark) for term in statement) + f"{named} .\n" for statement in found)


def _written(term: Term, mark: str) -> str:
    notation = term.notation()
    try:
        notation.encode()
    except UnicodeEncodeError:
        raise WriteError(f"{notation!r} holds half a character, which UTF-8 cannot say; correct it") from None
    return f"_:{mark}{term.text}" if term.kind == "blank" else notation

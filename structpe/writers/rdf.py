"""RDF: a statement per edge, as N-Triples, which are also Turtle."""

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
    """N-Triples, a line per edge; N-Quads if each item is a separate graph.

    Terms are those in the metadata from the reader ``rdf``, or the labels, if these are terms in N-Triples. Blank nodes
    of items with different ids are different. A repeated statement is read again as one, and nodes are then numbered in
    the order of the statements.

    Args:
        item: a directed graph.
        base: prefix of the IRIs for labels that are not terms, such as ``http://example.org/``.
        graphs: whether to write the id of the item as the graph of each statement (``.nq``); otherwise all items are
            one graph.

    Raises:
        WriteError: the structure is undirected, a node has no edge, a label is not a term and there is no base, two
            nodes are the same term, or a literal is a subject.
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
        raise WriteError(f"{notation!r} has a lone surrogate, which cannot be written in UTF-8; correct it") from None
    return f"_:{mark}{term.text}" if term.kind == "blank" else notation

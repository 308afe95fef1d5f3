"""rdflib: graphs of statements to structures and back. A ``Dataset`` becomes a structure per graph.

``as_structure(graph, names="terms")`` labels nodes and edges by whole terms, so that the inverse restores the
statements, with other names of blank nodes. rdflib keeps no order, so statements are sorted. Labels that are not terms
become IRIs with ``base=``. Order, root, units, features and name are lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from structpe.converters.base import ConversionError, add_converter
from structpe.errors import StructureError, needing
from structpe.readers._rdf_lines import Names, Term
from structpe.readers._statements import statements
from structpe.readers.rdf import Literals, graph_of, item_of
from structpe.structure import Structure

if TYPE_CHECKING:
    import rdflib

__all__ = ["from_rdflib", "to_rdflib"]


def from_rdflib(graph: Any, names: Names = "local", literals: Literals = "shared") -> Structure:
    """The structure of an ``rdflib.Graph``: a node per term, an edge per statement, as the reader ``rdf`` makes it.

    Args:
        graph: a graph, or one of a data set.
        names: labels are ``local`` names, ``full`` IRIs, or ``terms`` in N-Triples.
        literals: equal ones are one node (``shared``), each is a separate node (``own``), or left out (``none``).

    Raises:
        ReadError: there is a formula or variable of N3, which are not in RDF.
        StructureError: there is no statement.
    """
    return item_of(graph_of(graph), "", names=names, literals=literals).structure


def to_rdflib(structure: Structure, base: str | None = None) -> rdflib.Graph:
    """The structure as an ``rdflib.Graph``, a statement per edge; name, units and features are lost.

    Args:
        structure: directed, with an edge at each node.
        base: prefix of the IRIs for labels that are not terms in N-Triples.

    Raises:
        ConversionError: the structure cannot be written in RDF.
    """
    with needing("rdflib", "kg"):
        import rdflib
    graph = rdflib.Graph()
    try:
        for statement in statements(structure, {}, base):
            subject, predicate, thing = map(_to_rdflib, statement)
            graph.add((subject, predicate, thing))
    except StructureError as error:
        raise ConversionError(error.message).at(*error.places) from None
    return graph


def _read(graph: Any, names: Names = "local", literals: Literals = "shared") -> Iterator[Structure]:
    import rdflib

    for option, value, known in (
        ("names", names, ("local", "full", "terms")),
        ("literals", literals, ("shared", "own", "none")),
    ):
        if value not in known:
            raise ConversionError(f"{option} is {value!r}; give one of {', '.join(known)}")
    if not isinstance(graph, rdflib.Dataset):
        yield from_rdflib(graph, names, literals)
        return
    for each in graph.graphs():
        if len(each):
            yield item_of(graph_of(each), str(each.identifier), names=names, literals=literals).structure


def _to_rdflib(term: Term) -> Any:
    import rdflib

    if term.kind == "blank":
        return rdflib.BNode(term.text)
    if term.kind == "iri":
        return rdflib.URIRef(term.text)
    datatype = rdflib.URIRef(term.datatype) if term.datatype else None
    return rdflib.Literal(term.text, lang=term.language or None, datatype=datatype, normalize=False)


add_converter("rdflib", "rdflib.Graph", "graphs of statements, and back", _read, to_rdflib)

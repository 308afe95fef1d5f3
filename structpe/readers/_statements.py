"""Statements of RDF from structures: nodes and relations become terms, those from which they were read or new ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from structpe.readers._rdf_lines import Term, term
from structpe.readers._text import shown
from structpe.structure import Structure

__all__ = ["statements"]

ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def statements(
    structure: Structure, metadata: Mapping[str, Any], base: str | None
) -> Iterator[tuple[Term, Term, Term]]:
    """One statement per edge.

    The terms of nodes are ``metadata["terms"]``, those of edges ``metadata["predicates"]``, if the reader has set them
    and there is one for each. Otherwise labels must be terms in N-Triples (``names="terms"``), or, with a base, any
    texts: literals if the feature ``is_literal`` is true, else IRIs of the base and the label.

    Raises:
        StructureError: the structure is undirected, a node has no edge, a label is not a term, two nodes would be the
            same term, or RDF forbids a term in its place.
    """
    if not structure.directed:
        raise structure.error("a statement of RDF leads from subject to object, but the structure is undirected")
    if alone := set(range(structure.size)) - set(np.unique(structure.edges).tolist()):
        node = min(alone)
        raise structure.error(f"node {node} ({structure.nodes[node]!r}) is in no edge; RDF is statements only")
    nodes = _terms(structure, metadata.get("terms"), structure.nodes, base, "node")
    relations = [structure.relation(edge) for edge in range(len(structure.edges))]
    edges = _terms(structure, metadata.get("predicates"), relations, base, "edge")
    _check_different(structure, nodes)
    for edge, (source, target) in enumerate(structure.edges.tolist()):
        if nodes[source].kind == "literal" or edges[edge].kind != "iri":
            what = "begins at a literal" if nodes[source].kind == "literal" else f"is a {edges[edge].kind}"
            raise structure.error(f"edge {edge}, {source} -> {target}, {what}; RDF has no such statement")
        yield nodes[source], edges[edge], nodes[target]


def _terms(
    structure: Structure, given: Sequence[str] | None, labels: Sequence[str], base: str | None, what: str
) -> list[Term]:
    literal = np.asarray(structure.features.get("is_literal", np.zeros(structure.size))).astype(bool)
    found = []
    notations = given if given is not None and len(given) == len(labels) else labels
    for place, (label, notation) in enumerate(zip(labels, notations, strict=True)):
        made = term(notation)
        if made is not None and made.kind == "iri" and notations is labels and not ABSOLUTE.match(made.text):
            made = None  # a text such as <> or <b>, which is invalid in N-Triples
        if made is None and base is not None and label.strip():
            of_node = what == "node" and literal.ndim == 1 and bool(literal[place])
            made = Term("literal", label) if of_node else Term("iri", base + quote(label, safe="!$&'()*+,;=:@~"))
        if made is None:
            raise structure.error(
                f"the label of {what} {place} is {shown(label)}, which is not a term of RDF; read with names='terms', "
                "or give base='http://example.org/' to make IRIs from labels"
            )
        found.append(made)
    return found


def _check_different(structure: Structure, nodes: Sequence[Term]) -> None:
    """Check that nodes are different terms, since they would become one node; literals may be repeated."""
    first: dict[Term, int] = {}
    for node, each in enumerate(nodes):
        if each.kind != "literal" and (other := first.setdefault(each, node)) != node:
            raise structure.error(
                f"nodes {other} and {node} are both {each.notation()}, so they would be one; make their labels differ"
            )

"""Statements of RDF from structures: nodes and relations as the terms they were read from, or that are made of them."""

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


def statements(structure: Structure, said: Mapping[str, Any], base: str | None) -> Iterator[tuple[Term, Term, Term]]:
    """One statement per edge.

    A node is the term that ``said["terms"]`` has for it, an edge that of ``said["predicates"]``, where the reader has
    left them and there is one for each. Otherwise labels must be terms as N-Triples write them (``names="terms"``), or
    with a base any texts: literals where the feature ``is_literal`` says so, else IRIs, the base and the label.

    Raises:
        StructureError: an undirected structure, a node without an edge, a label that is no term, nodes that would be
            the same term, or a term in a place where RDF has none of its kind.
    """
    if not structure.directed:
        raise structure.error("a statement of RDF leads from subject to object; the structure is undirected")
    if alone := set(range(structure.size)) - set(np.unique(structure.edges).tolist()):
        node = min(alone)
        raise structure.error(f"node {node} ({structure.nodes[node]!r}) is in no edge; RDF is statements only")
    nodes = _terms(structure, said.get("terms"), structure.nodes, base, "node")
    relations = [structure.relation(edge) for edge in range(len(structure.edges))]
    edges = _terms(structure, said.get("predicates"), relations, base, "edge")
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
            made = None  # a text such as <> or <b>, which N-Triples have no place for
        if made is None and base is not None and label.strip():
            of_node = what == "node" and literal.ndim == 1 and bool(literal[place])
            made = Term("literal", label) if of_node else Term("iri", base + quote(label, safe="!$&'()*+,;=:@~"))
        if made is None:
            raise structure.error(
                f"the label of {what} {place} is {shown(label)}, which is no term of RDF; read with names='terms', or "
                "give base='http://example.org/' to make IRIs of labels"
            )
        found.append(made)
    return found


def _check_different(structure: Structure, nodes: Sequence[Term]) -> None:
    """Nodes that are the same term would be one node; literals may stand in several places."""
    first: dict[Term, int] = {}
    for node, each in enumerate(nodes):
        if each.kind != "literal" and (other := first.setdefault(each, node)) != node:
            raise structure.error(
                f"nodes {other} and {node} are both {each.notation()}, so they would be one; make their labels differ"
            )

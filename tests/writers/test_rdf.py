"""RDF: what is written is read as the same graph, by this library and by rdflib."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import structpe
from structpe import StructPEError, Structure, as_structure, as_structures, convert
from structpe.formats import Item, as_text, triples
from structpe.formats.writing import WriteError
from tests.same import assert_same

rdflib = pytest.importorskip("rdflib")
compare = pytest.importorskip("rdflib.compare")

LINES = (
    '<http://e.org/Orrin> <http://e.org/partOf> _:b1 .\n_:b1 <http://e.org/name> "Inner\\n\\"Isles\\""@en .\n'
    '<http://e.org/Orrin> <http://e.org/size> "01"^^<http://e.org/metres> .\n'
)
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=5).filter(str.strip)


@pytest.mark.parametrize("suffix", ["nt", "ttl", "nq"])
def test_there_and_back(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "a.nt").write_text(LINES)
    (item,) = structpe.read(tmp_path / "a.nt")
    structpe.write([item], tmp_path / f"b.{suffix}")
    (back,) = structpe.read(tmp_path / f"b.{suffix}")
    assert_same(item.structure, back.structure, without=("name",))
    assert item.metadata == back.metadata
    one, other = (rdflib.Graph().parse(tmp_path / name, format="turtle") for name in ("a.nt", f"b.{suffix}"))
    assert compare.isomorphic(one, other)


@given(st.lists(st.tuples(names, names, names), min_size=1, max_size=6, unique=True))
def test_labels_become_names_with_a_base(facts: list[tuple[str, str, str]]) -> None:
    graph = convert(triples(facts), "rdflib", base="http://e.org/")
    assert len(graph) == len(set(facts))
    text = as_text(triples(facts), "rdf", base="http://e.org/")
    assert compare.isomorphic(graph, rdflib.Graph().parse(data=text, format="nt"))


@pytest.mark.parametrize("label", ["<>", "<b>", "<b/c>"])
def test_a_text_in_angle_brackets_is_no_iri_without_a_scheme(label: str) -> None:
    facts = triples([(label, "is", "bold")])
    assert as_text(facts, "rdf", base="http://e.org/").startswith("<http://e.org/%3C")
    with pytest.raises(WriteError, match="which is not a term of RDF; read with names='terms', or give base="):
        as_text(facts, "rdf")


def test_items_are_graphs(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(LINES)
    items = [
        Item(item.structure, id=id, metadata=item.metadata) for item in structpe.read(tmp_path / "a.nt") for id in "ab"
    ]
    structpe.write(items, tmp_path / "b.nq", graphs=True)
    assert [item.id for item in structpe.read(tmp_path / "b.nq", each="graph")] == ["urn:item:a", "urn:item:b"]
    structpe.write(items, tmp_path / "b.nt")
    assert structpe.read(tmp_path / "b.nt")[0].structure.nodes.count("_:b2") == 1


def test_graphs_of_rdflib() -> None:
    graph = rdflib.Graph().parse(data=LINES, format="nt")
    structure = as_structure(graph, names="terms")
    assert compare.isomorphic(graph, convert(structure, "rdflib"))
    assert set(as_structure(graph).nodes) == {"Orrin", "_:b1", 'Inner\n"Isles"', "01"}
    whole = rdflib.Dataset()
    name, *fact = (rdflib.URIRef(f"http://e.org/{letter}") for letter in "garb")
    whole.graph(name).add(tuple(fact))
    assert [(each.name, each.nodes) for each in as_structures(whole)] == [("http://e.org/g", ("a", "b"))]


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        (Structure(("a",), []), r"node 0 \('a'\) is in no edge; RDF is statements only"),
        (
            Structure(("a", "b"), [[0, 1]], ("r",)),
            "the label of node 0 is 'a', which is not a term of RDF; read with names=",
        ),
        (Structure(("<u:a>", "<u:a>"), [[0, 1]], ("<u:r>",)), "nodes 0 and 1 are both <u:a>; make their labels"),
        (Structure(('"a"', "<u:a>"), [[0, 1]], ("<u:r>",)), "edge 0, 0 -> 1, begins at a literal; RDF has no such"),
        (Structure(("<u:a>", "<u:b>"), [[0, 1]], ("_:r",)), "edge 0, 0 -> 1, is a blank; RDF has no such"),
        (Structure(("<u:a>", "<u:b>"), [[0, 1]], ("<u:r>",), directed=False), "the structure is undirected"),
        (Structure(("<u:a>", "<u:b>"), [[0, 1]]), "the label of edge 0 is '', which is not a term of RDF"),
    ],
)
def test_what_rdf_cannot_say_is_named(structure: Structure, message: str) -> None:
    with pytest.raises(StructPEError, match=message):
        as_text(structure, "rdf")
    with pytest.raises(StructPEError, match=message):
        convert(structure, "rdflib")

"""PENMAN: what was read comes back with the same meaning, alignments and comments; any connected graph can be said."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import penman
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from penman import surface
from penman.models.amr import model

import structpe
from structpe import Structure
from structpe.formats import Item, as_text, read, triples, write
from structpe.formats.amr import graph
from structpe.formats.writing import WriteError
from tests.datasets import SAMPLES, corpus
from tests.examples import examples
from tests.same import assert_same
from tests.strategies import digraphs

ALIGNED = """\
# ::id one ::date today
# ::snt The boy wants to hop .
(w / want-01~e.2,3
    :ARG0~e.1 b~e.0
    :ARG1 (h / hop-01~e.5
        :ARG0 (b / boy~e.0,1
            :ARG0-of w~e.2)
        :mod "very \\\\ \\"high\\""~e.7
        :quant 5
        :polarity -~e.4
        :name "A~1"))
"""


def epigraph(decoded: penman.Graph) -> dict[object, list[object]]:
    marks = {t: [m for m in marks if isinstance(m, surface.AlignmentMarker)] for t, marks in decoded.epidata.items()}
    return {triple: own for triple, own in marks.items() if own}


def assert_same_meaning(before: list[penman.Graph], after: list[penman.Graph]) -> None:
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        assert Counter(one.triples) == Counter(other.triples)
        assert (one.top, one.metadata) == (other.top, other.metadata)
        assert epigraph(one) == epigraph(other)


def test_alignments_variables_and_comments_come_back(tmp_path: Path) -> None:
    (tmp_path / "a.amr").write_text(ALIGNED, encoding="utf-8")
    items = read(tmp_path / "a.amr")
    assert items[0].metadata["epigraph"]["mention_alignments"].count("~e.0") == 1
    write(items, tmp_path / "b.amr")
    assert_same_meaning(penman.load(tmp_path / "a.amr", model=model), penman.load(tmp_path / "b.amr", model=model))
    assert (tmp_path / "b.amr").read_text().splitlines()[3:] == ALIGNED.splitlines()[2:]
    assert_same(items[0].structure, read(tmp_path / "b.amr")[0].structure, without=("name",))


def test_a_changed_alignment_or_label_is_written_with_its_change(tmp_path: Path) -> None:
    (tmp_path / "a.amr").write_text("(w / want-01~e.2,3 :ARG0~e.1 (b / boy~e.0))", encoding="utf-8")
    item = read(tmp_path / "a.amr")[0]
    features = {**item.structure.features, "alignment": np.array([-1, 7]), "edge_alignment": np.array([8])}
    changed = replace(item.structure, features=features, nodes=("want-01", "small boy"))
    assert as_text(replace(item, structure=changed), "amr") == '(w / want-01\n    :ARG0~e.8 (b / "small boy"~e.7))\n'


def test_a_changed_graph_is_walked_anew(tmp_path: Path) -> None:
    (tmp_path / "a.amr").write_text("(w / want-01 :ARG0 (b / boy) :ARG1 (g / go-02 :ARG0 b))", encoding="utf-8")
    item = read(tmp_path / "a.amr")[0]
    turned = replace(item.structure, edges=item.structure.edges[:, ::-1])
    assert as_text(replace(item, structure=turned), "amr") == (
        "(w / want-01\n    :ARG0-of (b / boy\n        :ARG0 (g / go-02\n            :ARG1 w)))\n"
    )


def test_a_graph_of_triples_is_walked_from_its_root() -> None:
    facts = triples([("Aarhus Airport", "cityServed", '"Aarhus, DK"'), ("Denmark", "has", "Aarhus Airport")])
    text = as_text(Item(facts, ("Aarhus .",), "Id1"), "amr")
    assert text == (
        '# ::id Id1\n# ::snt Aarhus .\n(a / "Aarhus Airport"\n    :cityServed (a2 / "\\"Aarhus, DK\\"")\n'
        "    :has-of (d / Denmark))\n"
    )
    assert graph(text.partition("\n")[2].partition("\n")[2]).nodes == ("Aarhus Airport", '"Aarhus, DK"', "Denmark")


@given(digraphs(units=False, connected=True), st.data())
@examples(80)
def test_every_connected_graph_comes_back(made: Structure, data: st.DataObject) -> None:
    made = replace(made, root=data.draw(st.integers(0, made.size - 1)), order=None)
    attribute = [
        made.edges.reshape(-1).tolist().count(node) == 1 and node != made.root and data.draw(st.booleans())
        for node in range(made.size)
    ]
    assume(not any(attribute[s] and attribute[t] for s, t in made.edges.tolist()))
    made = replace(made, features={"is_attribute": np.array(attribute)})
    with tempfile.TemporaryDirectory() as folder:
        structpe.write([made], Path(folder) / "a.amr")
        back = structpe.read(Path(folder) / "a.amr")[0].structure
    assert back.nodes[0] == made.nodes[made.root or 0]
    assert dict(zip(back.nodes, back.features["is_attribute"].tolist(), strict=True)) == dict(
        zip(made.nodes, attribute, strict=True)
    )
    relations = [made.relation(edge) for edge in range(len(made.edges))]
    roles = [role if role.startswith(":") else f":{role}" for role in relations]
    assert _named(made, roles) == _named(back, back.relations)


def _named(structure: Structure, relations: object) -> list[tuple[str, str, str]]:
    pairs = zip(structure.edges.tolist(), relations, strict=True)  # type: ignore[call-overload]
    return sorted((structure.nodes[s], r, structure.nodes[t]) for (s, t), r in pairs)


@given(st.text(max_size=10), st.booleans())
@examples(200)
def test_a_label_comes_back_or_is_refused(label: str, attribute: bool) -> None:
    flags = np.array([False, attribute])
    pair = Structure(("x", label), np.array([[0, 1]]), (":r",), root=0, features={"is_attribute": flags})
    try:
        text = as_text(pair, "amr")
    except WriteError as error:
        assert "labels of one line" in error.message or "lone surrogate" in error.message  # noqa: PT017
    else:
        assert graph(text).nodes == ("x", label)


WORDS = st.sampled_from(
    ["::", "::id", "::snt", "std::vector", "a", "#", "(", '"', "::id two", "\t", "\u2028", "=", ":: id"]
)
LINES = st.one_of(
    st.lists(WORDS, max_size=6).map(" ".join),
    st.lists(st.one_of(WORDS, st.text(max_size=4)), max_size=5).map("".join),
)


@given(LINES, LINES, LINES, LINES)
@examples(100)
@example("call Shape::area before drawing .", "x", "", "")
@example("a ::id two ::snt b", "a ::snt b", "::", "v1::2")
def test_a_text_with_colons_comes_back(snt: str, tok: str, zh: str, note: str) -> None:
    """The text of an item, and of every key that has a text; another value comes back or is refused."""
    item = Item(structpe.path(["a", "b"]), (snt,), "one", {"tok": tok, "snt_de": zh, "note": note})
    try:
        text = as_text(item, "amr")
    except WriteError as error:
        assert re.match("'(snt|tok|snt_de|note)': .* cannot be written in a comment", error.message)  # noqa: PT017
        lines = (snt, tok, zh, note)
        assert re.search(r"[\n\r\ud800-\udfff]", "".join(lines)) or re.search(r"(?<!\S)::\S", note)
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.amr").write_text(text, encoding="utf-8", newline="\n")
        (back,) = read(Path(folder) / "a.amr")
    said = {key: value for key, value in back.metadata.items() if key != "epigraph"}
    assert (back.id, back.texts) == ("one", (snt.rstrip(),))
    assert said == {"id": "one", "snt": snt.rstrip(), "tok": tok.rstrip(), "snt_de": zh.rstrip(), "note": note.rstrip()}


def test_what_penman_cannot_hold_is_named() -> None:
    pair = structpe.path(["a", "b"])
    for thing, message in [
        (
            replace(pair, directed=False),
            "the edges are undirected, but roles have a direction; give Structure(directed=True)",
        ),
        (replace(pair, root=None), "the graph has no root to start from; give Structure(root=...)"),
        (
            Structure(("a", "b"), np.zeros((0, 2), int), root=0),
            "no path leads from the root to node 1 ('b'); PENMAN ne",
        ),
        (replace(pair, relations=("nmod:of",)), "the relation 'nmod:of' cannot be a role of PENMAN; take out blanks"),
        (replace(pair, nodes=("a", "b\nc")), "the label of node 1 is 'b\\nc'; PENMAN needs labels of one line"),
        (
            replace(pair, features={"is_attribute": np.array([True, False])}),
            "node 0 ('a') is a constant by 'is_attribute', which has one edge and is not the root; it has 1",
        ),
        (structpe.path([f"n{i}" for i in range(400)]), "the graph is nested more than 300 deep; no reader of PENMAN"),
        (
            Item(pair, metadata={"note": "a ::id b"}),
            "'note': 'a ::id b' cannot be written in a comment of PENMAN",
        ),
        (Item(pair, metadata={"my note": "a"}), "'my note': 'a' cannot be written in a comment"),
    ]:
        with pytest.raises(WriteError) as caught:
            as_text(thing, "amr")
        assert message in str(caught.value)


def test_a_large_graph_takes_no_longer_than_its_size() -> None:
    size = 5_000
    star = np.stack([np.arange(1, size), np.zeros(size - 1, dtype=int)], axis=1)
    text = as_text(Structure(("x",) * size, star, root=0), "amr")
    assert graph(text).size == size


@pytest.mark.parametrize(
    ("file", "step"),
    [
        (SAMPLES / "amr_sample" / "dev.txt", 1),
        pytest.param("little_prince/amr-bank-struct-v3.0.txt", 4, marks=pytest.mark.slow),
        pytest.param("bio/amr-release-dev-bio.txt", 4, marks=pytest.mark.slow),
        ("qald9/qald-9-amr-train.txt", 1),
        pytest.param("massive/massive_amr.txt", 4, marks=pytest.mark.slow),
    ],
)
def test_corpora_come_back_with_the_same_meaning(tmp_path: Path, file: Path | str, step: int) -> None:
    file = file if isinstance(file, Path) else corpus(f"amr/{file}")
    graphs = file.read_text(encoding="utf-8").split("\n\n")[::step]
    (tmp_path / "a.amr").write_text("\n\n".join(graphs), encoding="utf-8")
    write(read(tmp_path / "a.amr"), tmp_path / "b.amr")
    assert_same_meaning(penman.load(tmp_path / "a.amr", model=model), penman.load(tmp_path / "b.amr", model=model))

"""AGENDA: graphs of abstracts."""

from __future__ import annotations

import pytest

from structpe.errors import ReadError
from structpe.formats import read
from tests.datasets import corpus
from tests.together import together

ROW = (
    "Sense with Knowledge .\tword sense ; data ; data\t<task> <material> <material>\t1 0 0 ; 2 1 0 ; 2 1 0\t"
    "we solve <task_0> with <material_2> , < i > and <i> .\t0 2 -1\n"
)


def test_a_row_is_a_graph_with_its_abstract(write):
    (item,) = read(write("a.tsv", ROW), "agenda")
    graph = item.structure
    assert graph.nodes == ("word sense", "data", "data")
    assert graph.edges.tolist() == [[1, 0], [2, 0], [2, 0]]
    assert graph.relations == ("USED-FOR", "CONJUNCTION", "CONJUNCTION")
    assert (graph.root, graph.order.tolist(), graph.name) == (None, [0, 1, 2], "a.tsv:1")
    assert item.texts == ("we solve word sense with data , < i > and <i> .",)
    assert item.metadata == {
        "title": "Sense with Knowledge .",
        "types": ("task", "material", "material"),
        "abstract": "we solve <task_0> with <material_2> , < i > and <i> .",
        "plan": "0 2 -1",
    }


def test_title_and_types_may_be_nodes(write):
    (item,) = read(write("a.tsv", ROW), "agenda", title=True, types="nodes", slots="kept")
    graph = item.structure
    assert graph.nodes == ("Sense with Knowledge .", "word sense", "data", "data", "task", "material")
    facts = [(s, r, t) for (s, t), r in zip(graph.edges.tolist(), graph.relations, strict=True)]
    assert facts == [
        (0, "TITLE-OF", 1),
        (0, "TITLE-OF", 2),
        (0, "TITLE-OF", 3),
        (2, "USED-FOR", 1),
        (3, "CONJUNCTION", 1),
        (3, "CONJUNCTION", 1),
        (1, "TYPE", 4),
        (2, "TYPE", 5),
        (3, "TYPE", 5),
    ]
    assert graph.root == 0
    assert item.texts == (item.metadata["abstract"],)


def test_relations_are_named_by_the_vocabulary_beside_the_file(write):
    write("relations.vocab", "ONE\nTWO\n")
    assert read(write("a.tsv", ROW), "agenda")[0].structure.relations == ("ONE", "TWO", "TWO")


@together(
    "old, new, message",
    [
        (
            "\t0 2 -1",
            "",
            "the line has 5 fields; AGENDA has six separated by tabs: title, entities, types, relations, abstr",
        ),
        ("<task> ", "", "2 types for 3 entities; give one for each, such as <task>"),
        ("data ; data", "data ;  ; data", "entity 2 has no text; entities are separated by ' ; '"),
        ("1 0 0", "1 0 3", "the relation '1 0 3' has entity 3, but entities are 0..2"),
        ("1 0 0", "1 7 0", "the relation '1 7 0' has number 7, but the 7 known are 0..6; see relations.vocab"),
        ("1 0 0", "1 0", "the relation '1 0' is not three numbers: subject, relation, object"),
        ("1 0 0", "1 -1 0", "the relation '1 -1 0' is not three numbers"),
        ("1 0 0", "1 \u00b2 0", "is not three numbers"),
        (
            "<task_0>",
            "<task_9>",
            "the slot <task_9> of the abstract names no entity; write <type_number> of one of the",
        ),
        ("<task_0>", "<method_0>", "the slot <method_0> of the abstract names no entity"),
        ("word sense", "", "entity 0 has no text"),
    ],
)
def test_a_bad_row_is_named_and_skipped(write, old, new, message):
    file = write("a.tsv", ROW + ROW.replace(old, new) + ROW)
    with pytest.raises(ReadError) as caught:
        read(file, "agenda")
    assert "a.tsv: item 2: line 2: " in str(caught.value)
    assert message in str(caught.value)
    reading = read(file, "agenda", on_error="skip")
    assert (len(reading), len(reading.skipped)) == (2, 1)


def test_options_are_checked(write):
    with pytest.raises(ReadError, match="'types' of reader 'agenda' takes one of 'metadata', 'nodes'; given is 'node'"):
        read(write("a.tsv", ROW), "agenda", types="node")
    with pytest.raises(ReadError, match="'slots' of reader 'agenda' takes one of 'filled', 'kept'; given is True"):
        read(write("a.tsv", ROW), "agenda", slots=True)


def test_tsv_files_are_still_triples(write, tmp_path):
    assert read(write("a.tsv", "a\tr\tb\n"))[0].structure.nodes == ("a", "b")
    write("rows/b.tsv", ROW)
    assert len(read(tmp_path / "rows", "agenda")) == 1


# 1,000 rows each, as the files of GraphWriter have.
@pytest.mark.parametrize("part", ["val", "test"])
def test_all_published_rows_are_read(part):
    file = corpus(f"agenda/preprocessed.{part}.tsv")
    items = read(file, "agenda")
    assert len(items) == 1000
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
    for item, row in zip(items, rows, strict=True):
        assert item.structure.nodes == tuple(row[1].split(" ; "))
        assert len(item.structure.edges) == len([fact for fact in row[3].split(";") if fact.strip()])
        assert "<method_" not in item.texts[0]

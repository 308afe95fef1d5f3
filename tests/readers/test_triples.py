from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.errors import ReadError, StructureError
from structpe.readers import read, triples
from tests.corpora import corpus

names = st.sampled_from(["Alan Bean", "NASA", "Wheeler", "1932"])


@given(st.lists(st.tuples(names, names, names), min_size=1, max_size=12))
def test_entities_are_merged_by_text_in_order_of_mention(facts):
    structure = triples(facts)
    mentioned = [entity for s, _, o in facts for entity in (s, o)]
    assert structure.nodes == tuple(dict.fromkeys(mentioned))
    ends = [(structure.nodes[s], structure.nodes[t]) for s, t in structure.edges]
    assert [(s, r, o) for (s, o), r in zip(ends, structure.relations, strict=True)] == facts
    assert structure.nodes[structure.root or 0] == facts[0][0]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ([], "x: the graph has no node"),
        ([("a", "r", "b"), ("a", "r")], "x: triple 2 is ('a', 'r'); give (subject, relation, object), three texts"),
        ([("a", "r", " ")], "x: triple 1 is ('a', 'r', ' ')"),
    ],
)
def test_what_is_no_triple_is_named(facts, message):
    with pytest.raises(StructureError) as caught:
        triples(facts, name="x")
    assert message in str(caught.value)


def test_a_tsv_file_is_one_graph(write):
    (item,) = read(write("a.tsv", "a\tr\tb\n\nb\ts\tc\r\n"))
    assert item.structure.nodes == ("a", "b", "c")
    assert item.structure.relations == ("r", "s")


@pytest.mark.parametrize("line", ["a r b", "a\tr", "a\tr\t", "a\tr\tb\tc"])
def test_a_bad_line_is_named(write, line):
    with pytest.raises(ReadError, match=r"a\.tsv: item 1: line 2: .* is no triple; give subject, relation and object"):
        read(write("a.tsv", f"a\tr\tb\n{line}\n"))


def test_a_bad_line_is_shown_in_short_and_without_control_characters(write):
    with pytest.raises(ReadError) as caught:
        read(write("a.tsv", "\0\x1b[31m" + "x" * 1_000_000 + "\n"))
    shown = "'\\x00\\x1b[31m" + "x" * 74 + "'..."
    assert str(caught.value).endswith(f"line 1: {shown} is no triple; give subject, relation and object, apart by tabs")


def test_a_real_knowledge_graph():
    (item,) = read(corpus("kg/umls/train.txt"), "triples")
    assert (item.structure.size, len(item.structure.edges)) == (135, 5216)

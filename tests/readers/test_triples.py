from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.errors import ConversionError, ReadError, StructureError
from structpe.formats import as_structure, read, triples
from tests.datasets import corpus
from tests.together import together

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
        ([("a", "r", "b"), ("a", "r")], "x: triple 2 is ('a', 'r'); give three texts"),
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
    with pytest.raises(
        ReadError, match=r"a\.tsv: item 1: line 2: .* is not a triple; give subject, relation and object"
    ):
        read(write("a.tsv", f"a\tr\tb\n{line}\n"))


def test_a_bad_line_is_shown_in_short_and_without_control_characters(write):
    with pytest.raises(ReadError) as caught:
        read(write("a.tsv", "\0\x1b[31m" + "x" * 1_000_000 + "\n"))
    shown = "'\\x00\\x1b[31m" + "x" * 74 + "'..."
    assert str(caught.value).endswith(
        f"line 1: {shown} is not a triple; give subject, relation and object, separated by tabs"
    )


def test_a_real_knowledge_graph():
    (item,) = read(corpus("kg/umls/train.txt"), "triples")
    assert (item.structure.size, len(item.structure.edges)) == (135, 5216)


NAMES = {"entity2id.txt": "3\nOrrin\t0\nInner Isles\t1\nSea\t2\n", "relation2id.txt": "1\npartOf\t0\n"}


def test_columns_may_stand_in_another_order(write):
    (item,) = read(write("a.tsv", "a\tb\tr\n"), columns="htr")
    assert (item.structure.nodes, item.structure.relations) == (("a", "b"), ("r",))


def test_numbered_facts_get_their_names(write):
    for name, content in NAMES.items():
        write(f"names/{name}", content)
    path = write("train2id.txt", "2\n0 1 0\n1\t2\t0\n")
    (item,) = read(path, "triples", columns="htr", numbered=True, names="names")
    assert item.structure.nodes == ("Orrin", "Inner Isles", "Sea")
    assert item.structure.relations == ("partOf", "partOf")
    assert read(path, "triples", columns="htr", numbered=True)[0].structure.nodes == ("0", "1", "2")


@together(
    "files, message",
    [
        ({"t.txt": "3\n0 1 0\n"}, "line 1: 3 lines are announced, 1 follow; restore the file"),
        ({"t.txt": "0 1 0\n"}, "line 1: the first line says how many lines follow; it is '0 1 0'"),
        ({"t.txt": ""}, "line 1: the first line says how many lines follow; it is nothing"),
        ({"t.txt": "1\n0 1 x\n"}, "line 2: '0 1 x' is not a triple; give three whole numbers, separated by spaces"),
        ({"t.txt": f"1\n0 1 {'9' * 5000}\n"}, "is not a triple; give three whole numbers"),
        (
            {"t.txt": "1\n0 7 0\n"},
            "line 2: entity 7 is not in entity2id.txt, which has 0..2; restore the original files",
        ),
        (
            {"entity2id.txt": "1\nOrrin 0\n"},
            r"entity2id.txt: line 2: 'Orrin 0' is not a name; give a name, a tab and its num",
        ),
        ({"entity2id.txt": "2\na\t0\nb\t0\n"}, "entity2id.txt: line 3: the number 0 is given twice, to 'b' too"),
        ({"entity2id.txt": "2\na\t0\nb\t2\n"}, "entity2id.txt: line 3: 'b' has the number 2, but the 2 are 0..1; rest"),
        ({"entity2id.txt": "2\na\t0\na\t1\n"}, "entity2id.txt: the numbers 0 and 1 have the same name, 'a'; make them"),
        ({"relation2id.txt": "2\na\t0\n"}, "relation2id.txt: line 1: 2 lines are announced, 1 follow; restore"),
        (
            {"t.txt": "1\n0 0 2\n"},
            "line 2: relation 2 is not in relation2id.txt, which has 0..0; the numbers fit columns='hrt'",
        ),
    ],
)
def test_what_is_wrong_with_numbers_is_said(write, files, message):
    for name, content in {"t.txt": "1\n0 1 0\n", **NAMES, **files}.items():
        path = write(name, content)
    with pytest.raises(ReadError, match=message):
        read(path.parent / "t.txt", "triples", columns="htr", numbered=True, names=".")


def test_numbered_facts_are_in_the_order_of_openke(write):
    path = write("test2id.txt", "2\n5 1 0\n1 5 2\n")
    (item,) = read(path, "triples", numbered=True)
    ends = [(item.structure.nodes[s], item.structure.nodes[t]) for s, t in item.structure.edges]
    assert list(zip(ends, item.structure.relations, strict=True)) == [(("5", "1"), "0"), (("1", "5"), "2")]
    (said,) = read(path, "triples", numbered=True, columns="hrt")
    assert said.structure.relations == ("1", "5")


@pytest.mark.parametrize("columns", ["hrt", "rht", "rth", "trh"])
def test_another_order_must_fit_the_files_beside_it(write, columns):
    for name, content in NAMES.items():
        write(name, content)
    path = write("train2id.txt", "2\n1 1 0\n2 1 0\n")
    assert read(path, "triples", numbered=True)[0].structure.relations == ("0", "0")
    with pytest.raises(
        ReadError, match=r"relation [12] is not in relation2id.txt, which has 0..0; the numbers fit col"
    ):
        read(path, "triples", numbered=True, columns=columns)


def test_options_are_checked(write):
    path = write("a.tsv", "a\tr\tb\n")
    with pytest.raises(ReadError, match=r"columns is 'hrr'; give h, r, t \(head, relation, tail\) in their"):
        read(path, columns="hrr")
    with pytest.raises(ReadError, match="names needs numbered facts; give numbered=True too, or leave it out"):
        read(path, names=".")
    with pytest.raises(ReadError, match=r"there is no entity2id\.txt in the folder given as names"):
        read(write("n.tsv", "0\n"), numbered=True, names=".")


@pytest.mark.parametrize(
    ("name", "columns", "entities", "relations", "facts"),
    [("nations", "rht", 14, 56, 1619), pytest.param("WN18RR", "hrt", 40714, 11, 86835, marks=pytest.mark.slow)],
)
def test_published_knowledge_graphs(name, columns, entities, relations, facts):
    (item,) = read(corpus(f"kg/{name}/train.txt"), "triples", columns=columns)
    assert (item.structure.size, len(set(item.structure.relations))) == (entities, relations)
    assert len(item.structure.edges) == facts


@pytest.mark.parametrize(
    ("header", "columns"),
    [("head\trelation\ttail", "hrt"), ("Predicate\t Subject\tOBJECT", "rht"), ("source\ttarget\tlabel", "htr")],
)
def test_a_header_is_no_fact(write, header, columns):
    facts = {"hrt": "a\tr\tb", "rht": "r\ta\tb", "htr": "a\tb\tr"}[columns]
    file = write("a.tsv", f"{header}\n{facts}\n")
    with pytest.raises(ReadError, match=r"the first triple is .*, which are usual names of columns; give header=Tr"):
        read(file, columns=columns)
    (item,) = read(file, columns=columns, header=True)
    assert (item.structure.nodes, item.structure.relations) == (("a", "b"), ("r",))
    (item,) = read(file, columns=columns, header=False)
    assert len(item.structure.edges) == 2
    (item,) = read(write("b.tsv", f"{facts}\n{facts}\n"), columns=columns, header=True)
    assert len(item.structure.edges) == 1


def test_a_header_of_a_list_is_no_fact(write):
    facts = [["subject", "predicate", "object"], ["a", "r", "b"]]
    with pytest.raises(ConversionError, match="which are usual names of columns; give header=True to leave it out"):
        as_structure(facts)
    assert as_structure(facts, header=True).nodes == ("a", "b")
    assert as_structure(facts, header=False).size == 4
    assert as_structure([("tail", "relation", "head")]).size == 2
    with pytest.raises(
        ReadError, match="the first line of numbered facts is their number, not a header; leave out hea"
    ):
        read(write("c.txt", "1\n0 1 0\n"), "triples", numbered=True, header=True)

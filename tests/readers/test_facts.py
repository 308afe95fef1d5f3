"""Facts with texts, in tables and lines of JSON, and as mappings in Python."""

from __future__ import annotations

import csv
import io
import json
import random
from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import structpe
from structpe.errors import ReadError, StructPEError
from structpe.formats import Item, as_items, as_structure, read, triples
from structpe.formats.facts import facts_of
from tests.together import together


def told(item: Item) -> tuple[Any, ...]:
    """The id, the facts and the texts of an item."""
    s = item.structure
    ends = [(s.nodes[a], s.nodes[b]) for a, b in s.edges]
    facts = [(a, r, b) for (a, b), r in zip(ends, s.relations, strict=True)]
    return item.id, facts, list(item.texts)


def graphs(seed: int) -> list[dict[str, Any]]:
    """Random graphs of facts with texts; names have what tables need quotes for."""
    draw = random.Random(seed)
    names = ["Osk", 'Ida "I"', "Ōrrin", "a, b", "c\td", "two\nlines", "'q'", "1932", "x;y"]
    made = []
    for number in range(draw.randint(1, 6)):
        facts = [tuple(draw.choice(names) for _ in range(3)) for _ in range(draw.randint(1, 4))]
        texts = [f"{draw.choice(names)} {number}-{i}." for i in range(draw.randint(0, 3))]
        made.append({"id": f"g{number}", "facts": list(dict.fromkeys(facts)), "texts": texts})
    return made


def table(rows: list[list[str]], delimiter: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue()


@together("seed", range(8))
@together("suffix, delimiter", [(".tsv", "\t"), (".csv", ","), (".csv", ";")])
def test_a_table_is_what_was_written(seed, suffix, delimiter, write):
    """One fact in each row, texts in the rows of their graph; and a list of facts in one cell."""
    made = graphs(seed)
    rows = [["id", "Head", "relation", "TAIL", "text"]]
    for graph in made:
        facts, texts = graph["facts"], graph["texts"]
        for i in range(max(len(facts), len(texts))):
            fact = facts[i] if i < len(facts) else facts[0]
            rows.append([graph["id"], *fact, texts[i] if i < len(texts) else ""])
    wanted = [(graph["id"], graph["facts"], graph["texts"]) for graph in made]
    assert list(map(told, read(write(f"a{suffix}", table(rows, delimiter)), "facts"))) == wanted
    for form in (json.dumps, lambda facts: str([list(fact) for fact in facts])):
        rows = [["id", "triples", "sentence"]]
        for graph in made:
            rows += [[graph["id"], form(graph["facts"]), text] for text in graph["texts"] or [""]]
        assert list(map(told, read(write(f"b{suffix}", table(rows, delimiter)), "facts"))) == wanted


@together("seed", range(8))
def test_lines_of_json_and_mappings_are_the_same(seed, write):
    made = graphs(seed)
    file = write("a.jsonl", "".join(json.dumps(graph) + "\n\n" for graph in made))
    wanted = [(graph["id"], graph["facts"], graph["texts"]) for graph in made]
    assert list(map(told, read(file))) == wanted == list(map(told, as_items(made)))
    single = [
        {"id": graph["id"], "subject": s, "relation": r, "object": o, "text": text}
        for graph in made
        for s, r, o in graph["facts"]
        for text in graph["texts"] or [None]
    ]
    assert list(map(told, read(write("b.jsonl", "\n".join(map(json.dumps, single)))))) == wanted


plain = st.text(
    st.characters(blacklist_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], blacklist_characters="|;["), min_size=1
)


@given(st.lists(st.tuples(plain, plain, plain), min_size=1, max_size=5))
def test_facts_in_a_cell_are_cut_at_bars_and_semicolons(facts):
    wanted = [list(fact) for fact in facts]
    for between in ("; ", "\n", ";\n"):
        assert facts_of(between.join(" | ".join(fact) for fact in facts)) == wanted
    assert facts_of(json.dumps(wanted)) == facts_of(repr(wanted)) == facts_of(facts) == wanted


def test_without_ids_rows_with_the_same_text_are_one_graph(write):
    text = "subject,relation,object,text,page\nOsk,teacher,Ida,A,7\nOsk,birthPlace,Orrin,A,8\nIda,job,sailor,B,\n"
    (one, other) = read(write("a.csv", text), "facts")
    assert told(one) == ("1", [("Osk", "teacher", "Ida"), ("Osk", "birthPlace", "Orrin")], ["A"])
    assert told(other) == ("2", [("Ida", "job", "sailor")], ["B"])
    assert (one.metadata, other.metadata) == ({"page": "7"}, {"page": ""})
    assert one.structure.name == "a.csv:1"


def test_odd_tables_are_read(write):
    """A byte order mark, Windows' line ends, blank and short rows, empty cells at the end, capitals, blanks."""
    rows = [
        "Source ;  Property;Target;Target-Text;;",
        "Osk;x;Ōrrin",
        ";;;;;",
        "",
        "Osk;teacher;Ida;Ida taught Osk.;;",
        "",
    ]
    text = "\ufeff" + "\r\n".join(rows)
    reading = read(write("a.csv", text), "facts", on_error="skip")
    assert told(reading[0]) == ("2", [("Osk", "teacher", "Ida")], ["Ida taught Osk."])
    assert reading.skipped[0].message.startswith("the cell of column 'Target-Text' is empty, and no column of ids says")
    raw = 'h\tr\tt\ttext\nOsk\tsaid\t"no\t"No", said Osk.\n'
    with pytest.raises(ReadError, match=r"not CSV: .*; check the quotes, or give quotes=False where they are char"):
        read(write("b.tsv", raw), "facts")
    assert read(write("b.tsv", raw), "facts", quotes=False)[0].structure.nodes == ("Osk", '"no')
    bare = read(write("c.csv", "Osk|teacher|Ida\n"), "facts", header=["h", "r", "t"], delimiter="|")
    assert told(bare[0])[1] == [("Osk", "teacher", "Ida")]


def test_columns_of_other_names_are_given(write):
    file = write("a.tsv", "Wer\tWas\tWen\tSatz\tNr\nOsk\tlehrt\tIda\tx\t4\nOsk\tkennt\tIda\ty\t4\n")
    named = {"subject": "Wer", "relation": "Was", "object": "Wen", "text": "Satz", "id": "Nr"}
    (item,) = read(file, "facts", **named)
    assert told(item) == ("4", [("Osk", "lehrt", "Ida"), ("Osk", "kennt", "Ida")], ["x", "y"])
    (new,) = read(write("new.tsv", "Wer\tWas\tWen\tNr\nOsk\tlehrt\tIda\t4\n"), "facts", **named)
    assert told(new) == ("4", [("Osk", "lehrt", "Ida")], [])
    both = write("b.tsv", "facts\ts\tp\to\na | r | b\tc\tr\td\n")
    assert told(read(both, "facts", facts="facts")[0])[1] == [("a", "r", "b")]
    assert told(read(both, "facts", subject="s")[0])[1] == [("c", "r", "d")]


HEADLESS = (
    "line 1: the first line names no column for the subject and the relation and the object; it has 'Osk', 'teacher', "
    "'Ida'. Name columns that are called otherwise, such as subject=NAME; for a file without a header give "
    "header=[subject, relation, object, text]"
)


@together(
    "text, options, message",
    [
        ("Osk\tteacher\tIda\n", {}, HEADLESS),
        (
            "subject\tobject\n",
            {},
            "line 1: the first line names no column for the relation; it has 'subject', 'object'",
        ),
        ("s\tp\to\n", {"id": "Nr"}, "line 1: there is no column 'Nr'; there are 's', 'p', 'o'"),
        ("facts\ts\tp\to\n", {}, "there are facts in the columns 'facts' and 's'; say which: facts=facts or subject="),
        ("s\tp\to\ta\ta\n", {}, "line 1: 'a' is more than once in the header; rename the columns"),
        ("s\tp\to\na\tr\tb\tc\n", {}, "line 2: the row has 4 cells, the header 3; quote cells that hold the separator"),
        ("s\tp\to\na\t\tb\n", {}, "item 1: line 2: triple 1 is ('a', '', 'b'); give three texts that are not empty"),
        ("id\ts\tp\to\n\ta\tr\tb\n", {}, "item 1: line 2: the cell of column 'id' is empty; fill it, as rows of one"),
        (
            "id\ts\tp\to\n1\ta\tr\tb\n2\ta\tr\tb\n1\ta\ts\tb\n",
            {},
            "item 1: line 2: '1' comes back in line 4; rows of one graph must follow each other, so sort them by 'id'",
        ),
        ("id\ts\tp\to\ttext\n1\t\t\t\tx\n", {}, "item 1: '1': line 2: it has no fact; give subject, relation and obj"),
        ("facts\n[[a\n", {}, "item 1: line 2: '[[a' begins as a list and is none; write [['Osk', 'teacher', 'Ida']]"),
        ("s\tp\to\ttext\tid\tx\na\tr\t\n", {}, "line 2: the cell of column 'id' is empty"),
        (
            "id\ts\tp\to\ttext\tx\n1\ta\tr\tb\tT.\ty\n1\tx\tlocated in\n",
            {},
            "item 1: '1': line 2: the row of line 3 has 3 of 6 cells, and no object; fill it, or check the separator",
        ),
        ("facts\na | r\n", {}, "item 1: line 2: triple 1 is ('a', 'r'); give three texts"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(text, options, message, write):
    with pytest.raises(StructPEError) as caught:
        read(write("a.tsv", text), "facts", **options)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(caught.value.places[0]))


@together(
    "line, message",
    [
        ("{", "item 1: line 1: the line is not JSON: "),
        ("[1]", "item 1: line 1: the line holds '[1]'; give an object of JSON, such as {\"facts\": [["),
        (
            '{"text": "x"}',
            "there is no key for the subject and the relation and the object; there are 'text'. Give 'sub",
        ),
        (
            '{"facts": ["a", "r", "b"]}',
            "item 1: line 1: facts is one triple, ['a', 'r', 'b']; give a list of triples, such as [('a', 'r', 'b')]",
        ),
        ('{"facts": 3}', "item 1: line 1: the facts are 3; give a list of triples (subject, relation, object)"),
        ('{"facts": [3]}', "item 1: line 1: a fact is 3; give subject, relation and object"),
        ('{"facts": [["a", [], "b"]]}', "item 1: line 1: a part of a fact is []; give a text or a number"),
        ('{"facts": [["a", "r", "b"]], "text": 3}', "item 1: line 1: the text is 3; give a text, or a list of texts"),
        ('{"facts": []}', "item 1: line 1: it has no fact; give subject, relation and object of one at least"),
    ],
)
def test_what_is_wrong_with_a_line_of_json_is_said(line, message, write):
    good = '{"facts": [["a", "r", "b"]]}'
    with pytest.raises(StructPEError) as caught:
        read(write("a.jsonl", f"{line}\n{good}\n"))
    assert message in str(caught.value)
    assert len(read(write("a.jsonl", f"{line}\n{good}\n"), on_error="skip")) == 1


def test_a_bad_row_among_those_of_a_graph_ends_the_reading(write):
    """What follows could be a graph that lacks a fact."""
    text = "id\ts\tp\to\n1\ta\tr\tb\n1\ta\tr\tb\tc\n1\ta\ts\tb\n"
    with pytest.raises(StructPEError, match="line 3: the row has 5 cells"):
        read(write("a.tsv", text), "facts", on_error="skip")


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl"])
def test_of_a_graph_whose_rows_are_parted_all_rows_are_bad(name, write):
    """Each would be a graph that lacks a fact. The others are read."""
    rows = [
        ("1", "a", "r", "b"),
        ("2", "a", "r", "b"),
        ("1", "a", "s", "b"),
        ("3", "a", "t", "b"),
        ("1", "a", "u", "b"),
    ]
    text = "\n".join(map("\t".join, [("id", "s", "p", "o"), *rows])) + "\n"
    if name == "a.jsonl":
        text = "".join(json.dumps(dict(zip(("id", "s", "p", "o"), row, strict=True))) + "\n" for row in rows)
    first = text.startswith("id")
    reading = read(write(name, text), "facts", on_error="skip")
    assert [told(item)[0] for item in reading] == ["2", "3"]
    said = [f"comes back in line {3 + first}", "was read before", "was read before"]
    rest = "; rows of one graph must follow each other, so sort them by 'id'"
    assert [each.message for each in reading.skipped] == [f"'1' {each}{rest}" for each in said]


@pytest.mark.parametrize("column", ["id", "text"])
def test_an_item_with_a_row_of_an_unknown_graph_is_skipped_as_a_whole(write, column):
    """What the row says may be a fact of it. Before the first item, there is none that it may be of."""
    rows = [("", "z", "r", "b"), ("1", "a", "r", "b"), ("", "a", "s", "c"), ("", "a", "t", "d"), ("2", "e", "r", "f")]
    text = "".join("\t".join(row) + "\n" for row in [(column, "s", "p", "o"), *rows])
    reading = read(write("a.tsv", text), "facts", on_error="skip")
    assert [told(item)[1] for item in reading] == [[("e", "r", "f")]]
    assert len(reading.skipped) == 2
    assert reading.skipped[1].place.endswith("item 2: line 4")
    assert reading.skipped[1].message.startswith(f"the cell of column {column!r} is empty")


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl"])
def test_texts_are_never_those_of_another_column(name, write):
    """A column that an option names and is not there has no texts; of two that may be it, one is named."""
    row = {"s": "Osk", "p": "x", "o": "Ida", "sentence": "One.", "text": "Two."}
    file = write(name, "\t".join(row) + "\n" + "\t".join(row.values()) + "\n" if name == "a.tsv" else json.dumps(row))
    assert [read(file, "facts", text=text)[0].texts for text in ("txt", "text", "Sentence")] == [
        (),
        ("Two.",),
        ("One.",),
    ]
    with pytest.raises(ReadError, match=r"'text' and 'sentence' could each be the texts; name one .* text=text"):
        read(file, "facts")
    with pytest.raises(ReadError, match="could each be the texts; leave all but one out"):
        as_items([row])


ROWS = [("1", "a", "r", "b"), ("1", "a", "s", "c"), ("2", "e", "r", "f"), ("1", "a", "u", "b")]


def test_rows_in_python_are_grouped_as_in_a_file(write):
    """By ids, and without them by texts; ids that come back are errors."""
    for columns, rows in (("id s p o text", [(*row, "T.") for row in ROWS[:3]]), ("text s p o", ROWS)):
        names = columns.split()
        file = write("a.tsv", "".join("\t".join(row) + "\n" for row in [names, *rows]))
        with file.open(newline="") as opened:
            made = as_items(csv.DictReader(opened, delimiter="\t"))
        assert list(map(told, made)) == list(map(told, read(file, "facts")))
    single = [dict(zip(("id", "s", "p", "o"), row, strict=True)) for row in ROWS]
    with pytest.raises(ReadError, match=r"^item 1: row 1: '1' comes back in row 4; rows of one graph must follow"):
        as_items(single)
    with pytest.raises(ReadError, match=r"^item 1: row 1: '1' comes back in row 3"):
        as_items([single[0], structpe.path(["x"]), single[1]])


def test_capitals_in_names_of_columns_do_not_matter_where_one_is_meant(write):
    text = "Subject of fact\tp\to\tNr\tNR\nOsk\tr\tIda\t1\t2\n"
    (item,) = read(write("a.tsv", text), "facts", subject="Subject of Fact", id="Nr")
    assert told(item) == ("1", [("Osk", "r", "Ida")], [])
    with pytest.raises(
        ReadError, match=r"no column 'nr'; .* Its name is the option id; give one of these, or leave the option out$"
    ):
        read(write("a.tsv", text), "facts", subject="Subject of fact", id="nr")


@pytest.mark.parametrize("root", ["y", 7, None, "gone"])
def test_the_attribute_root_of_a_graph_names_its_root(root, tmp_path, write):
    graph = networkx.DiGraph([("x", "y"), ("y", 7 if root == 7 else "z")])
    if root is not None:
        graph.graph["root"] = root
    networkx.write_graphml(graph, tmp_path / "a.graphml")
    data = networkx.node_link_data(graph, edges="edges")
    for file in (tmp_path / "a.graphml", write("a.json", json.dumps(data))):
        if root == "gone":
            with pytest.raises(
                ReadError, match="the root of the graph is 'gone', but no node has this id; give the id"
            ):
                read(file)
            continue
        (item,) = read(file)
        found = item.structure.root
        assert (None if found is None else item.structure.nodes[found]) == (None if root is None else str(root))
        assert "root" not in item.metadata


def test_items_of_many_kinds() -> None:
    graph = networkx.DiGraph([("a", "b")])
    structure = triples([("a", "r", "b")])
    given = [
        Item(structure, ("t",), "own"),
        structure,
        graph,
        {"structure": graph, "text": "t", "id": 7, "more": 1},
        {"facts": ["a | r | b"], "texts": ["t", "u"]},
        {"nodes": [{"id": "a"}], "edges": [], "text": "t", "y": 3},
        {"edge_index": [[0], [1]], "num_nodes": 2, "text": "t", "y": 3},
        [("a", "r", "b")],
        "(w / want-01)",
    ]
    found = as_items(given)
    assert [item.id for item in found] == ["own", "2", "3", "7", "5", "6", "7", "8", "9"]
    assert [item.texts for item in found] == [("t",), (), (), ("t",), ("t", "u"), ("t",), ("t",), (), ()]
    assert [item.structure.size for item in found] == [2, 2, 2, 2, 2, 1, 2, 2, 1]
    assert [item.metadata for item in found[3:7]] == [{"more": 1}, {}, {"y": 3}, {"num_nodes": 2, "y": 3}]
    assert len(as_items(given[0])) == len(as_items({"facts": [("a", "r", "b")]})) == len(as_items(graph)) == 1
    assert len(as_items(iter(given))) == len(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "there is no item; give one or more"),
        ([structpe.path(["a"]), 3], "item 2: no converter takes a builtins.int"),
        ([{"facts": [("a", "r")], "id": "q"}], "item 1: 'q': triple 1 is ('a', 'r'); give three texts"),
        (
            [("a", "r", "b"), ("c", "r", "d")],
            "item 1: a list is taken as triples (subject, relation, object) of texts, but this is one triple; give "
            "[('a', 'r', 'b')], or as an item {\"facts\": [('a', 'r', 'b')]}",
        ),
        ([{"text": "x"}], "item 1: there is no key for the subject and the relation and the object; there are 'text'"),
        ([{"structure": 3, "id": "q"}], "item 1: 'q': no converter takes a builtins.int"),
        (
            [{"facts": [("a", "r", "b")], "sentense": "x"}],
            "item 1: there is the key 'sentense'. Did you mean 'sentence'",
        ),
        ([{"structure": 3, "texs": "x"}], "item 1: there is the key 'texs'. Did you mean 'texts'"),
        ([{"structure": 3, "text": "x", "texts": []}], "item 1: 'text' and 'texts' could each be the texts; leave all"),
        (
            [{"strukture": 3}],
            "item 1: there is no key for the subject and the relation and the object; there are 'stru",
        ),
        ([([("a", "r", "b")], "x")], "item 1: it is a pair of a graph and a text; give a mapping: {\"facts\": [('a', "),
        ([{"s": 1, "p": 2, "o": 3, None: ["x"]}], "item 1: the key None is not a text; a row has more cells than the "),
        ([{"structure": structpe.path(["a"]), "text": 3}], "item 1: the text is 3; give a text, or a list of texts"),
    ],
)
def test_what_is_no_item_is_named(given: Any, message: str) -> None:
    with pytest.raises(StructPEError) as caught:
        as_items(given)
    assert str(caught.value).startswith(message)


def test_graphs_of_networkx_are_read_from_both_files(tmp_path, write):
    """Their attributes, and texts and ids as attributes of the graph."""
    graph = networkx.DiGraph(text="Ida taught Osk.", id="one", page=3)
    graph.add_node("x", label="Osk", x=1.5)
    graph.add_node("y", label="Ida", x=2.5)
    graph.add_edge("x", "y", relation="teacher", weight=2)
    networkx.write_graphml(graph.copy(), tmp_path / "a.graphml")  # it takes the id out
    data = networkx.node_link_data(graph, edges="edges")
    plain = {key: value for key, value in data.items() if key != "graph"} | graph.graph
    links = networkx.node_link_data(graph, edges="links")
    files = [tmp_path / "a.graphml", write("a.json", json.dumps(data)), write("b.json", json.dumps([plain, links]))]
    files.append(write("c.jsonl", f"{json.dumps(plain)}\n\n{json.dumps(links)}\n"))
    found = [item for file in files for item in read(file, "node-link" if file.suffix == ".jsonl" else None)]
    assert len(found) == 6
    for item in found:
        assert (item.id, item.texts, item.metadata) == ("one", ("Ida taught Osk.",), {"page": 3})
        assert item.structure.nodes == ("Osk", "Ida")
        assert item.structure.relations == ("teacher",)
        assert item.structure.directed
        assert item.structure.features["x"].tolist() == [1.5, 2.5]
        assert item.structure.features["edge_weight"].tolist() == [2]
    (one,) = read(files[0], label="x", relation="weight", text="id", features=["x"])
    assert (one.structure.nodes, one.structure.relations, one.texts) == (("1.5", "2.5"), ("2",), ("one",))


@together(
    "name, text, message",
    [
        ("a.json", "{", r"it is not JSON \("),
        ("a.json", "3", r"item 1: it is 3; a graph in node-link form has the lists 'nodes' and 'edges'"),
        ("a.json", '{"nodes": 3}', "item 1: 'nodes' is 3; give the list of nodes"),
        ("a.json", '{"nodes": [{"id": 1}], "edges": [{"source": 1, "target": 2}]}', "item 1: an edge names 2, but no"),
        ("a.json", '{"nodes": [{"id": 1}], "graph": 3}', "item 1: 'graph' is 3; give a mapping"),
        ("a.json", "[]", "there is no item in the file; reader 'node-link' reads: Graphs in the node-link JSON"),
        ("a.graphml", "<graphml", "not well-formed XML"),
        ("a.graphml", '<!DOCTYPE x [<!ENTITY a "ha">]><graphml/>', "declares a document type or entity"),
        ("a.graphml", "<a/>", "there is no item in the file; reader 'graphml' reads: GraphML"),
        (
            "a.graphml",
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed"><hyperedge/></graph>'
            "</graphml>",
            r"networkx cannot read it as GraphML \(NetworkXError: GraphML reader doesn't support hyperedges\)",
        ),
    ],
)
def test_what_is_wrong_with_a_graph_is_said(name, text, message, write):
    with pytest.raises(StructPEError, match=message):
        read(write(name, text))
    if name == "a.json":
        with pytest.raises(StructPEError, match="has no attribute 'lex' with its text; it has 'text'"):
            read(write(name, '{"nodes": [{"id": 1}], "text": "t"}'), text="lex")


def test_readers_of_triples_say_what_reads_tables(write):
    with pytest.raises(
        ReadError, match=r"separated by tabs; a table with a header and more columns, .* reader='facts'"
    ):
        read(write("a.tsv", "subject\trelation\tobject\ttext\n"))


def test_a_graph_of_facts_is_that_of_triples(write):
    facts = [("Osk", "teacher", "Ida"), ("Osk", "birthPlace", "Orrin")]
    file = write("a.jsonl", json.dumps({"facts": facts}))
    assert read(file)[0].structure.order.tolist() == as_structure(facts).order.tolist()

"""RDF: lines and other notations, names of nodes, and what is refused."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.errors import ReadError
from structpe.formats import as_text, read, stream
from structpe.formats.rdf import Term, statement, term
from tests.together import together

pytest.importorskip("pyoxigraph")
rdflib = pytest.importorskip("rdflib")
compare = pytest.importorskip("rdflib.compare")

LINES = """\
# who is where
<http://e.org/Orrin> <http://e.org/terms#partOf> <http://e.org/Inner_Isles> .

<http://e.org/Orrin>\t<http://e.org/terms#name>  "Orrin \\"the\\" \\u017Dlu\\u0165"@CS . # a comment
_:x <http://e.org/terms#height> "01"^^<http://e.org/metres> .
<http://e.org/Orrin> <http://e.org/terms#near> _:x.
<http://e.org/Orrin> <http://e.org/terms#partOf> <http://e.org/Inner_Isles> .
"""
NODES = ("Orrin", "Inner_Isles", 'Orrin "the" Žluť', "_:b1", "01")

iris = st.text(st.characters(codec="utf-8"), max_size=9).map(lambda text: Term("iri", text))
blanks = st.from_regex(r"\A[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\Z").map(lambda text: Term("blank", text))
literals = st.builds(
    Term,
    st.just("literal"),
    st.text(st.characters(codec="utf-8")),
    st.just(""),
    st.sampled_from(["", "http://e.org/type"]),
) | st.builds(Term, st.just("literal"), st.text(), st.sampled_from(["en", "zh-hant"]), st.just(""))


@given(st.tuples(iris | blanks, iris, iris | blanks | literals))
def test_a_statement_is_read_as_it_is_written(terms: tuple[Term, ...]) -> None:
    assert statement(" ".join(each.notation() for each in terms) + " .") == terms
    assert [term(each.notation()) for each in terms] == list(terms)


@given(st.text(max_size=40) | st.text('<>_:"\\@^ .#ub0aé', max_size=30))
def test_no_line_is_read_in_another_way_than_by_rule(line: str) -> None:
    with suppress(ReadError):
        found = statement(line)
        assert found is None or len(found) in (3, 4)


def test_lines(write):
    (item,) = read(write("a.nt", LINES))
    structure = item.structure
    assert structure.nodes == NODES
    assert structure.edges.tolist() == [[0, 1], [0, 2], [3, 4], [0, 3]]
    assert structure.relations == ("partOf", "name", "height", "near")
    assert structure.features["is_literal"].tolist() == [False, False, True, False, True]
    assert item.metadata["terms"][2:] == (
        '"Orrin \\"the\\" Žluť"@cs',
        "_:b1",
        '"01"^^<http://e.org/metres>',
    )
    assert item.metadata["predicates"][0] == "<http://e.org/terms#partOf>"


@together("names", ["local", "full", "terms"])
@together("name", ["ttl", "n3", "trig", "rdf"])
def test_other_notations_say_the_same(write, name, names):
    lines = write("a.nt", LINES)
    graph = rdflib.Graph().parse(data=LINES, format="nt")
    form = {"ttl": "turtle", "n3": "n3", "trig": "turtle", "rdf": "xml"}[name]
    (one,), (other,) = read(lines, names=names), read(write(f"a.{name}", graph.serialize(format=form)), names=names)

    def facts(item):
        nodes = item.structure.nodes
        ends = item.structure.edges.tolist()
        return {(nodes[s], r, nodes[t]) for (s, t), r in zip(ends, item.structure.relations, strict=True)}

    assert facts(one) == facts(other)


def test_literals(write):
    path = write("a.nt", '<a> <b> "x" .\n<c> <b> "x" .\n<c> <d> <a> .\n')
    assert read(path)[0].structure.nodes == ("a", "x", "c")
    assert read(path, literals="own")[0].structure.nodes == ("a", "x", "c", "x")
    assert read(path, literals="none")[0].structure.nodes == ("c", "a")


def test_graphs_and_subjects(write):
    quads = write("a.nq", "<a> <r> <b> <g1> .\n<b> <r> <c> <g1> .\n<a> <r> <c> .\n")
    assert [(item.id, item.structure.nodes) for item in read(quads, each="graph")] == [
        ("g1", ("a", "b", "c")),
        ("default", ("a", "c")),
    ]
    assert [item.id for item in read(quads, each="subject")] == ["a", "b", "a"]
    trig = write("a.trig", "@prefix : <http://e.org/> .\n:g1 { :a :r :b , :c } \n { :c :r :b }")
    found = read(trig, each="graph")
    assert sorted(item.structure.size for item in found) == [2, 3]
    assert {item.id for item in found} == {"http://e.org/g1", "default"}
    assert len(read(write("a.ttl", "<a> <r> <b> . <b> <r> <c> ."), each="subject")) == 2


@pytest.mark.parametrize("name", ["a.ttl", "a.trig", "a.n3"])
def test_nodes_are_numbered_in_the_order_of_the_file(write, name):
    turtle = "".join(f"<n{i * 7 % 20}> <r> <n{i}> .\n" for i in range(20))
    expected = tuple(dict.fromkeys(f"n{j}" for i in range(20) for j in (i * 7 % 20, i)))
    assert read(write(name, turtle))[0].structure.nodes == expected


def test_a_bad_line_is_left_out_and_named(write):
    path = write("a.nt", "<a> <r> <b> .\n<a> <r> b .\n<c> <r> <d> .\n")
    with pytest.raises(
        ReadError, match=r"a\.nt: .*line 2: '<a> <r> b \.' is not a statement of N-Triples at column 9; write"
    ):
        read(path)
    reading = read(path, each="subject", on_error="skip")
    assert [item.id for item in reading] == ["a", "c"]
    assert [skipped.place for skipped in reading.skipped] == [f"{path}: item 1: line 2"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('"x" <b> <c> .', r"the subject '\"x\"' is a literal; RDF forbids it there"),
        ("<a> _:b <c> .", "the predicate '_:b' is a blank; RDF forbids it there"),
        ("<a> <b> <c>", "is not a statement of N-Triples at column 12"),
        ("<<a> <b> <c>> <d> <e> .", "is not a statement of N-Triples at column 1;"),
        ('<a> <b> "\\uD800" .', r"\\uD800 is not a character; correct it"),
        ("<a> <b> <c> <d> .", r"the statement has four terms, as in N-Quads; name the file \.nq"),
    ],
)
def test_what_is_no_statement_is_named(write, line, message):
    with pytest.raises(ReadError, match=message):
        read(write("a.nt", line + "\n"))


@together(
    "name, content, message",
    [
        (
            "a.ttl",
            "@prefix a: <http://x/> .\na:b a:c d:e .",
            "line 2: not Turtle: 'between columns 9 and 12: The prefix d:",
        ),
        ("a.ttl", "<a> <b> " + "(" * 50_000 + " .", "line 1: not Turtle: 'column 50010: "),
        (
            "a.ttl",
            "<a> <b> <c> .\n<d> <e> <f>\n",
            r"a.ttl: line 2: the last statement does not end in a full stop; the file is truncated, restore it",
        ),
        ("a.ttl", b"\xff\xfe", "the text is in UTF-16, UTF-8 is needed"),
        (
            "a.n3",
            "{ <a> <b> <c> } => { <d> <e> <f> } .",
            "there are formulas in braces, which N3 has but RDF does not; leave them out",
        ),
        ("a.rdf", "<a>", r"line 1: not well-formed XML: no element found; correct or restore"),
        ("a.ttl", "", "the graph has no node|there is no item"),
        ("a.nt", "# nothing\n", "the graph has no node"),
    ],
)
def test_what_cannot_be_read_is_named(write, name, content, message):
    with pytest.raises(Exception, match=message) as caught:
        read(write(name, content))
    assert type(caught.value).__module__ == "structpe.errors"


def rdf_xml(head: str, text: str) -> str:
    return (
        f'<?xml version="1.0"?>\n{head}\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        f'xmlns:e="http://e.org/"><rdf:Description rdf:about="http://e.org/a"><e:b>{text}</e:b>'
        "</rdf:Description></rdf:RDF>"
    )


def test_bombs_and_outer_entities_are_refused(write, tmp_path):
    (tmp_path / "secret").write_text("secret")
    levels = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    for head, text in [
        (f'<!DOCTYPE bomb [<!ENTITY l0 "lol">{levels}]>', "&l9;"),
        (f'<!DOCTYPE x [<!ENTITY out SYSTEM "{(tmp_path / "secret").as_uri()}">]>', "&out;"),
        ('<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">', "text"),
    ]:
        with pytest.raises(
            ReadError, match=r"line 2: the XML declares a document type or entity \('\w+'\), which is ref"
        ):
            read(write("a.rdf", rdf_xml(head, text)))
    assert read(write("a.rdf", rdf_xml("", "text")))[0].structure.nodes == ("a", "text")


def test_relative_names_do_not_tell_where_the_file_lies(write):
    (item,) = read(write("a.ttl", "<a> <b> <#c> ."), names="full")
    assert item.structure.nodes == ("relative:/a", "relative:/#c")


BODY = '<rdf:Description rdf:about="a"><e:b>ž</e:b></rdf:Description></rdf:RDF>'
HEAD = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.org/">\n'


@pytest.mark.parametrize(
    ("declared", "encoding"),
    [
        ("", "utf-8"),
        ("", "utf-8-sig"),
        ("<?xml version='1.0'?>", "utf-8-sig"),
        ("<?xml version='1.0' encoding='UTF-8'?>", "utf-8"),
        ("<?xml version='1.0' encoding='iso-8859-2'?>\n", "iso-8859-2"),
        ("<?xml version='1.0' encoding='utf-16'?>", "utf-16"),
        ("", "utf-16"),
    ],
)
def test_encodings_of_xml(write, declared, encoding):
    item = read(write("a.rdf", (declared + HEAD + BODY).encode(encoding)), names="full")[0]
    assert item.structure.nodes == ("relative:/a", "ž")


def test_a_mark_of_utf_8_is_left_out(write):
    assert read(write("a.ttl", b"\xef\xbb\xbf<a> <b> <c> ."))[0].structure.nodes == ("a", "c")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.ttl", "<a> <b>\n<<( <c> <d> <e> )>> .", "line 2: '<relative:/c> .* is a triple, which RDF 1.2 has but RDF"),
        ("a.ttl", '<a> <b>\n"x"@en--ltr .', "line 2: '\"x\"@en--ltr' is a text with a direction, which RDF 1.2 has"),
        ("a.n3", '"x" <b> <c> .', "line 1: not N3: 'literals are not allowed in regular RDF subjects'; correct it"),
        ("a.n3", "?x <b> <c> .", "line 1: not N3: 'variables are not allowed in regular RDF subjects'; correct it"),
        ("a.ttl", b'<a> <b> <c> .\n<a> <b> "\xff" .', "line 2: byte 0xff at column 10 is not UTF-8; convert the file"),
        ("a.rdf", f"{HEAD}\n\n{BODY.replace('e:b', 'x:b')}\n\n", "line 4: not RDF/XML: 'Unknown prefix x:'; correct"),
    ],
)
def test_what_is_not_rdf_is_named_with_its_line(write, name, content, message):
    with pytest.raises(ReadError, match=message):
        read(write(name, content))


def test_terms_are_not_much_longer_than_the_file(write, monkeypatch):
    monkeypatch.setattr("structpe.formats.rdf.LIMIT", 1000)
    turtle = f"@prefix p: <http://{'e' * 1000}/> .\n" + "p:a p:a p:a .\n" * 1000
    with pytest.raises(ReadError, match="prefixes make the terms over 100 times as long as the file; write shorter"):
        read(write("a.ttl", turtle))


def test_lists(write):
    """The facts of a list, whatever their order."""
    text = "<a> <b> ( 1 <c> ) ."
    blanks = "<a> <b> _:x . _:x rdf:first 1 ; rdf:rest _:y . _:y rdf:first <c> ; rdf:rest rdf:nil ."
    blanks = f"@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . {blanks}"
    ours, theirs = (
        rdflib.Graph().parse(data=as_text(read(write(f"{name}.ttl", each))[0], "rdf"), format="nt")
        for name, each in (("a", text), ("b", blanks))
    )
    assert compare.isomorphic(ours, theirs)


def test_values_of_literals_are_left_alone(write, capfd):
    turtle = '<a> <b> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    turtle += "<a> <b> +.50 .\n"
    turtle += '<a> <b> "<x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral> .'
    assert set(read(write("a.ttl", turtle))[0].structure.nodes) == {"a", "01", "+.50", "<x"}
    assert capfd.readouterr() == ("", "")


def test_subjects_are_read_in_constant_memory(tmp_path: Path):
    path = tmp_path / "many.nt"
    with path.open("w") as file:
        for number in range(1000):
            file.write(f"<http://e.org/{number}> <http://e.org/r> <http://e.org/{number + 1}> .\n")
    for _ in range(2):  # the first time imports, and fills Python's lists of free tuples
        tracemalloc.start()
        count = sum(1 for _ in stream(path, each="subject"))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert count == 1000
    assert peak < 1 << 18


@pytest.mark.parametrize("option", [{"each": "line"}, {"names": "short"}, {"literals": "all"}])
def test_options_are_checked(write, option):
    with pytest.raises(ReadError, match=r"option '(each|names|literals)' of reader 'rdf' takes one of "):
        read(write("a.nt", LINES), **option)

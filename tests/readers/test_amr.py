from __future__ import annotations

import subprocess
import sys

import networkx as nx
import penman
import pytest
from penman.models.amr import model

import structpe.formats.text
from structpe.errors import ReadError
from structpe.formats import read
from structpe.formats.amr import graph
from tests.datasets import SAMPLES, corpus
from tests.together import together

LITTLE_PRINCE = "amr/little_prince/amr-bank-struct-v1.6"


def edges(structure):
    pairs = [(structure.nodes[source], structure.nodes[target]) for source, target in structure.edges]
    return [(source, role, target) for (source, target), role in zip(pairs, structure.relations, strict=True)]


def test_re_entrancy_inverse_roles_and_constants():
    structure = graph(
        """
        (w / want-01
            :ARG0 (b / boy :polarity -)
            :ARG1 (g / go-02
                :ARG0 b
                :ARG0-of (h / "hop\\"e" :quant 5 :polarity -)
                :mod (c / consist-02 :consist-of (s / sand))))""",
        name="x:1",
    )
    assert structure.nodes == ("want-01", "boy", "-", "go-02", 'hop"e', "5", "-", "consist-02", "sand")
    assert edges(structure) == [
        ("want-01", ":ARG0", "boy"),
        ("boy", ":polarity", "-"),
        ("want-01", ":ARG1", "go-02"),
        ("go-02", ":ARG0", "boy"),
        ('hop"e', ":ARG0", "go-02"),
        ('hop"e', ":quant", "5"),
        ('hop"e', ":polarity", "-"),
        ("go-02", ":mod", "consist-02"),
        ("consist-02", ":consist-of", "sand"),
    ]
    assert structure.features["is_attribute"].nonzero()[0].tolist() == [2, 5, 6]
    assert structure.features["edge_inverted"].nonzero()[0].tolist() == [4]
    assert structure.root == 0
    assert structure.order is not None
    assert structure.order.tolist() == list(range(9))
    assert structure.name == "x:1"


def test_a_variable_mentioned_before_it_is_introduced_is_one_node():
    structure = graph("(w / want-01 :ARG0 b :ARG1 (g / go-02 :ARG0 (b / boy :ARG1-of b)))")
    assert structure.nodes == ("want-01", "go-02", "boy")
    assert edges(structure) == [
        ("want-01", ":ARG1", "go-02"),
        ("go-02", ":ARG0", "boy"),
        ("want-01", ":ARG0", "boy"),
        ("boy", ":ARG1", "boy"),
    ]


def test_alignments_are_features():
    structure = graph('(w / want-01~e.2 :ARG0~e.1 (b / boy~e.0,1) :name "A~1"~3 :polarity -~4)')
    assert structure.nodes == ("want-01", "boy", "A~1", "-")
    assert structure.features["alignment"].tolist() == [2, 0, 3, 4]
    assert structure.features["edge_alignment"].tolist() == [1, -1, -1]
    assert graph("(a / b)").features["alignment"].tolist() == [-1]


def test_comments_become_texts_and_metadata(write):
    file = write(
        "a.amr",
        "# AMR release\n\n# ::id one ::date today\n# ::snt The boy .\n\n(b / boy) (c / cat)\n\n"
        '# ::snt A ) bracket \u2028 .\n(d / dog :op1 "(")',
    )
    items = read(file)
    assert [item.id for item in items] == ["one", "2", "3"]
    assert [item.texts for item in items] == [("The boy .",), (), ("A ) bracket \u2028 .",)]
    comments = {key: value for key, value in items[0].metadata.items() if key != "epigraph"}
    assert comments == {"id": "one", "date": "today", "snt": "The boy ."}
    assert [item.structure.name for item in items] == ["a.amr:one", "a.amr:2", "a.amr:3"]


@together(
    "comment, expected",
    [
        ("# ::snt call Shape::area before drawing .", {"snt": "call Shape::area before drawing ."}),
        ("# ::id one\n# ::snt a ::id two", {"id": "one", "snt": "a ::id two"}),
        ("# ::id one ::snt a ::tok b ::date c", {"id": "one", "snt": "a ::tok b ::date c"}),
        ("# ::tok\ta :: b", {"tok": "a :: b"}),
        ("# ::snt_de ein ::id zwei", {"snt_de": "ein ::id zwei"}),
        ("# ::snt-type body ::id one", {"snt-type": "body", "id": "one"}),  # no text, in AMR's releases
        ("# ::id a ::id b ::date c\n# ::date d", {"id": "a", "date": "d"}),
        ("# ::node\t0\tboy\n# ::node\t1\tgo", {"node\t0\tboy": "", "node\t1\tgo": ""}),  # JAMR's
        ("# ::id v1::2 ::snt", {"id": "v1::2", "snt": ""}),
        ("# no key\n\n#::snt a", {"snt": "a"}),
    ],
)
def test_the_pairs_of_a_comment(write, comment, expected):
    item = read(write("a.amr", f"{comment}\n(a / b)\n# ::snt behind\n(c / d)"))[0]
    assert {key: value for key, value in item.metadata.items() if key != "epigraph"} == expected
    assert (item.id, item.texts) == (expected.get("id", "1"), (expected["snt"],) if "snt" in expected else ())


@together(
    "text, message",
    [
        ("(w / want-01 :ARG0 b)", "variable 'b', :ARG0 of 'w', is not introduced; write (b / concept)"),
        ("(w / want-01 :ARG0-of b2)", "variable 'b2', :ARG0-of of 'w', is not introduced"),
        ("(w / want-01 :ARG0 (w / boy))", "variable 'w' is introduced 2 times; give each node a different variable"),
        ("(w / want-01 :ARG0 (b))", "variable 'b' has 0 concepts; write (b / concept ...)"),
        ("(w / want-01 :ARG0 (b / ))", "variable 'b' has no concepts; write (b / concept ...)"),
        ("(w / want-01 :ARG0)", "role :ARG0 of 'w' has no target; give a node or a constant, or remove it"),
        ("()", "a graph or node is empty, '()'; write (variable / concept)"),
        ("\u2028#\n()", "there is no graph in"),  # found by fuzzing: a comment to one, brackets to the other
        ("(w / want-01\n:ARG0 (b / boy)", "line 1: the graph is not closed: 1 '(' still open after line 2; close each"),
        ("(w / want-01))", "line 1: ')' is outside of every graph; a graph is (variable / concept :role ...)"),
        ("want-01", "line 1: 'want-01' is outside of every graph"),
        ("(w / want-01\n  :ARG0 / boy)", "line 2: not PENMAN: Expected: SYMBOL, STRING, LPAREN in ':ARG0 / boy)'"),
        ('(w / want-01 :op1 "open)', "line 1: not PENMAN: Expected"),
        ("", "the text holds 0 graphs; give one"),
        ("(a / b)(c / d)", "the text holds 2 graphs; give one"),
    ],
)
def test_malformed_penman_is_named(text, message):
    with pytest.raises(ReadError) as caught:
        graph(text)
    assert message in str(caught.value)


def test_the_error_is_all_that_is_said_of_a_missing_concept_or_target():
    code = "from structpe.formats.amr import graph\nfor text in ('(a / )', '(a / b :ARG0)'):\n"
    code += "    try: graph(text)\n    except Exception as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "variable 'a' has no concepts; write (a / concept ...)",
        "role :ARG0 of 'a' has no target; give a node or a constant, or remove it",
    ]


@together("constant", ["-", "+", "5", "imperative", "expressive", "interrogative", '"b"', "am", "3.5"])
def test_constants_are_no_dangling_variables(constant):
    assert graph(f"(w / want-01 :mode {constant})").nodes == ("want-01", constant.strip('"'))


def test_a_graph_too_deep_to_parse_is_an_error(write):
    deep = "".join(f"(v{i} / x :ARG0 " for i in range(20_000)) + "-" + ")" * 20_000
    reading = read(write("a.amr", f"{deep}\n\n(a / alpha)"), on_error="skip")
    assert len(reading) == 1
    assert "nested too deeply" in reading.skipped[0].message


@pytest.mark.parametrize(
    ("file", "graphs"),
    [
        pytest.param(f"{LITTLE_PRINCE}-training.txt", 1274, marks=pytest.mark.slow),
        (f"{LITTLE_PRINCE}-dev.rebuilt.txt", 145),
        (f"{LITTLE_PRINCE}-test.txt", 143),
        pytest.param("amr/bio/amr-release-dev-bio.txt", 500, marks=pytest.mark.slow),
        ("amr/qald9/qald-9-amr-train.txt", 408),
        pytest.param("amr/massive/massive_amr.txt", 1685, marks=pytest.mark.slow),
    ],
)
def test_real_corpora_agree_with_penman(file, graphs):
    items, expected = read(corpus(file)), penman.load(corpus(file), model=model)
    assert (len(items), len(expected)) == (graphs, graphs)
    for number, (item, decoded) in enumerate(zip(items, expected, strict=True), 1):
        structure = item.structure
        assert item.texts == (decoded.metadata["snt"],)
        assert {key: value for key, value in item.metadata.items() if key != "epigraph"} == decoded.metadata
        assert item.id == decoded.metadata.get("id", str(number)), "QALD-9 has no ids"
        assert structure.nodes[0] == next(i.target for i in decoded.instances() if i.source == decoded.top)
        attribute = structure.features["is_attribute"]
        concepts = [node for node, is_one in zip(structure.nodes, attribute, strict=True) if not is_one]
        assert sorted(concepts) == sorted(i.target.strip('"') for i in decoded.instances())
        assert len(structure.nodes) == len(decoded.instances()) + len(decoded.attributes())
        label = {i.source: i.target.strip('"') for i in decoded.instances()}
        roles = [(label[e.source], e.role, label[e.target]) for e in decoded.edges()]
        roles += [(label[a.source], a.role, a.target.strip('"')) for a in decoded.attributes()]
        assert sorted(edges(structure)) == sorted(roles)


def test_a_truncated_corpus_loses_its_last_graph_only(write):
    whole = corpus("amr/bio/amr-release-dev-bio.txt").read_bytes()
    file = write("cut.txt", whole[: whole.rindex(b":ARG", 0, len(whole) // 9)])
    with pytest.raises(ReadError, match=r"cut\.txt: item \d+: '\S+': line \d+: the graph is not closed"):
        read(file, "amr")
    reading = read(file, "amr", on_error="skip")
    assert len(reading.skipped) == 1
    assert len(reading) == len(penman.loads(file.read_text().rpartition("# ::id")[0]))


def test_the_sample_is_connected_and_has_re_entrancies():
    items = read(SAMPLES / "amr_sample" / "train.txt", "amr")
    assert all(nx.is_weakly_connected(nx.DiGraph([(0, 0), *map(tuple, item.structure.edges)])) for item in items)
    assert any(len(item.structure.edges) >= item.structure.size for item in items)


def test_what_the_writer_needs_is_kept(write):
    item = read(write("a.amr", "(w / want-01~e.2,3 :ARG0~e.1 b~e.4 :ARG1-of (b / boy))"))[0]
    assert item.metadata["epigraph"] == {
        "variables": ("w", "b"),
        "symbols": ("want-01", "boy"),
        "alignments": ("~e.2,3", ""),
        "edge_alignments": ("", "~e.1"),
        "mention_alignments": ("", "~e.4"),
        "edge_order": (1, 0),
        "introduces": (True, False),
    }


def test_numbers_and_comments_without_an_end_are_refused(write, monkeypatch):
    with pytest.raises(
        ReadError, match=r"the alignment '~e\.9+' names a token that no sentence has; correct or remove it"
    ):
        graph(f"(a / b~e.{'9' * 30})")
    monkeypatch.setattr(structpe.formats.text, "LIMIT", 1000)
    with pytest.raises(ReadError, match=r"line 1: the text before the next graph is longer than 1000 bytes"):
        read(write("a.amr", "# a comment\n\n" * 100 + "(a / b)"))

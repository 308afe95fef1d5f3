"""CoNLL-U: what was read comes back byte for byte, trees of any origin can be written and read."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import structpe
from structpe import Structure
from structpe.formats import Item, as_text, read, tree, write
from structpe.formats.reading import Skipped
from structpe.formats.writing import WriteError
from tests.datasets import SAMPLES, corpus
from tests.examples import examples
from tests.strategies import digraphs, relabelled, trees

SENTENCE = """\
# newpar
# sent_id = s1
# text = Don't bark (dog)!
0.1\tI\tI\tPRON\t_\t_\t_\t_\t0:root|3:x\tCopyOf=1
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\tMood=Imp\t3\taux\t3:aux\t_
2\tn't\tnot\tPART\t_\t_\t3\tadvmod\t3:advmod|3.1:dep\t_
3\tbark\tbark\tVERB\t_\t_\t0\troot:main\t0:root:main\t_
3.1\tyou\tyou\tPRON\t_\t_\t_\t_\t3:nsubj\t_
3.2\t_\t_\t_\t_\t_\t_\t_\t3.1:dep\t_
4-5\tdog!\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
4\tdog\tdog\tNOUN\t_\t_\t3\tvocative\t3:vocative|3.1:appos\t_
5\t!\t!\tPUNCT\t_\t_\t3\tpunct\t3:punct\t_

"""


@pytest.mark.parametrize("graph", ["basic", "enhanced"])
def test_what_was_read_comes_back(tmp_path: Path, graph: str) -> None:
    file = tmp_path / "a.conllu"
    file.write_text(SENTENCE * 2, encoding="utf-8")
    items = read(file, graph=graph)
    assert as_text(items[0], "conllu") == SENTENCE
    assert write(items, tmp_path / "b.conllu") == 2
    assert (tmp_path / "b.conllu").read_bytes() == file.read_bytes()


@pytest.mark.parametrize(
    ("file", "graph"),
    [
        (SAMPLES / "trees_sample" / "sample.conllu", "basic"),
        pytest.param("EWT/en_ewt-ud-dev.conllu", "basic", marks=pytest.mark.slow),
        pytest.param("EWT/en_ewt-ud-dev.conllu", "enhanced", marks=pytest.mark.slow),
        pytest.param("CS-CLTT/cs_cltt-ud-dev.conllu", "basic", marks=pytest.mark.slow),
        ("AF-AfriBooms/af_afribooms-ud-dev.conllu", "basic"),
    ],
)
def test_treebanks_come_back_byte_for_byte(tmp_path: Path, file: Path | str, graph: str) -> None:
    file = file if isinstance(file, Path) else corpus(f"ud/{file}")
    write(read(file, graph=graph), tmp_path / "out.conllu")
    assert (tmp_path / "out.conllu").read_bytes() == file.read_bytes()


def test_a_tree_alone_has_blanks_where_nothing_is_known() -> None:
    structure = tree(["Dogs", "bark"], [2, 0], ["nsubj", "root"])
    assert as_text(structure, "conllu") == (
        "1\tDogs\t_\t_\t_\t_\t2\tnsubj\t_\t_\n2\tbark\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    )
    assert as_text(Item(structure, id="7", metadata={"text": "Dogs bark", "space_after": [True, False]}), "conllu") == (
        "# sent_id = 7\n# text = Dogs bark\n"
        "1\tDogs\t_\t_\t_\t_\t2\tnsubj\t_\t_\n2\tbark\t_\t_\t_\t_\t0\troot\t_\tSpaceAfter=No\n\n"
    )


def test_a_changed_tree_is_written_with_its_change(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(SENTENCE, encoding="utf-8")
    item = read(tmp_path / "a.conllu")[0]
    edges = np.array([[2, 0], [0, 1], [2, 3], [2, 4]])
    changed = replace(
        item, structure=replace(item.structure, edges=edges, relations=("aux", "new", "vocative", "punct"))
    )
    text = as_text(changed, "conllu")
    assert text == SENTENCE.replace("2\tn't\tnot\tPART\t_\t_\t3\tadvmod", "2\tn't\tnot\tPART\t_\t_\t1\tnew")


def test_a_changed_enhanced_graph_is_written_with_its_change(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(SENTENCE, encoding="utf-8")
    item = read(tmp_path / "a.conllu", graph="enhanced")[0]
    keep = [edge != "appos" for edge in item.structure.relations]
    relations = tuple(edge for edge in item.structure.relations if edge != "appos")
    structure = replace(item.structure, edges=item.structure.edges[keep], relations=relations)
    assert as_text(replace(item, structure=structure), "conllu") == SENTENCE.replace("|3.1:appos", "")


@given(trees(units=False))
@examples(60)
def test_every_tree_comes_back_in_its_reading_order(made: Structure) -> None:
    _there_and_back(made, "basic")


@given(digraphs(units=False, connected=True))
@examples(60)
def test_every_digraph_comes_back_as_enhanced_dependencies(made: Structure) -> None:
    if made.root is None and not len(made.edges):
        made = replace(made, root=0)
    _there_and_back(made, "enhanced")


def _there_and_back(made: Structure, graph: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.conllu"
        structpe.write([made], file, graph=graph)
        back = structpe.read(file, graph=graph)[0].structure
    ordered = made if made.order is None else relabelled(made, made.order)[0]
    assert back.nodes == ordered.nodes
    assert back.root == ordered.root
    expected = [(*edge, ordered.relation(i) or "_") for i, edge in enumerate(ordered.edges.tolist())]
    found = [(*edge, relation) for edge, relation in zip(back.edges.tolist(), back.relations, strict=True)]
    assert sorted(expected) == sorted(found)


def test_what_cannot_be_said_is_named() -> None:
    pair = structpe.path(["a", "b"])
    both = Structure(("a", "b"), [[0, 1], [1, 0]])  # type: ignore[arg-type]
    for given_item, options, message in [
        (both, {}, "a tree has one root, this graph has 0: none; graph='enhanced' writes any digraph"),
        (replace(pair, directed=False), {}, "the edges are undirected; CoNLL-U has edges from head to dependent"),
        (structpe.path(["a\tb"]), {}, "'a\\tb' cannot be written in a field of CoNLL-U; give a text without tabs"),
        (
            pair,
            {"graph": "tree"},
            "'graph' of writer 'conllu' takes one of 'basic', 'enhanced' or null",
        ),
        (Item(pair, metadata={"upos": ("X",)}), {}, "metadata 'upos' has 1 values for 2 nodes; give one per node"),
        (Item(pair, metadata={"ranges": (("3-4",) * 10,)}), {}, "metadata 'ranges' has '3-4', but there is no word 3"),
        (Item(pair, metadata={"text": "a\nb"}), {}, "'# text = a\\nb' cannot be written in a comment of CoNLL-U"),
        (structpe.path(["\ud800"]), {}, "a text has a lone surrogate ('\\ud800'), which cannot be written"),
    ]:
        with pytest.raises(WriteError) as caught:
            as_text(given_item, "conllu", **options)
        assert message in str(caught.value)


def test_items_that_cannot_be_said_may_be_skipped(tmp_path: Path) -> None:
    skipped: list[Skipped] = []
    bad = structpe.path(["a\tb"], name="here:2")
    assert write([structpe.path(["a"]), bad, structpe.path(["c"])], tmp_path / "a.conllu", skip=skipped.append) == 2
    assert [place for place, _ in skipped] == ["item 2 (here:2)"]
    assert [item.structure.nodes for item in read(tmp_path / "a.conllu")] == [("a",), ("c",)]


def test_the_two_ways_share_no_fields_by_accident(tmp_path: Path) -> None:
    text = SENTENCE.replace("# newpar", "# graph = enhanced\n# ranges = 5\n# empty = 6\n# misc = 7")
    (tmp_path / "a.conllu").write_text(text, encoding="utf-8")
    for graph in ("basic", "enhanced"):
        assert as_text(read(tmp_path / "a.conllu", graph=graph)[0], "conllu") == text


def test_enhanced_heads_are_in_reading_order() -> None:
    structure = Structure(("b", "a", "c"), [(0, 2), (1, 2)], ("x", "y"), order=np.array([1, 0, 2]), root=2)
    assert "\t0:root|1:y|2:x\t" in as_text(Item(structure, id="1"), "conllu", graph="enhanced")

"""graph6 and its kin: the graph comes back, and networkx reads the same."""

from __future__ import annotations

from dataclasses import replace

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import structpe
import structpe.formats.text
from structpe import Structure
from structpe.formats import as_text
from structpe.formats.graph6 import graph6
from structpe.formats.writing import WriteError
from tests.examples import examples
from tests.strategies import digraphs, undirected


def edges(structure: Structure) -> list[list[int]]:
    pairs = structure.edges.tolist()
    return sorted(pairs if structure.directed else map(sorted, pairs))


@given(st.one_of(undirected(units=False), digraphs(units=False), undirected(most=70, units=False)), st.data())
@examples(150)
def test_every_graph_comes_back(made: Structure, data: st.DataObject) -> None:
    if made.directed:
        made = replace(made, edges=np.unique(made.edges, axis=0).reshape(-1, 2), relations=())
        kind = data.draw(st.sampled_from([None, "digraph6"]))
    else:
        kind = data.draw(st.sampled_from([None, "sparse6"]))
    text = as_text(made, "graph6", labels="drop", kind=kind)
    back = graph6(text)
    assert (back.size, back.directed) == (made.size, made.directed)
    assert edges(back) == edges(made)
    if not made.directed and made.size > 1:
        read = networkx.from_sparse6_bytes if text.startswith(":") else networkx.from_graph6_bytes
        found = read(text.strip().encode())
        assert sorted(sorted(edge[:2]) for edge in found.edges) == edges(made)


@pytest.mark.parametrize("size", [1, 62, 63, 300])
def test_the_text_is_that_of_networkx(size: int) -> None:
    graph = networkx.gnp_random_graph(size, 0.1, seed=size)
    made = Structure(("",) * size, np.array(graph.edges, dtype=np.int64).reshape(-1, 2), directed=False)
    assert as_text(made, "graph6").encode() == networkx.to_graph6_bytes(graph, header=False)


def test_a_large_sparse_graph_is_written_sparsely(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = np.stack([np.arange(30_000), np.roll(np.arange(30_000), -1)], axis=1)
    made = Structure(("",) * 30_000, ring, directed=False)
    text = as_text(made, "graph6")
    assert text.startswith(":~")
    assert edges(graph6(text)) == edges(made)
    large = graph6(as_text(Structure(("",) * 260_000, np.array([[3, 259_999]]), directed=False), "graph6"))
    assert (large.size, edges(large)) == (260_000, [[3, 259_999]])
    monkeypatch.setattr(structpe.formats.text, "LIMIT", 100)
    with pytest.raises(WriteError, match="the line of graph6 would be too long"):
        as_text(Structure(("",) * 100, ring[:9], directed=False), "graph6", kind="graph6")


def test_what_cannot_be_said_is_named() -> None:
    bare = Structure(("", ""), np.array([[0, 1], [1, 0]]), directed=False)
    for thing, options, message in [
        (
            structpe.path(["a"]),
            {},
            "graph6 cannot store labels, and nodes or edges have some; give labels='drop' to drop",
        ),
        (bare, {"kind": "graph6"}, "graph6 cannot store loops and parallel edges; give kind 'sparse6'"),
        (
            bare,
            {"kind": "digraph6"},
            "digraph6 cannot store undirected edges; give kind graph6 or spa",
        ),
        (
            replace(bare, directed=True),
            {"kind": "sparse6"},
            "sparse6 cannot store directed edges; give",
        ),
        (
            Structure(("", ""), np.array([[0, 1], [0, 1]])),
            {},
            "digraph6 cannot store parallel edges; leave out all but",
        ),
        (bare, {"kind": "g6"}, "takes one of 'graph6', 'sparse6', 'digraph6' or null; given is 'g6'"),
        (bare, {"labels": "keep"}, "takes one of 'refuse', 'drop'; given is 'keep'"),
    ]:
        with pytest.raises(WriteError) as caught:
            as_text(thing, "graph6", **options)
        assert message in str(caught.value)

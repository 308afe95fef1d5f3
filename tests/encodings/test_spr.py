from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from structpe.encodings import UNREACHABLE, Depth, Distance, SPRRelative
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from tests.datasets import corpus
from tests.examples import examples
from tests.strategies import trees


def to_root(structure: Structure) -> list[list[int]]:
    """The nodes from each node up to the root, both included; from the edges alone."""
    parent = {int(target): int(source) for source, target in structure.edges}
    ways = []
    for node in range(structure.size):
        way = [node]
        while way[-1] in parent:
            way.append(parent[way[-1]])
        ways.append(way)
    return ways


def literal(structure: Structure) -> list[list[int]]:
    """Section 4.3.1 of the survey, for nodes."""
    ways, order = to_root(structure), structure.order
    assert order is not None
    result = [[0] * structure.size for _ in ways]
    for t in range(structure.size):
        for s in range(structure.size):
            abs_t, abs_s = len(ways[t]) - 1, len(ways[s]) - 1
            if t in ways[s] or s in ways[t]:
                result[t][s] = abs_t - abs_s
            else:
                result[t][s] = (1 if order[t] > order[s] else -1) * (abs_t + abs_s)
    return result


@examples(50)
@given(tree=trees(units=False))
def test_it_is_the_formula(tree: Structure) -> None:
    assert SPRRelative().one(tree).pairs().tolist() == literal(tree)


def test_the_two_children_of_a_root_are_two_apart() -> None:
    tree = Structure(("saw", "we", "stars"), [[0, 1], [0, 2]], order=np.array([1, 0, 2]), root=0)
    assert SPRRelative().one(tree).pairs().tolist() == [[0, -1, -1], [1, 0, -2], [1, 2, 0]]


def test_it_needs_an_order_and_a_tree() -> None:
    with pytest.raises(EncodingError, match="encoding 'spr-relative': the structure has no reading order, which tells"):
        SPRRelative().one(Structure(("a", "b"), [[0, 1]]))
    with pytest.raises(
        EncodingError, match=r"needs a tree whose edges lead away .*: node 1 \('b'\) has two parents, 0 a"
    ):
        SPRRelative().one(Structure(("a", "b"), [[0, 1], [0, 1]], order=np.arange(2)))
    with pytest.raises(EncodingError, match=r"root is node 1 \('b'\), but .* lead away from node 0 \('a'\); giv"):
        SPRRelative().one(Structure(("a", "b"), [[0, 1]], order=np.arange(2), root=1))


def test_real_trees() -> None:
    """Dependency trees of the development part of UD English-EWT, every tenth, against the formulas written out."""
    structures = dependency_trees(corpus("ud/EWT/en_ewt-ud-dev.conllu").read_text(encoding="utf-8"))
    assert len(structures) == 2001
    assert sum(s.size for s in structures) == 25147
    structures = structures[::10]
    relative, depth, distance = (e.many(structures) for e in (SPRRelative(), Depth(), Distance()))
    for i, structure in enumerate(structures):
        ways = to_root(structure)
        assert depth[i].values.tolist() == [len(way) - 1 for way in ways]
        assert relative[i].pairs().tolist() == literal(structure)
        assert distance[i].pairs().tolist() == [[down(t, s) for s in ways] for t in ways]


def down(t: list[int], s: list[int]) -> int:
    """Signed distance in a tree whose edges lead down, from the ways of two nodes to the root."""
    return len(s) - len(t) if t[0] in s or s[0] in t else UNREACHABLE


def dependency_trees(conllu: str) -> list[Structure]:
    trees = []
    for block in conllu.strip().split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if not line.startswith("#")]
        rows = [row for row in rows if row[0].isdigit()]
        heads = [int(row[6]) - 1 for row in rows]
        edges = np.array([(head, i) for i, head in enumerate(heads) if head >= 0], dtype=int).reshape(-1, 2)
        trees.append(Structure([r[1] for r in rows], edges, order=np.arange(len(rows)), root=heads.index(-1)))
    return trees


def test_one_word_is_a_tree() -> None:
    assert SPRRelative().one(path(["Go"])).pairs().tolist() == [[0]]

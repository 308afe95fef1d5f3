"""Models of trees other than tpe: Code Transformer, two-dimensional positions, steps to the lowest common ancestor."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given
from torch import Tensor
from torch.nn import functional

from structpe.attention import attend
from structpe.encodings import (
    UNREACHABLE,
    AncestorDistance,
    Binned,
    ChildPath,
    Distance,
    LowestCommonAncestor,
    Offset,
    ParentChild,
    PersonalizedPageRank,
    SiblingDistance,
    UndirectedDistance,
)
from structpe.errors import EncodingError, PositionError
from structpe.positions import Dims, PositionModel, Site
from structpe.positions.batch import encode
from structpe.positions.trees import CodeTransformer, LowestCommonAncestorTables, Peng
from structpe.structure import Structure, path
from structpe.terms import Terms
from tests.examples import examples
from tests.golden import golden
from tests.positions.cases import made, noise
from tests.positions.waves import wave
from tests.strategies import trees

# r(a(c, d(g, h), e), b)
TREE = Structure(
    tuple("racdgheb"), [[0, 1], [1, 2], [1, 3], [3, 4], [3, 5], [1, 6], [0, 7]], order=list(range(8)), root=0
)


def terms_of(model: PositionModel, structure: Structure, layer: int = 0) -> Terms:
    return model.terms(model.prepare(encode([structure], model.encodings)), Site(layer))


def up(structure: Structure, node: int) -> Iterator[int]:
    """A node and its ancestors."""
    parent = {int(target): int(source) for source, target in structure.edges}
    while True:
        yield node
        if node not in parent:
            return
        node = parent[node]


def weights(score: Tensor) -> Tensor:
    return torch.softmax(score, dim=-1)


# --- Code Transformer ---


def test_the_code_transformer_pair_by_pair() -> None:
    n, dims = TREE.size, Dims(12, 3, 2)
    model = made("code-transformer", dims)
    raw = [PersonalizedPageRank(), AncestorDistance(), SiblingDistance(), UndirectedDistance(), Offset()]
    values = [Binned(encoding).one(TREE).pairs() for encoding in raw]
    q, k, v = noise(3, 1, 3, n, 4)
    for layer in range(2):
        score = torch.zeros(3, n, n, dtype=torch.float64)
        for h in range(3):
            for i in range(n):
                for j in range(n):
                    total = (q[0, h, i] + model.content[layer, h]) @ k[0, h, j]
                    for r in range(5):
                        b = 10000.0 if values[r][i, j] == UNREACHABLE else float(values[r][i, j])
                        angles = [float(np.float32(b) * np.float32(10000 ** (-2 * c / 12))) for c in range(6)]
                        wave = [*map(math.sin, angles), *map(math.cos, angles)]
                        linear = model.project[layer * 5 + r]
                        key = linear.weight @ torch.tensor(wave, dtype=torch.float64) + linear.bias
                        total = total + (q[0, h, i] + model.position[layer, r, h]) @ key[4 * h : 4 * h + 4]
                    score[h, i, j] = total / 2
        expected = weights(score) @ v[0]
        out = attend(q, k, v, terms_of(model, TREE, layer), "dense")
        torch.testing.assert_close(out[0], expected, rtol=0, atol=1e-9)


def test_the_code_transformer_with_other_distances() -> None:
    model = made("code-transformer", encoding=(Distance(), Offset()))
    assert len(terms_of(model, path("abc")).key) == 2
    split = path("ab").with_units(list("aab"), [0, 0, 1])
    (by_distance, by_offset) = model.prepare(encode([split], model.encodings))
    torch.testing.assert_close(by_distance.dense()[0, 0, :2], by_offset.dense()[0, 0, :2])  # units count their places
    with pytest.raises(PositionError, match="needs one distance or more; none is given"):
        CodeTransformer(Dims(8, 2, 1), encoding=())


# --- ways from the root, and parents and children ---


@examples(40)
@given(tree=trees())
def test_ways_and_relations_number_children_among_siblings(tree: Structure) -> None:
    depth, width = 3, 2
    rank = tree.order.tolist()

    def number(node: int) -> int:
        parent = list(up(tree, node))[1:2]
        siblings = sorted((int(t) for s, t in tree.edges if [int(s)] == parent), key=lambda v: rank[v]) or [node]
        i, n = min(siblings.index(node) + 1, width), min(len(siblings), width)
        return i + n * (n - 1) // 2

    ways, related = ChildPath(depth, width).one(tree).values, ParentChild(width).one(tree).pairs()
    for u, mine in enumerate(tree.unit_owner.tolist()):
        way = [number(node) for node in reversed(list(up(tree, mine)))][:depth]
        assert ways[u].tolist() == way + [0] * (depth - len(way))
        for w, other in enumerate(tree.unit_owner.tolist()):
            above, below = list(up(tree, other))[1:2] == [mine], list(up(tree, mine))[1:2] == [other]
            assert related[u, w] == (number(other) if above else -number(mine) if below else 0)


def test_no_two_places_among_siblings_have_one_number() -> None:
    seen = [i + n * (n - 1) // 2 for n in range(1, 17) for i in range(1, n + 1)]
    assert sorted(seen) == list(range(1, 137))
    star = Structure(("x",) * 6, [[0, i] for i in range(1, 6)])
    assert ChildPath().one(star).values[1:, 1].tolist() == [11, 12, 13, 14, 15]


def test_peng_pair_by_pair() -> None:
    n, dims = TREE.size, Dims(12, 3, 2)
    model = made("peng", dims, encoding=ChildPath(3, 3), relation=ParentChild(3), embedding=4)
    ways, related = ChildPath(3, 3).one(TREE).values, ParentChild(3).one(TREE).pairs()
    table = torch.cat([torch.zeros(1, 4, dtype=torch.float64), model.embedding.weight[1:]])

    def normal(x: Tensor, layer: torch.nn.LayerNorm) -> Tensor:
        return functional.layer_norm(x, (12,), layer.weight, layer.bias, 1e-5)

    first, second = model.ways
    z = [normal(first(torch.cat([table[step] for step in ways[u]])), second) for u in range(n)]
    inner, outer = model.relations
    q, k, v = noise(3, 1, 3, n, 4)
    score = torch.zeros(3, n, n, dtype=torch.float64)
    for i in range(n):
        for j in range(n):
            r = int(related[i, j])
            y = normal(inner(table[abs(r)] * (-1 if r < 0 else 1)), outer)
            a, b = model.of_ways[0](z[i]), model.of_ways[1](z[j])
            to_key, to_query = model.of_relations[0](y), model.of_relations[1](y)
            for h in range(3):
                c = slice(4 * h, 4 * h + 4)
                content, ways_score = q[0, h, i] @ k[0, h, j], a[c] @ b[c]
                local = q[0, h, i] @ to_query[c] + to_key[c] @ k[0, h, j]
                score[h, i, j] = (content + ways_score + local) / math.sqrt(4 * 4)
    for layer in range(2):
        out = attend(q, k, v, terms_of(model, TREE, layer), "dense")
        torch.testing.assert_close(out[0], weights(score) @ v[0], rtol=0, atol=1e-9)


def test_peng_needs_one_width() -> None:
    with pytest.raises(PositionError, match="of one width and an embedding of 1 or more; given are widths 4 and 16"):
        Peng(Dims(8, 2, 1), ChildPath(width=4))
    for wrong in ({"depth": 0}, {"width": 0}):
        with pytest.raises(EncodingError, match=f"{next(iter(wrong))} is 0; give 1 or more"):
            ChildPath(**wrong)


# --- steps to the lowest common ancestor ---


def test_steps_by_hand() -> None:
    steps = LowestCommonAncestor().one(TREE).pairs()
    assert steps[4].tolist() == [[3, 0], [2, 0], [2, 1], [1, 0], [0, 0], [1, 1], [2, 1], [3, 1]]


@examples(40)
@given(tree=trees())
def test_steps_lead_up_and_down(tree: Structure) -> None:
    whole, cut = LowestCommonAncestor().one(tree).pairs(), LowestCommonAncestor(max_distance=2).one(tree).pairs()
    for u, mine in enumerate(tree.unit_owner.tolist()):
        for w, other in enumerate(tree.unit_owner.tolist()):
            here, there = list(up(tree, mine)), list(up(tree, other))
            meeting = next(node for node in here if node in there)
            expected = [here.index(meeting), there.index(meeting)]
            assert whole[u, w].tolist() == expected
            assert cut[u, w].tolist() == [min(steps, 2) for steps in expected]


def test_steps_are_vectors_at_keys_and_values() -> None:
    model, n = made("lowest-common-ancestor", Dims(12, 3, 2), max_distance=2), TREE.size
    steps = LowestCommonAncestor().one(TREE).pairs()
    q, k, v = noise(3, 1, 3, n, 4)
    for layer in range(2):
        expected = torch.zeros(3, n, 4, dtype=torch.float64)
        for h in range(3):
            for i in range(n):
                rows = [min(int(steps[i, j, 0]), 2) * 3 + min(int(steps[i, j, 1]), 2) for j in range(n)]
                scores = [q[0, h, i] @ (k[0, h, j] + model.keys.weight[layer, rows[j], 0]) / 2 for j in range(n)]
                for j, weight in enumerate(weights(torch.stack(scores))):
                    expected[h, i] += weight * (v[0, h, j] + model.values.weight[layer, rows[j], 0])
        out = attend(q, k, v, terms_of(model, TREE, layer), "dense")
        torch.testing.assert_close(out[0], expected, rtol=0, atol=1e-9)


def test_steps_on_a_path_are_offsets() -> None:
    """One table row per clipped offset, as in Shaw et al. 2018, though numbered otherwise."""
    steps, offsets = LowestCommonAncestor().one(path("abcd")).pairs(), Offset().one(path("abcd")).pairs()
    assert (steps[..., 1] - steps[..., 0] == offsets).all()
    assert (steps.min(-1) == 0).all()


def test_invalid_steps_are_refused() -> None:
    with pytest.raises(PositionError, match=r"'max_distance' of position model .* is 0; give 1 or more"):
        LowestCommonAncestorTables(Dims(8, 2, 1), max_distance=0)
    with pytest.raises(PositionError, match="needs two numbers per pair, steps up and down; 'offset' gives others"):
        terms_of(LowestCommonAncestorTables(Dims(8, 2, 1), Offset()), TREE)


# --- AST-Trans ---


def test_ast_trans_is_its_authors_code() -> None:
    """Their tables have a row for r = 0, which is zero, and one in front of all, which is not used."""
    model = made("ast-trans", Dims(12, 3, 1), max_distance=2, ancestor_heads=2)
    with torch.no_grad():
        for which, shift in enumerate((1.5, 0.5, 2.5)):  # of keys, queries and values
            for relation in range(2):
                theirs = wave(6, 4, shift=shift + 5 * relation)
                model.tables[which, relation] = theirs[[1, 2, 4, 5]]
        q, k, v = (wave(1, 3, 8, 4, shift=shift) for shift in (0.0, 1.0, 2.0))
        out = attend(q, k, v, terms_of(model, TREE), "dense")
    torch.testing.assert_close(out, golden("ast_trans")["out.attention"], rtol=0, atol=1e-13)


def test_ast_trans_treats_the_units_of_a_node_as_one() -> None:
    split = TREE.with_units(list("raaccdghebb"), [0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 7])
    model = made("ast-trans", Dims(8, 2, 1))
    terms = terms_of(model, split)
    for lookup in (*terms.bias, *terms.key, *terms.value):
        pairs = lookup.dense()[0]
        assert torch.equal(pairs[1], pairs[2])
        assert torch.equal(pairs[:, 1], pairs[:, 2])
        assert not pairs[1, 2].any()
    with pytest.raises(PositionError, match="has 2 heads, and 3 are to attend to ancestors; give 0 to 2"):
        made("ast-trans", Dims(8, 2, 1), ancestor_heads=3)

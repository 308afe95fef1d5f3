"""Tree position encodings: the authors' numbers, and their widths."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from structpe.encodings.trees import BranchPath
from structpe.errors import EncodingError, PositionError
from structpe.formats import read
from structpe.positions import Dims, build
from structpe.positions.batch import encode
from structpe.positions.trees import TPE, TPEOneHot
from structpe.structure import Structure
from tests.datasets import SAMPLES, corpus
from tests.golden import golden
from tests.representatives import only

# r(a(c, d(g(i, j), h)), b(e, f)), nodes depth first
TREE = Structure(
    tuple("racdgijhbef"),
    [[0, 1], [1, 2], [1, 3], [3, 4], [4, 5], [4, 6], [3, 7], [0, 8], [8, 9], [8, 10]],
    order=list(range(11)),
    root=0,
)


def test_the_authors_numbers() -> None:
    given = golden("tpe_icecaps")
    model = TPE(Dims(given.cfg["d_model"], 1, 1), BranchPath(given.cfg["depth"], given.cfg["width"]), copies=2)
    with torch.no_grad():
        model.theta.copy_(given["w.tree_params"])
    positions = encode([TREE], model.encodings)
    out = model.inputs(torch.zeros(1, 11, 12), model.prepare(positions))
    torch.testing.assert_close(out[0], given["out.pe"].float(), rtol=0, atol=1e-5)
    assert model.claimed_params() == 2


def test_the_authors_paths_without_parameters() -> None:
    given = golden("tpe_icecaps")
    model = TPEOneHot(Dims(8, 1, 1), BranchPath(depth=3, width=2))
    out = model.inputs(torch.zeros(1, 11, 8), model.prepare(encode([TREE], model.encodings)))
    assert torch.equal(out[0, :, :6], given["in.onehot_paths"].float())
    assert not out[0, :, 6:].any()


def test_paths_fill_the_width_by_default() -> None:
    assert TPEOneHot(Dims(512, 8, 6)).encodings == (BranchPath(depth=256, width=2),)


def test_paths_wider_than_the_model_are_refused() -> None:
    with pytest.raises(PositionError, match="has 8 channels, and paths of 5 steps among 2 branches need 10"):
        TPEOneHot(Dims(8, 1, 1), BranchPath(depth=5, width=2))


def test_a_layer_leads_to_another_width() -> None:
    model = TPE(Dims(10, 1, 1), BranchPath(depth=3, width=2), copies=3)
    assert model.claimed_params() == 3 + 18 * 10 + 10 == sum(p.numel() for p in model.parameters())


def test_no_copy_is_refused() -> None:
    with pytest.raises(PositionError, match="'copies' of position model 'tpe' is 0; give 1 or more"):
        TPE(Dims(8, 1, 1), copies=0)


# --- trees wider than the table: every one fits into two branches by left child and right sibling ---

WIDE = Structure(
    ("r", *"abcdefg"), [[0, i] for i in range(1, 6)] + [[3, 6], [3, 7]], order=list(range(8)), root=0, name="wide"
)


def test_a_tree_that_is_too_wide_says_what_to_do() -> None:
    for model in (TPE(Dims(8, 2, 1)), TPEOneHot(Dims(8, 2, 1))):
        with pytest.raises(
            EncodingError, match=r"'r'\) has 5 children, the width is 2.*binary=True, which converts any"
        ):
            encode([WIDE], model.encodings)


def test_any_tree_fits_by_left_child_and_right_sibling() -> None:
    """The way to the third child of the root is left, right, right; that to its second child goes on left, right."""
    model = TPEOneHot(Dims(16, 2, 1), BranchPath(depth=8, width=2, binary=True))
    out = model.inputs(torch.zeros(1, 8, 16), model.prepare(encode([WIDE], model.encodings)))[0].reshape(8, 8, 2)
    left, right = [1.0, 0.0], [0.0, 1.0]
    assert out[3].tolist() == [right, right, left, *[[0.0, 0.0]] * 5]
    assert out[7].tolist() == [right, left, right, right, left, *[[0.0, 0.0]] * 3]
    assert len({tuple(row.flatten().tolist()) for row in out}) == 8  # all places are distinguished


def turns(tree: Structure, node: int, depth: int) -> list[list[float]]:
    """The way to a node by first children (left) and next siblings (right), the last turn first, of a fixed length."""
    parent, way = tree.parents(), []
    children = [sorted(np.flatnonzero(parent == v), key=lambda c: tree.order[c]) for v in range(tree.size)]
    while parent[node] >= 0:
        siblings = children[parent[node]]
        place = siblings.index(node)
        way.append([0.0, 1.0] if place else [1.0, 0.0])
        node = siblings[place - 1] if place else int(parent[node])
    return (way + [[0.0, 0.0]] * depth)[:depth]


@pytest.mark.parametrize("file", only(("sample", "en_ewt-ud-dev"), "sample"))
def test_real_trees_of_any_width_and_depth(file: str) -> None:
    """Dependency trees of sentences, whose heads have many dependents, and longer ways than are kept."""
    source = SAMPLES / "trees_sample" if file == "sample" else corpus("ud/EWT")
    trees = [each for each in read(source / f"{file}.conllu").structures if each.size > 1][:40]
    assert max(np.bincount(tree.parents() + 1)[1:].max() for tree in trees) > 3
    options = {"depth": 6, "width": 2, "binary": True}
    first = build({"name": "tpe-onehot", "encoding": {"name": "branch-path", **options}}, Dims(12, 2, 1))
    second = build({"name": "tpe", "encoding": {"name": "branch-path", **options}, "copies": 1}, Dims(12, 2, 1))
    decay = torch.tanh(second.theta)[0]
    for tree in trees:
        x = torch.zeros(1, tree.size, 12)
        expected = torch.tensor([turns(tree, node, 6) for node in range(tree.size)])
        assert torch.equal(first.inputs(x, first.prepare(encode([tree], first.encodings)))[0], expected.flatten(1))
        faded = torch.stack([expected[:, k] * decay**k * ((1 - decay**2) * 6).sqrt() for k in range(6)], dim=1)
        moved = second.inputs(x, second.prepare(encode([tree], second.encodings)))[0]
        torch.testing.assert_close(moved, faded.flatten(1))

"""What a structure refuses, and in which words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from structpe.errors import StructureError
from structpe.structure import Structure, path
from tests.together import together

NONE = np.zeros((0, 2), dtype=np.int64)


def structure(nodes: Any = ("a", "b", "c"), edges: Any = ((0, 1), (0, 2)), **options: Any) -> Structure:
    return Structure(nodes, edges, **options)


@together(
    "given, message",
    [
        ({"nodes": (), "edges": NONE}, "the graph has no node; a structure needs at least one"),
        ({"nodes": ("a", 7, "c")}, "the label of node 1 is 7; labels are texts, so give a str"),
        ({"edges": ((0, 1), (0, 3))}, "edge 1 is 0 -> 3, but the 3 nodes are 0..2"),
        ({"edges": ((-1, 1),)}, "edge 0 is -1 -> 1, but the 3 nodes are 0..2"),
        ({"edges": ((0.0, 1.0),)}, "edges have dtype float64; they number nodes, so give integers"),
        ({"edges": ((0, 1, 2),)}, "edges have shape (1, 3); give a row (source, target) per edge, shape (e, 2)"),
        (
            {"edges": np.array([[0, 1, 2], [1, 2, 0]])},
            "edges have shape (2, 3); give a row (source, target) per edge, shape (e, 2); of an edge_index, its trans",
        ),
        ({"edges": (0, 1)}, "edges have shape (2,); give a row (source, target) per edge, shape (e, 2)"),
        ({"edges": ((0, 1), (0,))}, "edges are not an array, as their rows differ in length: ((0, 1), (0,))"),
        ({"relations": ("x",)}, "1 relations for 2 edges; give one per edge, or none"),
        ({"root": 3}, "the root is 3, but the 3 nodes are 0..2"),
        ({"root": "a"}, "the root is 'a'; give the number of a node, or None"),
        ({"order": [0, 0, 1]}, "the order must be a permutation of 0..2, it is [0, 0, 1]"),
        ({"order": [0.0, 1.0, 2.0]}, "order have dtype float64; they number nodes, so give integers"),
        ({"units": ("a",)}, "units and owner come together: give the owner node of each unit, or neither"),
        ({"units": (), "owner": ()}, "0 units and 0 owners; give one owner per unit, at least one"),
        ({"units": ("a", "b"), "owner": [1, 0]}, "the owners must be nodes 0..2, never decreasing; they are [1, 0]"),
        (
            {"features": {"x": np.array([1.0, np.nan, 0.0])}},
            "feature 'x' is not finite in row 1; remove or fill NaN and infinity first",
        ),
        (
            {"features": {"edge_x": np.array([[1.0, 0.0], [0.0, np.inf]])}},
            "feature 'edge_x' is not finite in row 1; remove or fill NaN and infinity first",
        ),
        ({"features": {"x": np.zeros(2)}}, "feature 'x' has shape (2,); its first axis must have length 3"),
        ({"features": {"edge_x": np.zeros(3)}}, "feature 'edge_x' has shape (3,); its first axis must have length 2"),
        ({"features": {"x": np.array(["p"] * 3)}}, "feature 'x' has dtype <U1; give booleans, integers or floats"),
    ],
)
def test_what_is_no_structure_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(StructureError) as caught:
        structure(**given, name="file:item")
    assert str(caught.value).startswith(f"file:item: {message}")


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (((0, 2), (1, 2)), "node 2 ('c') has two parents, 0 and 1"),
        (((0, 1),), "a tree has one root, this graph has 2: 0 ('a'), 2 ('c')"),
        (((0, 1), (1, 2), (2, 0)), "a tree has one root, this graph has 0: none"),
        (((1, 2), (2, 1)), "these nodes lie on or below a cycle, a tree has none: 1 ('b'), 2 ('c')"),
        (((0, 1), (2, 2)), "these nodes lie on or below a cycle, a tree has none: 2 ('c')"),
    ],
)
def test_what_is_no_tree_is_named(edges: Any, message: str) -> None:
    graph = structure(edges=edges)
    assert not graph.is_tree()
    with pytest.raises(StructureError) as caught:
        graph.parents()
    assert str(caught.value) == message


def test_a_graph_without_edges_may_say_so_in_any_shape() -> None:
    for none in ((), [], NONE, np.zeros((2, 0), dtype=np.int64)):
        assert structure(("a",), none).edges.shape == (0, 2)


def test_a_path_needs_a_token() -> None:
    with pytest.raises(StructureError, match=r"^here: the graph has no node; a structure needs at least one$"):
        path([], name="here")

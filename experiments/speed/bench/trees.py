"""Of trees: where the ways of two nodes to the root meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx
import numpy as np
from numpy.typing import NDArray
from peers import networkx_graph, rustworkx, rustworkx_graph
from quantities import Peer, Quantity

from structpe.encodings import Depth, Encoded, LowestCommonAncestor, SPRRelative
from structpe.structure import Structure

__all__ = ["TREES"]


def _pairs(_: Structure, encoded: Encoded) -> NDArray[np.int64]:
    return encoded.pairs()


def _up_and_down(structure: Structure, lowest: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n, n, 2) steps up and down between two nodes, from their lowest common ancestors (n, n)."""
    depth = Depth().one(structure).values
    return np.stack([depth[:, None] - depth[lowest], depth[None, :] - depth[lowest]], axis=-1)


def _of_networkx(structure: Structure, pairs: Sequence[tuple[tuple[int, int], int]]) -> NDArray[np.int64]:
    """It lists each pair in one order only."""
    lowest = np.full((structure.size, structure.size), -1)
    for (one, other), ancestor in pairs:
        lowest[one, other] = lowest[other, one] = ancestor
    return _up_and_down(structure, lowest)


def _by_networkx(tree: tuple[Any, int]) -> Sequence[tuple[tuple[int, int], int]]:
    return list(networkx.tree_all_pairs_lowest_common_ancestor(*tree))


def _doc(structure: Structure) -> Any:
    """A parse as spaCy holds it."""
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

    parents = structure.parents()
    heads = [int(parent) if parent >= 0 else node for node, parent in enumerate(parents)]
    return Doc(Vocab(), words=list(structure.nodes), heads=heads, deps=["dep"] * structure.size)


def _distances(tree: Any) -> NDArray[np.float64]:
    lengths: NDArray[np.float64] = rustworkx().distance_matrix(tree)
    return lengths


TREES = (
    Quantity(
        LowestCommonAncestor(),
        _pairs,
        (
            Peer("networkx", lambda s: (networkx_graph(s), s.root), _by_networkx, _of_networkx),
            Peer(
                "spaCy", _doc, lambda doc: doc.get_lca_matrix(), lambda s, lowest: _up_and_down(s, np.asarray(lowest))
            ),
        ),
        ("parses",),
    ),
    Quantity(
        LowestCommonAncestor(),
        lambda _, encoded: encoded.pairs().sum(-1).astype(np.float64),
        (
            Peer(
                "rustworkx",
                rustworkx_graph,
                _distances,
                lambda _, lengths: np.asarray(lengths),
                lambda structure: _distances(rustworkx_graph(structure)),
                named="rustworkx, distances only; ours: with spr-relative and depth",
            ),
        ),
        ("trees of parses",),
        beside=(SPRRelative(), Depth()),
    ),
)

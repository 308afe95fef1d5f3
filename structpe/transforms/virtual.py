"""A virtual node, which represents the whole graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.structure import Structure, of_structures

__all__ = ["with_virtual_node"]


@of_structures
def with_virtual_node(structure: Structure, label: str = "[GRAPH]") -> Structure:
    """The structure with one more node in front, whose feature ``virtual`` is 1; that of all others is 0.

    It has no edges, so distances, degrees and eigenvectors of the others do not change. A position model decides what
    attention to it means: Graphormer has a special distance for it. It is read first, its other features are 0, the
    root does not change, and if nodes are split into units, it has one.

    Raises:
        StructureError: the structure already has a virtual node.
    """
    if "virtual" in structure.features and np.asarray(structure.features["virtual"]).any():
        raise structure.error("the structure has a virtual node already; give it one only")
    features = {key: v if key.startswith("edge_") else _led_by_zero(v) for key, v in structure.features.items()}
    return replace(
        structure,
        nodes=(label, *structure.nodes),
        edges=structure.edges + 1,
        order=None if structure.order is None else np.concatenate([[0], structure.order + 1]),
        root=None if structure.root is None else structure.root + 1,
        units=None if structure.units is None else (label, *structure.units),
        owner=None if structure.owner is None else np.concatenate([[0], structure.owner + 1]),
        features={**features, "virtual": np.arange(structure.size + 1) == 0},
    )


def _led_by_zero(values: NDArray[Any]) -> NDArray[Any]:
    values = np.asarray(values)
    return np.concatenate([np.zeros_like(values[:1]), values])

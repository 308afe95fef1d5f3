"""Special tokens as children of the root, so that a tree stays a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.structure import Structure

__all__ = ["SPECIAL", "hung_on_root"]

SPECIAL = "special"
"""The relation of such a node to the root."""


def hung_on_root(structure: Structure, front: Sequence[str], back: Sequence[str]) -> Structure:
    """The structure with nodes added before and after its own, in number and in order; their features are 0.

    Raises:
        StructureError: the structure has no root.
    """
    if structure.root is None:
        raise structure.error("the structure has no root for special tokens; give them to the border nodes")
    led, count = len(front), len(front) + len(back)
    behind = np.arange(led + structure.size, structure.size + count)
    new = np.concatenate([np.arange(led), behind])
    root, order = structure.root + led, structure.order
    labelled = structure.relations or not len(structure.edges)
    return replace(
        structure,
        nodes=(*front, *structure.nodes, *back),
        edges=np.concatenate([structure.edges + led, np.column_stack([np.full(count, root), new])]),
        relations=(*structure.relations, *[SPECIAL] * count) if labelled else (),
        order=None if order is None else np.concatenate([np.arange(led), order + led, behind]),
        root=root,
        units=None,
        owner=None,
        features={
            name: _padded(value, (0, count) if name.startswith("edge_") else (led, len(back)))
            for name, value in structure.features.items()
        },
    )


def _padded(values: NDArray[Any], rows: tuple[int, int]) -> NDArray[Any]:
    """Add rows of zeros before and after."""
    values = np.asarray(values)
    return np.pad(values, [rows, *[(0, 0)] * (values.ndim - 1)])

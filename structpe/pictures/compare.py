"""How far attention depends on where a text begins and on how nodes are numbered, for a model before training.

Two changes of a structure, of which a user would expect no effect on the attention between its nodes:

* *shift*: five nodes are put before the others in reading order. They go on from the first node in a sequence, and are
  further children of the root in other structures.
* *renumbering*: the same graph with its nodes and edges in another order. The reading order is kept.

With attention A before and A' after, over the same nodes, and rows of A' divided by their sums, the share of attention
that moves is the mean over layers, heads and queries q of ``1/2 sum_k |A'_qk - A_qk|``: 0 if nothing moves, 1 if no
query attends to a node that it attended to before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from structpe.errors import StructPEError
from structpe.pictures.head_patterns import Untrained, of_encoder
from structpe.pictures.heat import Heat, in_order, unit_names
from structpe.pictures.layout import form_of
from structpe.pictures.style import PictureError
from structpe.structure import Structure
from structpe.transforms import renumbered

__all__ = ["SHIFT", "Change", "changes", "shifted"]

SHIFT = 5
"""Number of nodes that are put before the others."""


@dataclass(frozen=True, eq=False)
class Change:
    """What a change of the structure does to attention.

    Attributes:
        title: the change.
        moved: the share of attention that moves, from 0 to 1; NaN if it cannot be measured.
        heat: the mean over layers and heads of attention after the change minus attention before.
        why: why it cannot be measured; empty if it can.
    """

    title: str
    moved: float
    heat: Heat | None = None
    why: str = ""


def shifted(structure: Structure, by: int = SHIFT) -> Structure:
    """A structure with nodes put before all others in reading order; node i becomes node i + by.

    The new nodes have the label, the features and the relation of the first node and the first edge.

    Raises:
        PictureError: there is no reading order, or neither a root nor a sequence to which nodes could be joined.
    """
    if structure.order is None:
        raise PictureError("it has no reading order, so nothing can come before its nodes")
    first, new = int(structure.reading[0]), np.arange(by)
    if form_of(structure) == "sequence":
        joined, root = np.stack([new, np.append(new[1:], first + by)], axis=1), 0
    elif structure.root is not None:
        joined, root = np.stack([np.full(by, structure.root + by), new], axis=1), structure.root + by
    else:
        raise PictureError("it has no root to which further nodes could be joined")
    edges = np.concatenate([joined, structure.edges + by])
    return replace(
        structure,
        nodes=(structure.nodes[first],) * by + structure.nodes,
        edges=edges,
        relations=structure.relations[:1] * by + structure.relations,
        order=np.concatenate([new, structure.order + by]),
        root=root,
        features={name: _longer(np.asarray(value), by, len(edges), name) for name, value in structure.features.items()},
    )


def _longer(values: NDArray[np.generic], by: int, edges: int, name: str) -> NDArray[np.generic]:
    """A feature with its first row repeated for new nodes or edges."""
    if not len(values):  # a structure of one node has no edge, whose features could be repeated
        return np.zeros((edges, *values.shape[1:]), dtype=values.dtype)
    return np.concatenate([np.repeat(values[:1], by, axis=0), values])


def changes(structure: Structure, model: Untrained) -> Iterator[Change]:
    """The effect of a shift and of a renumbering on a model before training; units are ignored, nodes count.

    Raises:
        EncodingError, PositionError, PictureError: the model does not fit the structure itself.
    """
    bare = replace(structure, units=None, owner=None)
    before = _attention(bare, model)
    same = np.arange(bare.size)
    yield _change(f"{SHIFT} nodes before it", bare, model, before, lambda: (shifted(bare), same + SHIFT))
    seed = 0
    number = np.random.default_rng(seed).permutation(bare.size)  # the first that `renumbered` draws
    yield _change(
        "nodes renumbered", bare, model, before, lambda: (renumbered(bare, np.random.default_rng(seed)), number)
    )


def _change(
    title: str,
    structure: Structure,
    model: Untrained,
    before: NDArray[np.float64],
    make: Callable[[], tuple[Structure, NDArray[np.int64]]],
) -> Change:
    """Compare attention before with that on another structure, whose nodes ``at`` are those of the first."""
    try:
        other, at = make()
        found = _attention(other, model)[..., at[:, None], at]
    except StructPEError as error:
        return Change(title, float("nan"), why=error.message)
    total = found.sum(axis=-1, keepdims=True)
    found = np.divide(found, total, out=np.zeros_like(found), where=total > 0)
    read, names = in_order(structure), unit_names(structure)
    mean = (found - before).mean(axis=(0, 1))[np.ix_(read, read)].round(9)
    return Change(title, float(np.abs(found - before).sum(axis=-1).mean() / 2), Heat(title, mean, names, names))


def _attention(structure: Structure, model: Untrained) -> NDArray[np.float64]:
    """(l, h, n, n) attention weights."""
    weights: NDArray[np.float64] = of_encoder(structure, model.position, model.seed).attention.numpy()
    return weights

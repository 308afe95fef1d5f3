"""Distances in space between units, with the labels of their nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._encoded import narrow
from structpe.encodings._rounding import significant
from structpe.encodings.base import Encoded, Encoding, check_all_pairs, check_key
from structpe.structure import Structure

__all__ = ["Euclidean"]

_FAR = 1e30  # models read distances in float32, squared


@dataclass(frozen=True)
class Euclidean(Encoding, name="euclidean"):
    """(|x_t - x_s|, label of t, label of s) of the nodes of query t and key s: values (r, 3), float64.

    x is the row of a node in a feature of the structure, with any number of coordinates; a structure without it is a
    line, and x the place of a node in reading order. Labels are numbers: 1 + i is ``labels[i]``, 0 an unknown label.
    All units of a node are at its place.
    Distances have 11 significant digits, so that equal ones are one value. (For Graphormer-3D, Shi et al. 2022.)

    Args:
        labels: the known labels of nodes, such as the elements of atoms; :meth:`fit` finds them.
        key: name of the feature.

    Raises:
        EncodingError: the structure has neither the feature nor an order.
    """

    arity = 2
    causal = True
    real = True
    version = 2

    labels: tuple[str, ...] = ()
    key: str = "coordinates"

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        check_key(self, self.key)

    def fit(self, structures: Sequence[Structure]) -> Euclidean:
        return replace(self, labels=tuple(sorted({label for s in structures for label in s.nodes})))

    def one(self, structure: Structure) -> Encoded:
        check_all_pairs(self, [structure])  # before the coordinates are read, which may be missing
        places = self._places(structure)
        check_all_pairs(self, [structure], max(3, places.shape[1]))
        numbers = {label: i for i, label in enumerate(self.labels, start=1)}
        labels = np.array([numbers.get(label, 0) for label in structure.nodes])
        if (farthest := np.abs(places).max(initial=0)) > _FAR:
            raise self.error(structure, f"feature {self.key!r} reaches to {farthest:g}; give it in larger units")
        apart = significant(np.sqrt(((places[:, None] - places[None, :]) ** 2).sum(axis=-1)))
        distances, which = np.unique(apart, return_inverse=True)
        # One number per triple, with three digits: sorting numbers is faster than sorting rows.
        known = len(self.labels) + 1
        number = (which.reshape(apart.shape) * known + labels[:, None]) * known + labels[None, :]
        distinct, index = np.unique(number, return_inverse=True)
        values = np.column_stack([distances[distinct // known**2], distinct // known % known, distinct % known])
        owner = structure.unit_owner
        return Encoded(values, narrow(index.reshape(apart.shape)[owner[:, None], owner[None, :]]))

    def _places(self, structure: Structure) -> NDArray[np.float64]:
        if self.key in structure.features:
            return np.asarray(structure.features[self.key], dtype=np.float64).reshape(structure.size, -1)
        if structure.order is None:
            raise self.error(
                structure,
                f"the structure has no feature {self.key!r}, and no reading order in its place; give "
                f"Structure(features={{{self.key!r}: ...}}), an array of one row per node",
            )
        return structure.order[:, None].astype(np.float64)

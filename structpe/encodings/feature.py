"""A feature of the nodes, such as languages, coordinates or marks from a reader or transform."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structpe.encodings._units import of_units
from structpe.encodings.base import Encoded, Encoding, check_key
from structpe.errors import listed
from structpe.structure import Structure

__all__ = ["Feature"]


@dataclass(frozen=True)
class Feature(Encoding, name="feature"):
    """A feature of the nodes, such as languages, coordinates or marks from a reader or transform.

    f_u: the row of the node of each unit in ``structure.features[key]``.

    Args:
        key: name of the feature, an array with a row per node.
        missing: the value of every unit of a structure without this feature; None if the feature is required.

    Raises:
        EncodingError: the structure does not have the feature.
    """

    arity = 1
    causal = True

    key: str = "feature"
    missing: int | None = None

    def __post_init__(self) -> None:
        check_key(self, self.key)

    def one(self, structure: Structure) -> Encoded:
        if self.key in structure.features:
            given = np.asarray(structure.features[self.key])
            # Marks and small integers may index a table, which needs int64 in PyTorch.
            return Encoded(of_units(structure, given if given.dtype.kind == "f" else given.astype(np.int64)))
        if self.missing is None:
            known = listed(sorted(structure.features))
            raise self.error(
                structure,
                f"the structure has no feature {self.key!r}, it has: {known}; give it one with "
                f"Structure(features={{{self.key!r}: ...}}), or give a value with missing=",
            )
        return Encoded(np.full(structure.unit_count, self.missing))

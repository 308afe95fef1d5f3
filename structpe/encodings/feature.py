"""A feature of the nodes as it is: languages, coordinates, marks that a reader or transform has left."""

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
    """f_u: what ``structure.features`` says, under some name, of the node of each unit.

    Args:
        key: name of the feature, an array whose first axis is that of the nodes.
        missing: the number that every unit of a structure without this feature has; None means that it must be there.

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
            # Marks and small integers may number the rows of a table, which only int64 does in PyTorch.
            return Encoded(of_units(structure, given if given.dtype.kind == "f" else given.astype(np.int64)))
        if self.missing is None:
            known = listed(sorted(structure.features))
            raise self.error(
                structure,
                f"the structure has no feature {self.key!r}, it has: {known}; give it one with "
                f"Structure(features={{{self.key!r}: ...}}), or say what stands for it with missing=",
            )
        return Encoded(np.full(structure.unit_count, self.missing))

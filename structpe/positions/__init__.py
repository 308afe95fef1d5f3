"""Position models: which numbers describe a position, and where they enter attention.

A family is a file (``rotary``, ``buckets``, ``trees``, ...): what its models share, then each of them. The registry
finds the models. What several families share is in files of its own: ``base``, ``batch``, ``tables``, ``sinusoids``,
``places``, ``networks``, ``spectra``, ``path_labels``, ``row_sums``, ``by_rows`` and ``block``.

Every class of the registry can be imported from here: ``from structpe.positions import T5``.
"""

from structpe.positions.base import MODELS, Cells, Dims, PositionModel, Site, Sources, Spec, Sum
from structpe.positions.batch import Positions
from structpe.positions.block import Block
from structpe.positions.build import build, describe, list_models

__all__ = [
    "MODELS",
    "Block",
    "Cells",
    "Dims",
    "PositionModel",
    "Positions",
    "Site",
    "Sources",
    "Spec",
    "Sum",
    "build",
    "describe",
    "list_models",
]

__getattr__, __dir__ = MODELS.face()

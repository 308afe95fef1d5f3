"""Position models: which numbers describe a position, and where they enter attention.

A family is a file (``rotary``, ``buckets``, ``trees``, ...): what its models share, then each of them. The registry
finds the models. What several families share is in files of its own: ``base``, ``batch``, ``tables``, ``sinusoids``,
``places``, ``networks``, ``spectra``, ``path_labels``, ``row_sums``, ``by_rows`` and ``block``.

Every class of the registry can be imported from here: ``from structpe.positions import T5``.
"""

from typing import Any

from structpe.positions.base import MODELS, Cells, Dims, PositionModel, Site, Sources, Spec, Sum
from structpe.positions.batch import Positions
from structpe.positions.block import Block
from structpe.positions.build import build, describe
from structpe.registry import unknown

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
]


def __getattr__(name: str) -> Any:
    """The class of that name, found in the registry, so that no list has to be maintained."""
    if not name[:1].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if (found := MODELS.of_class(name)) is None:
        raise AttributeError(unknown("position model class", name, sorted(cls.__name__ for cls in MODELS.values())))
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *(model.__name__ for model in MODELS.values())})

"""Position models: which numbers describe a position, and where they enter attention.

There is one file per model, in the folder of its family (``rotary``, ``buckets``, ``trees``, ...). The registry finds
it.

Every class of the registry can be imported from here: ``from structpe.positions import T5``.
"""

from typing import Any

from structpe.positions._batch import Positions
from structpe.positions._dims import Dims
from structpe.positions._sites import Site, Sources
from structpe.positions._spec import Cells, Spec
from structpe.positions._sum import Sum
from structpe.positions.base import MODELS, PositionModel
from structpe.positions.blocks.base import Block
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

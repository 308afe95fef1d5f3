"""Structural position information for Transformers: any structure, any position model, any kernel.

::

    sentence = structpe.path(["a", "path", "graph"])              a structure, or structpe.read("file.amr")
    where = Distance(max_distance=8)                                     from structpe.encodings
    positions = structpe.encode([sentence], [where])              the values of the encoding for a batch
    model = structpe.build({"name": "t5", "encoding": "distance"}, structpe.Dims(width=64, heads=4, layers=2))
    terms = model.terms(model.prepare(positions), structpe.Site(layer=0))
    out = structpe.attend(q, k, v, terms)

Names are imported when they are first used, so ``import structpe`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structpe.attention import attend
    from structpe.data.encode import encode
    from structpe.encodings import Encoding
    from structpe.errors import StructPEError
    from structpe.formats import as_structure, as_structures, convert, each_structure, read, write
    from structpe.positions import Dims, PositionModel, Positions, Site, build
    from structpe.positions.citing import cite
    from structpe.structure import Structure, path
    from structpe.tasks.runs import load
    from structpe.terms import Lookup, Terms

__version__ = "0.1.0"

__all__ = [
    "Dims",
    "Encoding",
    "Lookup",
    "PositionModel",
    "Positions",
    "Site",
    "StructPEError",
    "Structure",
    "Terms",
    "as_structure",
    "as_structures",
    "attend",
    "build",
    "cite",
    "convert",
    "each_structure",
    "encode",
    "load",
    "path",
    "read",
    "write",
]

_HOME = {
    "as_structure": "formats",
    "as_structures": "formats",
    "attend": "attention",
    "build": "positions",
    "cite": "citing",
    "convert": "formats",
    "Dims": "positions",
    "each_structure": "formats",
    "encode": "data.encode",
    "Encoding": "encodings",
    "load": "tasks.runs",
    "Lookup": "terms",
    "path": "structure",
    "PositionModel": "positions",
    "Positions": "positions",
    "read": "formats",
    "Site": "positions",
    "Structure": "structure",
    "StructPEError": "errors",
    "Terms": "terms",
    "write": "formats",
}


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it."""
    if name not in _HOME:
        raise AttributeError(f"module 'structpe' has no attribute {name!r}")
    return getattr(import_module(f"structpe.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

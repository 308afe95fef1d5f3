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

from typing import TYPE_CHECKING

from structpe.faces import face

if TYPE_CHECKING:
    from structpe.attention import attend
    from structpe.encodings import Encoding
    from structpe.errors import StructPEError
    from structpe.formats import as_structure, as_structures, convert, each_structure, read, write
    from structpe.positions import Dims, PositionModel, Positions, Site, build
    from structpe.positions.batch import encode
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

__getattr__, __dir__ = face(
    __name__,
    {
        "as_structure": "formats",
        "as_structures": "formats",
        "attend": "attention",
        "build": "positions",
        "cite": "positions.citing",
        "convert": "formats",
        "Dims": "positions",
        "each_structure": "formats",
        "encode": "positions.batch",
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
    },
)

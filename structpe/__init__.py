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
    from structpe.adapters.hosts import eject, inject
    from structpe.attention import attend
    from structpe.data.batch import Batch
    from structpe.datasets.samples import sample
    from structpe.encodings import Encoding
    from structpe.errors import StructPEError
    from structpe.formats import as_structure, as_structures, convert, each_structure, read, tree, triples, write
    from structpe.nn import Stack, StackConfig
    from structpe.pictures.show import show
    from structpe.positions import Dims, PositionModel, Positions, Site, build, list_models
    from structpe.positions.batch import encode
    from structpe.positions.citing import cite
    from structpe.registry import import_code
    from structpe.structure import Structure, path
    from structpe.tasks.runs import load, train
    from structpe.terms import Lookup, Terms
    from structpe.transforms import grid, levi

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "Dims",
    "Encoding",
    "Lookup",
    "PositionModel",
    "Positions",
    "Site",
    "Stack",
    "StackConfig",
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
    "eject",
    "encode",
    "grid",
    "import_code",
    "inject",
    "levi",
    "list_models",
    "load",
    "path",
    "read",
    "sample",
    "show",
    "train",
    "tree",
    "triples",
    "write",
]

__getattr__, __dir__ = face(
    __name__,
    {
        "as_structure": "formats",
        "as_structures": "formats",
        "attend": "attention",
        "Batch": "data.batch",
        "build": "positions",
        "cite": "positions.citing",
        "convert": "formats",
        "Dims": "positions",
        "each_structure": "formats",
        "eject": "adapters.hosts",
        "encode": "positions.batch",
        "Encoding": "encodings",
        "grid": "transforms",
        "import_code": "registry",
        "inject": "adapters.hosts",
        "levi": "transforms",
        "list_models": "positions",
        "load": "tasks.runs",
        "Lookup": "terms",
        "path": "structure",
        "PositionModel": "positions",
        "Positions": "positions",
        "read": "formats",
        "sample": "datasets.samples",
        "show": "pictures.show",
        "Site": "positions",
        "Stack": "nn",
        "StackConfig": "nn",
        "StructPEError": "errors",
        "Structure": "structure",
        "Terms": "terms",
        "train": "tasks.runs",
        "tree": "formats",
        "triples": "formats",
        "write": "formats",
    },
)

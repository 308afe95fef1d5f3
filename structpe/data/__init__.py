"""From structures to batches: encode, store, collate."""

from typing import TYPE_CHECKING

from structpe.faces import face

if TYPE_CHECKING:
    from structpe.data.batch import Batch, CSRAdjacency, EdgeTypes, collate
    from structpe.data.features import Categories, Numbers
    from structpe.data.sampling import Sampler, partition
    from structpe.data.store import Store

__all__ = ["Batch", "CSRAdjacency", "Categories", "EdgeTypes", "Numbers", "Sampler", "Store", "collate", "partition"]

__getattr__, __dir__ = face(
    __name__,
    {
        "Batch": "batch",
        "Categories": "features",
        "collate": "batch",
        "CSRAdjacency": "batch",
        "EdgeTypes": "batch",
        "Numbers": "features",
        "partition": "sampling",
        "Sampler": "sampling",
        "Store": "store",
    },
)

"""From structures to batches: encode, store, collate."""

from typing import TYPE_CHECKING

from structpe.faces import face

if TYPE_CHECKING:
    from structpe.data.batch import Batch, CSRAdjacency, EdgeTypes, collate
    from structpe.data.bpe_dropout import Merges
    from structpe.data.features import Categories, Numbers
    from structpe.data.growing import GrowingGraph, GrowingTree, newest
    from structpe.data.prepare import train_vocabulary
    from structpe.data.sampling import Sampler, partition
    from structpe.data.store import Store

__all__ = [
    "Batch",
    "CSRAdjacency",
    "Categories",
    "EdgeTypes",
    "GrowingGraph",
    "GrowingTree",
    "Merges",
    "Numbers",
    "Sampler",
    "Store",
    "collate",
    "newest",
    "partition",
    "train_vocabulary",
]

__getattr__, __dir__ = face(
    __name__,
    {
        "Batch": "batch",
        "Categories": "features",
        "collate": "batch",
        "CSRAdjacency": "batch",
        "EdgeTypes": "batch",
        "GrowingGraph": "growing",
        "GrowingTree": "growing",
        "Merges": "bpe_dropout",
        "newest": "growing",
        "Numbers": "features",
        "partition": "sampling",
        "Sampler": "sampling",
        "Store": "store",
        "train_vocabulary": "prepare",
    },
)

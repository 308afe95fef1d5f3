"""T5 on the triples of a graph, with one more bucket for all other pairs (Plenz and Frank 2024)."""

from __future__ import annotations

import torch

from structpe.encodings.base import Encoding
from structpe.encodings.triple_offset import TripleOffset
from structpe.positions import Cells, Dims, Spec
from structpe.positions._tables import Sharing
from structpe.positions.buckets._offset_buckets import BucketBias

__all__ = ["GLMGlobal"]


class GLMGlobal(BucketBias, name="glm-global"):
    """T5 on the triples of a graph, with one more bucket for all other pairs (Plenz and Frank 2024).

    s_ij += b[bucket(r_ij)] if a triple has both units, b[B] otherwise: the global graph language model.

    As ``glm-local``, but all units attend to one another, those without a common triple by one more bucket, number B.
    It starts as a copy of the bucket of the farthest keys ahead, the one that T5 has for +infinity; after loading
    weights of T5, copy it again. (Plenz and Frank 2024, section 4.2; the authors' code.)

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair, or no path.
        buckets: B.
        farthest: D.
        sharing: ``layer-wise`` as in T5.

    Raises:
        PositionError: the encoding does not give one integer per pair, or other buckets.
    """

    spec = Spec(
        "plenz2024", "graph", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies")
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = TripleOffset(),
        buckets: int = 32,
        farthest: int = 128,
        sharing: Sharing = "layer-wise",
    ) -> None:
        super().__init__(dims, encoding, buckets, farthest, sharing)
        if "unreachable" in encoding.codes:
            with torch.no_grad():
                self.table.weight[:, buckets] = self.table.weight[:, buckets - 1]

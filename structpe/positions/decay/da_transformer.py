"""Functions of distance that multiply the rectified score (Wu, Wu and Huang 2021, DA-Transformer)."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, Site, Spec
from structpe.positions._tables import Sharing, Table
from structpe.positions.decay._distances import DistanceModel
from structpe.terms import Lookup, Terms

__all__ = ["DATransformer", "rescaled"]


class DATransformer(DistanceModel, name="da-transformer"):
    """Functions of distance that multiply the rectified score (Wu, Wu and Huang 2021, DA-Transformer).

    s_ij = ReLU(q_i.k_j) f(|s - t|) / sqrt(d_h),  f(r) = (1 + e^v) / (1 + e^(v - w r)).

    w and v are two learned scalars of each head. f(0) = 1; f falls to 0 for w < 0 and rises to 1 + e^v for w > 0, so
    that a head may prefer near or distant keys. Direction is not distinguished. s - t is key minus query, or any other
    encoding of pairs. (Wu et al. 2021; survey, eqs. 16 and 17, which have no sqrt(d_h). No code by the authors is
    known.)

    Table 1 counts 2h parameters, one pair per head for all layers. w and v start from N(0, 0.02), near f = 1, where
    attention ignores positions: our choice. Units of one node, k places apart, have distance k; pairs without a path
    have the limit of the encoding as distance.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        sharing: ``layer-wise`` as Table 1 counts; ``none`` is a pair for each head of each layer.

    Raises:
        PositionError: an encoding without one integer per pair, or a pair without a path where it has no limit.
    """

    spec = Spec(
        "wu2021",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="2*copies"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="2*h"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), sharing: Sharing = "layer-wise") -> None:
        super().__init__(dims, encoding, sharing)
        self.table = Table(dims, 2, sharing)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        w, v = self.table.at(site.layer)
        return Terms(act=torch.relu, gate=(prepared.map(lambda far: rescaled(far[:, None].to(w.dtype), w, v)),))


def rescaled(far: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """f: (1 + e^v) / (1 + e^(v - w r)), without the overflow of its exponential."""
    return (1 + v.exp()) * torch.sigmoid(w * far - v)

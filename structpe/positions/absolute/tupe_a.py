"""Untied absolute positions (Ke, He and Liu 2021, TUPE-A)."""

from __future__ import annotations

import math

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import of_whole
from structpe.positions.absolute._untied import Untied, check_layers
from structpe.terms import Factor, Terms

__all__ = ["TUPEAbsolute"]


class TUPEAbsolute(PositionModel, name="tupe-a"):
    """Untied absolute positions (Ke, He and Liu 2021, TUPE-A).

    s_ij = (q_i.k_j + p_i.r_j) / sqrt(2 d_h),  p_t = U_q n(P[t + 1]) + c_q,  r_s = U_k n(P[s + 1]) + c_k.

    P (t_max + 1, d) is a learned table of places, n a LayerNorm; U_q, U_k (d, d) and c_q, c_k (d) are split into heads.
    The first unit, ``[CLS]``, is special: p_i.r_j is p_i'.r_j' of row 0 of P with itself for i = 0, and that of row 1
    with itself for j = 0 otherwise. The place of a unit may be any number per unit: with depths the root of a tree is
    the special one. (Ke et al. 2021, sections 3.1 and 3.2; survey, eq. 13.)

    As in the authors' code, where the survey differs: LayerNorm and biases; the same p_i.r_j in every layer, not the
    first alone, which is ``layers=1``; the two values for ``[CLS]`` are of each head. The score of the units is divided
    by sqrt(2 d_h) too, in the layers that have the term. Entries start from N(0, 0.02).

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit.
        length: t_max, number of places.
        layers: how many layers, from the first on, have the term; None for all.

    Raises:
        PositionError: a length or number of layers below 1, or a batch with a place of ``length`` or more.
    """

    spec = Spec(
        "ke2021",
        "sequence",
        Cells("A", "MAM", learnable=True, recurring=True, unbound=False, params="(t + 1)*d + 2*(d*d + d) + 2*d"),
        table1=Cells("B", "MAM", learnable=True, recurring=False, unbound=False, params="2*d*d + t*(d + 2)"),
        note="the row of Table 1 is 'tupe-r'; in the code every layer has the term, with a LayerNorm and biases",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), length: int = 512, layers: int | None = None) -> None:
        super().__init__(dims, [of_whole(self.name, encoding)], t=length)
        self.layers = check_layers(self.name, dims, layers)
        self.places = Untied(self.name, dims, length)

    def prepare(self, positions: Positions) -> Factor:
        """The term of a batch, the same for all layers."""
        factor: Factor = self.places(positions, self.encodings[0])
        return factor

    def terms(self, prepared: Factor, site: Site) -> Terms:
        return Terms(factors=(prepared,), scale=math.sqrt(0.5)) if site.layer < self.layers else Terms()

"""Sinusoids and a learned vector of the step before every layer: the Universal Transformer's code (Dehghani 2019)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.encodings.size import Size
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Site, Spec
from structpe.positions.sinusoidal._starts import Start, Started, UniversalModel

__all__ = ["Universal"]


class Universal(UniversalModel, name="universal"):
    """Sinusoids and a learned vector of the step before every layer: the Universal Transformer's code (Dehghani 2019).

    x_t + P_t + sqrt(d) S_l before every layer l: P (sinusoidal), S (l, d) learned, started from N(0, 1/d).

    P_t = cat[sin(t omega_i), cos(t omega_i)], omega_i = 10000^(-i/(d/2 - 1)), as in ``sinusoidal-concatenated``. A
    layer is one application of the shared layer of Dehghani et al. (2019), a step; here layers need not share weights.

    This is the default of the authors' code. The paper's and the survey's eq. 24 takes a sinusoid of the step:
    ``universal-sinusoidal``. Not included: the code's way of concatenating the signals instead of adding them. With
    another ``start``, which the code also has, decoders cannot use it; a number is drawn for each row of a batch and
    step.

    Args:
        dims: sizes of the Transformer.
        encoding: t, one number per unit.
        start: whether places are counted from 0 at each step, or in training from a place drawn at random, or from
            floor(L l / steps) in step l.
        length: L, one number per unit; not used for ``first``.

    Raises:
        PositionError: the encoding gives a vector per unit, or there is no such layer.
    """

    spec = Spec(
        "dehghani2019",
        "sequence",
        Cells("A", "APE", learnable=True, recurring=True, unbound=True, params="l*d"),
        table1=Cells("A", "APE", learnable=False, recurring=True, unbound=True, params="0"),
        note="the code learns the vectors of the steps by default",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Order(), start: Start = "first", length: Encoding = Size()
    ) -> None:
        super().__init__(dims, encoding, start, length)
        self.steps = nn.Parameter(torch.randn(dims.layers, dims.width) * dims.width**-0.5)

    def layer(self, x: Tensor, prepared: Started, site: Site) -> Tensor:
        if not 0 <= site.layer < len(self.steps):
            raise PositionError(
                f"position model 'universal' has {len(self.steps)} steps; there is no layer {site.layer}"
            )
        return (
            x + prepared.at(site.layer, self.training).to(x.dtype) + self.steps[site.layer] * math.sqrt(self.dims.width)
        )

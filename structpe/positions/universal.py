"""Sinusoids and a learned vector of the step before every layer: the Universal Transformer's code (Dehghani 2019)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions._rows import numbers, of_arity
from structpe.positions._sinusoids import timing
from structpe.positions.base import Cells, Dims, PositionModel, Positions, Site, Spec

__all__ = ["Universal"]


class Universal(PositionModel, name="universal"):
    """x_t + P_t + sqrt(d) S_l before every layer l: P (sinusoidal), S (l, d) learned, started from N(0, 1/d).

    P_t = cat[sin(t omega_i), cos(t omega_i)], omega_i = 10000^(-i/(d/2 - 1)), as in ``sinusoidal-concatenated``. A
    layer is one application of the shared layer of Dehghani et al. (2019), a step; here layers need not share weights.

    This is the default of the authors' code. The paper's and the survey's eq. 24 takes a sinusoid of the step:
    ``universal-sinusoidal``. Not here: the code's ways of starting P at a random place or at the number of the step,
    and of concatenating the signals instead of adding them.

    Args:
        dims: sizes of the Transformer.
        encoding: t, one number per unit.

    Raises:
        PositionError: the encoding gives a vector per unit, or there is no such layer.
    """

    spec = Spec(
        cite="dehghani2019",
        structure="sequence",
        cells=Cells("A", "APE", learnable=True, recurring=True, unbound=True, params="l*d"),
        table1=Cells("A", "APE", learnable=False, recurring=True, unbound=True, params="0"),
        note="the code learns the vectors of the steps by default",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order()) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        self.steps = nn.Parameter(torch.randn(dims.layers, dims.width) * dims.width**-0.5)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, d) the sinusoids, the same at every layer."""
        places = numbers(self.name, self.encodings[0], positions.queries(self.encodings[0]))
        return timing(places, self.dims.width)

    def layer(self, x: Tensor, prepared: Tensor, site: Site) -> Tensor:
        if not 0 <= site.layer < len(self.steps):
            raise PositionError(f"position model 'universal' has {len(self.steps)} steps; layer {site.layer} asks")
        return x + prepared.to(x.dtype) + self.steps[site.layer] * math.sqrt(self.dims.width)

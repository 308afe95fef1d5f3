"""Sinusoids of the place and of the step before every layer: the Universal Transformer's paper (Dehghani 2019)."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.positions import Cells, Site, Spec
from structpe.positions.sinusoidal._sinusoids import timing
from structpe.positions.sinusoidal._starts import Started, UniversalModel

__all__ = ["UniversalSinusoidal"]


class UniversalSinusoidal(UniversalModel, name="universal-sinusoidal"):
    """Sinusoids of the place and of the step before every layer: the Universal Transformer's paper (Dehghani 2019).

    x_t + P_t + P_l before every layer l = 0, 1, ...: the place and the number of the step, rows of one table.

    P_t = cat[sin(t omega_i), cos(t omega_i)], omega_i = 10000^(-i/(d/2 - 1)), as in ``sinusoidal-concatenated``.
    (Dehghani et al. 2019; survey, eq. 24; the option "sinusoid" of the authors' code.) The code counts steps from 0 and
    puts sines before cosines; eq. 24 interleaves them, with exponents -2i/d.

    Args:
        dims: sizes of the Transformer.
        encoding: t, one number per unit.
        start: whether places are counted from 0 at each step, or in training from a place drawn at random, or from
            floor(L l / steps) in step l.
        length: L, one number per unit; not used for ``first``.

    Raises:
        PositionError: the encoding gives a vector per unit.
    """

    spec = Spec(
        "dehghani2019",
        "sequence",
        Cells("A", "APE", learnable=False, recurring=True, unbound=True, params="0"),
        table1=Cells("A", "APE", learnable=False, recurring=True, unbound=True, params="0"),
    )

    def layer(self, x: Tensor, prepared: Started, site: Site) -> Tensor:
        step = timing(torch.tensor(site.layer, device=x.device), self.dims.width)
        return x + (prepared.at(site.layer, self.training) + step).to(x.dtype)

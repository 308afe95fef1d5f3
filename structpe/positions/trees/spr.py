"""Structural position representations, both kinds, together with the order of words (Wang X. et al. 2019)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.depth import Depth
from structpe.encodings.order import Order
from structpe.encodings.spr import SPRRelative
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import numbers, of_arity, offsets
from structpe.positions._rows import Window
from structpe.positions._tables import Table
from structpe.positions.sinusoidal._sinusoids import interleaved
from structpe.terms import Terms

__all__ = ["SPR"]


class SPR(PositionModel, name="spr"):
    """Structural position representations, both kinds, together with the order of words (Wang X. et al. 2019).

    x_u + tanh(W [P_t; P_abs(u)] + c), and in the first layer the vectors K[rel_ij], V[rel_ij] of ``spr-rel``.

    t is the place of u in the sentence, abs(u) its depth, P the sinusoids of ``sinusoidal``, W (d, 2d). (Wang X. et al.
    2019; survey, section 4.3.1: best with both kinds of structural positions and the sequential ones.) The paper fuses
    the two absolute positions by a non-linear function; one layer with tanh is our choice, as no code by the authors is
    known. Without it: the sum of ``sinusoidal``, ``spr-abs`` and ``spr-rel``. The sequential relative positions that
    the paper also tries are ``shaw``; add it.

    Args:
        dims: sizes of the Transformer.
        encoding: place of each unit.
        depth: depth of each unit.
        relative: signed integers per pair.
        reach: t_max; relative positions are clipped to +-t_max.

    Raises:
        PositionError: the reach is below 1, or an encoding does not give one number per unit or pair.
    """

    spec = Spec(
        "wang2019",
        "tree",
        Cells("B", "both", learnable=True, recurring=False, unbound=True, params="2*d*d + d + 2*R*d"),
        note="Table 1 has its two halves: 'spr-abs' and 'spr-rel'",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        depth: Encoding = Depth(),
        relative: Encoding = SPRRelative(),
        reach: int = 20,
    ) -> None:
        absolute = [of_arity(self.name, encoding, 1), of_arity(self.name, depth, 1)]
        window = Window(of_arity(self.name, relative, 2), reach)
        super().__init__(dims, [*absolute, relative], R=window.size)
        self.window = window
        self.fuse = nn.Linear(2 * dims.width, dims.width)
        self.keys = Table(dims, window.size, "layer-wise", width=dims.head)
        self.values = Table(dims, window.size, "layer-wise", width=dims.head)

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        waves = [
            interleaved(numbers(self.name, encoding, prepared.queries(encoding)), self.dims.width)
            for encoding in self.encodings[:2]
        ]
        return x + torch.tanh(self.fuse(torch.cat(waves, dim=-1).to(x.dtype)))

    def terms(self, prepared: Positions, site: Site) -> Terms:
        if site.layer > 0:
            return Terms()
        rows = offsets(self.name, self.encodings[2], prepared[self.encodings[2]]).map(self.window.of)
        return Terms(key=(rows.map(self.keys.at(0).__getitem__),), value=(rows.map(self.values.at(0).__getitem__),))

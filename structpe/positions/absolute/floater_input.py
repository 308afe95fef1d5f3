"""Positions at the input of each layer from a differential equation (Liu et al. 2020; survey, eq. 6)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import numbers, of_arity
from structpe.positions.absolute._flow import LinearField, Trail, places_on

__all__ = ["FLOATERInput"]


class FLOATERInput(PositionModel, name="floater-input"):
    """Positions at the input of each layer from a differential equation (Liu et al. 2020; survey, eq. 6).

    x_t + p_l(t) before layer l, p_l(t) (d) from dp/dt = h(t, p) and a learned p_l(0).

    h(t, p) = W_2 [relu(W_1 [p; t] + c_1); t] + c_2 with W (d, d + 1) and c (d) is one for all layers; p(0) (n, d),
    Glorot-uniform at first, differs from layer to layer. (Liu et al. 2020; survey, eq. 6, which reports both a vector
    at the first layer only, ``layers=1``, and one at each.) The authors' code adds to queries, keys and values instead:
    ``floater``. From there are the network, the time 0.01 between places and the method, Runge-Kutta of order 4 (3/8
    rule) in five steps for each place.

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit.
        layers: n, how many layers, from the first, are given positions; None for all.

    Raises:
        PositionError: the encoding gives something else, or there are not as many layers.
    """

    spec = Spec(
        "liu2020",
        "sequence",
        Cells("A", "APE", learnable=True, recurring=True, unbound=True, params="n*d + 2*d*(d + 2)"),
        table1=Cells("A", "APE", learnable=True, recurring=True, unbound=True, params="0"),
        note="Table 1 has '0 or more' parameters, as any function may be taken for h",
        not_compiled="how far its path through the places is followed depends on the batch",
        not_exported="how far its path through the places is followed depends on the batch",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), layers: int | None = None) -> None:
        count = dims.layers if layers is None else layers
        if not 1 <= count <= dims.layers:
            raise PositionError(
                f"position model 'floater-input' adds positions at {count} of {dims.layers} layers; give a "
                f"number from 1 to {dims.layers}, or None for all"
            )
        super().__init__(dims, [of_arity(self.name, encoding, 1)], n=count)
        self.start = nn.Parameter(nn.init.xavier_uniform_(torch.empty(count, dims.width)))
        self.field = LinearField(dims.width)
        self.trail = Trail()

    def prepare(self, positions: Positions) -> tuple[Tensor, Tensor]:
        """The path (T, l, d), and the places of the queries (b, n)."""
        places = numbers(self.name, self.encodings[0], positions.queries(self.encodings[0]))
        return self.trail.follow(self.field, self.start, places_on(self.name, places)), places

    def layer(self, x: Tensor, prepared: tuple[Tensor, Tensor], site: Site) -> Tensor:
        path, places = prepared
        return x + path[places, site.layer].to(x.dtype) if site.layer < len(self.start) else x

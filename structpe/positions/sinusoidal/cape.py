"""Sinusoids of places that are shifted and scaled at random while training: CAPE (Likhomanenko et al. 2021)."""

from __future__ import annotations

import math

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import numbers, of_arity
from structpe.positions.sinusoidal._augmentation import Augmentation, augmented
from structpe.positions.sinusoidal._sinusoids import interleaved

__all__ = ["CAPE"]


class CAPE(PositionModel, name="cape"):
    """Sinusoids of places that are shifted and scaled at random while training: CAPE (Likhomanenko et al. 2021).

    sqrt(d) x_t + P_t,  P_tj = sin(t' f_j + (j mod 2) pi/2),  f_j = s 10000^(-2 floor(j/2)/d).

    In training t' = (D t + delta + D epsilon_t) e^lambda, in evaluation t' = D t. D is the step between two units in
    seconds, for example; delta ~ U(-shift, shift) and lambda ~ U(-log scaling, log scaling) are drawn for each
    structure and batch, epsilon_t ~ U(-local, local) for each unit. (Likhomanenko et al. 2021, listing 1; survey,
    section 4.2. The code is a third party's and follows the listing.)

    As in the code, where the survey differs: the logarithm of lambda is uniform, the shifts come before the scale,
    which multiplies them too, and places are centred only on request: ``encoding="centred"``. By default nothing is
    drawn; for text that code proposes shift 5, local 0.5 and scaling 1.03, for speech it centres, with s = 30. With
    padding it counts one unit of it to the text, which moves the centre by half a step; this does not.

    Args:
        dims: sizes of the Transformer.
        encoding: t, one number per unit.
        step: D.
        speed: s.
        shift: most by which all units are moved, 0 or more.
        local: most by which a unit is moved by itself, in steps; up to 0.5 keeps their order.
        scaling: most by which places are multiplied or divided, 1 or more.

    Raises:
        PositionError: the encoding gives a vector per unit, a step or speed is not above 0, or an augmentation is
            invalid.
    """

    spec = Spec(
        "likhomanenko2021", "sequence", Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0")
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        step: float = 1.0,
        speed: float = 1.0,
        shift: float = 0.0,
        local: float = 0.0,
        scaling: float = 1.0,
    ) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        if step <= 0 or speed <= 0:
            raise PositionError(f"position model 'cape': step {step}, speed {speed}; give numbers above 0")
        self.step, self.speed = step, speed
        self.augmentation = Augmentation(self.name, shift, local, scaling)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n) the places t' of this batch, float64."""
        places = numbers(self.name, self.encodings[0], positions.queries(self.encodings[0]))[..., None].double()
        places = places * self.step
        if self.training:
            places = augmented(places, *self.augmentation.draw(places, self.step))
        return places[..., 0]

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        return x * math.sqrt(self.dims.width) + interleaved(prepared * self.speed, self.dims.width).to(x.dtype)

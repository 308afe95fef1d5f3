"""Sinusoidal absolute positions, interleaved (Vaswani et al. 2017; survey, eq. 21)."""

from __future__ import annotations

from structpe.positions import Spec
from structpe.positions.sinusoidal._added import CELLS, AddedSinusoids

__all__ = ["Sinusoidal"]


class Sinusoidal(AddedSinusoids, name="sinusoidal"):
    """Sinusoidal absolute positions, interleaved (Vaswani et al. 2017; survey, eq. 21).

    x_t + P_t with P_tj = sin(t 10000^(-j/d)) for even j, cos(t 10000^(-(j-1)/d)) for odd j.

    t is the value of the encoding: the place of a unit in the sequence, or its depth in a tree. (Vaswani et al. 2017;
    survey, eq. 21.) This is the survey's and OpenNMT's form. The authors' own code puts all sines before all cosines,
    with frequencies 10000^(-i/(d/2 - 1)). Computed in float64, then rounded to the dtype of x.

    Args:
        dims: sizes of the Transformer.
        encoding: one number per unit.

    Raises:
        PositionError: the encoding gives a vector per unit.
    """

    spec = Spec("vaswani2017", "sequence", CELLS, table1=CELLS)

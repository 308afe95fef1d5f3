"""Sinusoids in a predicted order, for texts that are generated in one step (Bao et al. 2019)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.reordered import Reordered
from structpe.positions import Dims, Spec
from structpe.positions.sinusoidal._added import CELLS, AddedSinusoids

__all__ = ["PNAT"]


class PNAT(AddedSinusoids, name="pnat"):
    """Sinusoids in a predicted order, for texts that are generated in one step (Bao et al. 2019).

    x_u + P_z(u): z the place in the text that is predicted for unit u, P (sinusoidal).

    z is a permutation: of the places of all units of a text that is generated in one step, one for each decoder input.
    (Bao et al. 2019; survey, section 4.4: position embeddings are reordered by the predicted permutation. No code is
    known.) The prediction comes with the structure, as a rank of each node; without one, z is the place in reading
    order. The predictors of length and permutation are networks over the decoder's inputs, with their own targets and
    loss; neither the survey nor this model defines them.

    Args:
        dims: sizes of the Transformer.
        encoding: z, one number per unit.

    Raises:
        PositionError: the encoding gives a vector per unit.
    """

    spec = Spec("bao2019", "sequence", CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Reordered("predicted")) -> None:
        super().__init__(dims, encoding)

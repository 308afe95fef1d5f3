"""Stochastic position encoding by sines (Liutkus et al. 2021, sineSPE), without a gate."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, Positions, Site, Spec
from structpe.positions.stochastic._noise import orthogonal
from structpe.positions.stochastic._spe import SineModel, Waves
from structpe.terms import Terms

__all__ = ["SPESine"]


class SPESine(SineModel, name="spe-sine"):
    """Stochastic position encoding by sines (Liutkus et al. 2021, sineSPE), without a gate.

    (q_t, k_s) -> (sum_d q_td Q_td, sum_d k_sd K_sd) in R^R, with Q_td, K_sd in R^R drawn at random.

    On average q'.k' = sqrt(R / d_h) / (2K) sum_d q_d k_d P_d(t - s), where
    P_d(r) = sum_k gain_dk^2 cos(2 pi f_dk r + phase_dk).

    Q_td = sum_k gain_dk [cos, sin](2 pi f_dk t + phase_dk).z_dk / sqrt(2K) / (R d_h)^(1/4), z (h, d_h, 2K, R) normal;
    K_sd the same z without phases. Frequencies, phases and gains are (h, d_h, K), for all layers; see :class:`Sines`.
    Attention divides by sqrt(R), the width that vectors now have. (Liutkus et al. 2021, section 3.1.) Relative
    positions thus enter without a matrix of pairs, and attention with a feature map, linear in the number of units,
    can have them.

    One z is drawn for a batch in training, for all of its texts and layers, as in the authors' code. In evaluation,
    where that code draws too, z is fixed and its rows are orthogonal: with 2K d_h of them or more, R realisations give
    exactly the average above, the same at every place. With fewer they approximate it.

    It widens queries and keys: do not add it to another model that maps them.

    Args:
        dims: sizes of the Transformer.
        encoding: one number per unit.
        realisations: R.
        sines: K.

    Raises:
        PositionError: the encoding gives a vector per unit.
    """

    spec = Spec(
        "liutkus2021",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="3*K*d"),
        note="relative on average over draws, and exactly so in evaluation with enough realisations",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), realisations: int = 256, sines: int = 1) -> None:
        super().__init__(dims, encoding, sines)
        rows = 2 * sines
        self.fixed = orthogonal(dims.heads, dims.head * rows, realisations).view(dims.heads, dims.head, rows, -1)

    def prepare(self, positions: Positions) -> Waves:
        """The waves of queries and keys, and the noise that all layers share."""
        return self.waves(positions, self.drawn(self.fixed))

    def terms(self, prepared: Waves, site: Site) -> Terms:
        return Terms(maps=(prepared.map,))

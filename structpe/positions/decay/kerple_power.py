"""KERPLE's power kernel: a bias that falls with a power of distance (Chi et al. 2022)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, Site, Spec
from structpe.positions._tables import Sharing
from structpe.positions.decay._bounded import Bounded, BoundedDecay
from structpe.terms import Lookup, Terms

__all__ = ["KERPLEPower"]


class KERPLEPower(BoundedDecay, name="kerple-power"):
    """KERPLE's power kernel: a bias that falls with a power of distance (Chi et al. 2022).

    s_ij -= a_h |r_ij|^p_h, a and p learned, a 0.01 or more, p from 0.01 to 2; ``alibi`` is p = 1 and a fixed.

    r_ij = s - t, or any other encoding of pairs; code points as in ``alibi``. (Chi et al. 2022, section 4.1, r_1 = a,
    r_2 = p.) As in the authors' code, a starts from U(0, 1), p from U(0, 2), both are shared by all layers, and each
    training step first clamps them to their bounds. That code can also multiply scores by exp(-a |r|^p), which the
    paper names as a variant; that is not included.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        sharing: ``layer-wise`` as in the code.

    Raises:
        PositionError: the encoding does not give one integer per pair, or a batch has a pair without a path, and the
            encoding has no limit.
    """

    spec = Spec(
        "chi2022", "sequence", Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="2*copies")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), sharing: Sharing = "layer-wise") -> None:
        super().__init__(dims, encoding, sharing)
        self.slope = Bounded(dims, sharing, most=1)
        self.power = Bounded(dims, sharing, most=2, greatest=2)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        a, p = self.slope.within(site.layer), self.power.within(site.layer)
        return Terms(bias=(prepared.map(lambda far: -a * far[:, None].to(a.dtype) ** p),))

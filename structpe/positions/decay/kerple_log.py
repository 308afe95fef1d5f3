"""KERPLE's logarithmic kernel: a bias that falls with the logarithm of distance (Chi et al. 2022)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, Site, Spec
from structpe.positions._tables import Sharing
from structpe.positions.decay._bounded import Bounded, BoundedDecay
from structpe.terms import Lookup, Terms

__all__ = ["KERPLELog"]


class KERPLELog(BoundedDecay, name="kerple-log"):
    """KERPLE's logarithmic kernel: a bias that falls with the logarithm of distance (Chi et al. 2022).

    s_ij -= p_h log(1 + a_h |r_ij|), p and a learned, 0.01 or more.

    r_ij = s - t, or any other encoding of pairs; code points as in ``alibi``. (Chi et al. 2022, section 4.1, r_1 = p,
    r_2 = a.) As in the authors' code, p starts from U(0, 2), a from U(0, 1), both are shared by all layers, and each
    training step first clamps them to 0.01 from below.

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
        self.height = Bounded(dims, sharing, most=2)
        self.speed = Bounded(dims, sharing, most=1)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        p, a = self.height.within(site.layer), self.speed.within(site.layer)
        return Terms(bias=(prepared.map(lambda far: -p * (1 + a * far[:, None].to(a.dtype)).log()),))

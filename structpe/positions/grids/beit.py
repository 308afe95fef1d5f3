"""A learned scalar per offset of two patches of an image, and three for its class token (Bao et al. 2022, BEiT)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import GridOffset
from structpe.positions import Cells, Dims, Spec
from structpe.positions._tables import Sharing
from structpe.positions.grids._windows import WindowBias, WindowRows

__all__ = ["BEiT"]


class BEiT(WindowBias, name="beit"):
    """A learned scalar per offset of two patches of an image, and three for its class token (Bao et al. 2022, BEiT).

    s_ij += B[(y_i - y_j + H - 1)(2W - 1) + x_i - x_j + W - 1], and three rows for the class token.

    Of R rows, and with c the class token::

        s_cj += B[R - 3],    s_ic += B[R - 2],    s_cc += B[R - 1],    R = (2H - 1)(2W - 1) + 3

    One scalar per head and layer, zero at first; the window H x W is the image. (The authors' code, classes Attention
    and RelativePositionBias; Bao et al. 2022 themselves write of learned absolute positions, ``vit``, which the code
    can add to this.) They fine-tune with a table per layer, as here by default, and pre-train with one for all layers:
    ``layer-wise``. The class token is the unit without a place in the grid: see
    :func:`structpe.transforms.with_class_token`. Offsets beyond the window count as those at its edge.

    Args:
        dims: sizes of the Transformer.
        encoding: (y, x) offsets per pair, key minus query.
        window: (H, W), or any other number of axes that the encoding has.
        sharing: which layers and heads have the same numbers.

    Raises:
        PositionError: an invalid window, or another number of axes.
    """

    spec = Spec("bao2022", "grid", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"))

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = GridOffset(),
        window: tuple[int, ...] = (14, 14),
        sharing: Sharing = "none",
    ) -> None:
        super().__init__(dims, encoding, WindowRows(self.name, tuple(window), codes=True), sharing, std=0.0)

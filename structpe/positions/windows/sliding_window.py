"""Attention within a window that slides along the text (Beltagy et al. 2020)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.order import Window
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.windows._sparse import of_listed_pairs
from structpe.terms import SparsePairs, Terms

__all__ = ["SlidingWindow"]


class SlidingWindow(PositionModel, name="sliding-window"):
    """Attention within a window that slides along the text (Beltagy et al. 2020).

    Unit i attends to unit j only if |i - j| <= r; within the window attention is unchanged.

    The reach r is half of the window w of the paper: w / 2 units on each side, and the unit itself. Time and memory are
    linear in the number of units. (Beltagy, Peters and Cohan 2020, "Longformer", section 3.1; survey, section 5.1;
    Child et al. 2019 have local windows of a decoder, which are this one and a causal mask.) l layers reach l r units.
    The paper's gaps within a window and its tokens that attend to all are not included. No offset within the window is
    distinguished from another: add a model that does.

    Args:
        dims: sizes of the Transformer.
        encoding: which pairs attend; r is its ``reach``. Any other encoding of sparse pairs can be used.

    Raises:
        PositionError: the encoding does not list pairs.
    """

    spec = Spec(
        "beltagy2020", "sequence", Cells("R", "MAM", learnable=False, recurring=True, unbound=False, params="0")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Window()) -> None:
        super().__init__(dims, [of_listed_pairs(self.name, encoding)])

    def terms(self, prepared: Positions, site: Site) -> Terms:
        listed: SparsePairs = prepared[self.encodings[0]]
        return Terms(pairs=(listed.pairs,))

"""Relative structural position representations: vectors at keys and values (Wang X. et al. 2019)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.spr import SPRRelative as Relative
from structpe.positions import Cells, Dims, Site, Spec
from structpe.positions._pair_tables import KeyValueTables
from structpe.positions._rows import Window
from structpe.terms import Lookup, Terms

__all__ = ["SPRRelative"]


class SPRRelative(KeyValueTables, name="spr-rel"):
    """Relative structural position representations: vectors at keys and values (Wang X. et al. 2019).

    In the first layer s_ij = q_i.(k_j + K[rel_ij]) / sqrt(d_h),  o_i = sum_j w_ij (v_j + V[rel_ij]).

    rel_ij is the relative position in the tree, clipped to +-t_max; K and V are tables (2 t_max + 1, d), for each head
    its own d_h channels. (Wang X. et al. 2019, who follow Shaw et al. 2018; survey, section 4.3.1.) No code by the
    authors is known: only the first layer is Table 1's "not recurring", its 2(2 t_max + 1)d the width, and t_max our
    choice.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        reach: t_max.

    Raises:
        PositionError: the reach is below 1, or the encoding does not give one integer per pair.
    """

    spec = Spec(
        "wang2019",
        "tree",
        Cells("R", "MAM", learnable=True, recurring=False, unbound=False, params="2*R*d"),
        table1=Cells("R", "MAM", learnable=True, recurring=False, unbound=False, params="2*(2*t+1)*d"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Relative(), reach: int = 20) -> None:
        super().__init__(dims, encoding, Window(encoding, reach), "layer-wise", std=0.02)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms() if site.layer > 0 else super().terms(prepared, site)

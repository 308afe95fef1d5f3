"""Stochastic position encoding by filters (Liutkus et al. 2021, convSPE)."""

from __future__ import annotations

from structpe.positions import Cells, Site, Spec
from structpe.positions.stochastic._filtered import Filtered, FilteredModel
from structpe.terms import Terms

__all__ = ["SPEConv"]


class SPEConv(FilteredModel, name="spe-conv"):
    """Stochastic position encoding by filters (Liutkus et al. 2021, convSPE).

    (q_t, k_s) -> (sum_d q_td Q_td, sum_d k_sd K_sd) in R^R, where Q and K are filtered noise.

    On average q'.k' = sqrt(R / d_h) sum_d q_d k_d P_d(t - s), P_d(r) = sum_u a_du b_d,u+r, zero beyond a filter.

    Q_td = sum_u a_du z_d,t+u / (R d_h)^(1/4), K_sd = sum_u b_du z_d,s+u / (R d_h)^(1/4), u = 0..K-1, z normal, of each
    head, channel, realisation and place; the filters a and b are (h d_h, K), for all layers. Attention divides by
    sqrt(R), the width that vectors now have. (Liutkus et al. 2021, section 3.2.)

    In the authors' code the module ``conv_k`` makes the codes of queries, that is a, and ``conv_q`` those of keys. It
    draws noise for L + 4K places and leaves out those outside the range; the filters are the same here. They start from
    U(0, sqrt(2 / K)). One noise is drawn for a batch in training; in evaluation, where the code draws too, it is fixed,
    place by place. Memory grows with n h d_h R.

    For a gate that lets content through, see ``spe-conv-gated``. Images, on which the code filters along each axis, are
    not included. It widens queries and keys: do not add it to another model that maps them.

    Args:
        dims: sizes of the Transformer.
        encoding: whole numbers 0, 1, ... per unit.
        realisations: R.
        width: K, of a filter.

    Raises:
        PositionError: the encoding gives a vector per unit, or no whole numbers.
    """

    spec = Spec(
        "liutkus2021",
        "sequence",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=True, params="2*K*d"),
        note="relative on average over draws; one draw, which is what is measured, has other noise at each place",
        not_compiled="how much noise it draws depends on the batch",
        not_exported="how much noise it draws depends on the batch",
    )

    def terms(self, prepared: Filtered, site: Site) -> Terms:
        return Terms(maps=(prepared.map,))

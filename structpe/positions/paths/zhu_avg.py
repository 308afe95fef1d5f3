"""The mean of the embedded labels of a path at keys and values (Zhu et al. 2019, avg)."""

from __future__ import annotations

from structpe.positions import Cells, Spec
from structpe.positions.paths._path_bags import PathBag

__all__ = ["ZhuAvg"]


class ZhuAvg(PathBag, name="zhu-avg"):
    """The mean of the embedded labels of a path at keys and values (Zhu et al. 2019, avg).

    s_ij = q_i.(k_j + W_k n(r_ij) + b_k) / sqrt(d_h),  o_i = sum_j a_ij (v_j + W_v n(r_ij) + b_v).

    The vector of the path is::

        r_ij = 1/c sum_c (sqrt(d_h) E[label c of path ji] + P_i)

    The path has c slots, empty ones hold the label "blank". E (V, d_h) is shared by all layers, its row for "blank" is
    not learned; P_i is the interleaved sinusoid; n, a LayerNorm, W and b are of each layer and shared by its heads.
    (Zhu et al. 2019, section 3.2, "avg"; survey, eq. 28.)

    As in the authors' code, not as in the paper: r_ij is of the path from the key j to the query i; P is that of the
    query's place, while the paper has none, and the slot's would be expected; and vectors are as wide as a head (64
    there, fixed). The authors attach a node EOS to the root by an edge ``:EOS``; add it to the structure for the same
    result. Nearly all pairs (path, place) of a large graph are distinct: without the sinusoid, the tables are as small
    as those of the other models.

    Args:
        dims: sizes of the Transformer.
        encoding: paths of labels, cut to c, which is 5 in the code.
        dropout: of the embedded labels, once per distinct path; in the code of these and P, and per pair.
        sinusoid: whether P_i is added, i being the place of the unit in reading order; without it r_ij depends only on
            the path, as in the paper, and a structure needs no order.

    Raises:
        PositionError: the encoding has no limit, or several paths per pair.
    """

    spec = Spec(
        "zhu2019",
        "graph",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=False, params="V*dh + 2*l*dh*(dh + 2)"),
        note="not in Table 1, which has the authors' best variants; absolute because the code adds the query's place",
    )

    mean = True

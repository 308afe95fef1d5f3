"""Distances in space by Gaussian basis functions (Shi et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.euclidean import Euclidean
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._gaussians import bells
from structpe.row_sums import sum_rows
from structpe.terms import Lookup, Terms

__all__ = ["Graphormer3D"]

_PARAMS = "2*K + 2*V*V + K*K + K + K*h + h + K*d + d"
"""Formula of the number of parameters."""
_LEAST = 1e-5
"""Added to each width, against a division by zero."""


@dataclass(frozen=True, eq=False)
class _Prepared:
    bias: Lookup
    total: Tensor


class Graphormer3D(PositionModel, name="graphormer-3d"):
    """Distances in space by Gaussian basis functions (Shi et al. 2022).

    s_ij += (W_2 gelu(W_1 g_ij + c_1) + c_2) of the head,  x_i + U sum_j g_ij + c.

    ::

        g_ijk = exp(-((a_t d_ij + b_t - m_k) / v_k)^2 / 2) / (sqrt(2 pi) v_k),    v_k = |w_k| + 1e-5

    d_ij is the distance of i and j in space, t the pair of their labels in this order. m, w (K) start from U(0, 3); a
    and b have a scalar per pair of labels, 1 and 0 at first; W_1 (K, K), W_2 (h, K), U (d, K). The sum goes over all
    units of the structure, i among them. All layers have the same bias. (Shi et al. 2022, section 2; the authors' code,
    model "graphormer3d".)

    As in the code, except that it uses 3.14159 for pi. Its embedding of atoms is that of units here; its tags of atoms,
    its layers used four times over, and its projection to forces are not positions. Other structures than molecules are
    lines: see :class:`Euclidean`.

    Args:
        dims: sizes of the Transformer.
        encoding: distances in space and labels.
        kernels: K, 128 in the code.

    Raises:
        PositionError: K is below 1.
    """

    spec = Spec(
        "shi2022",
        "graph",
        Cells("B", "both", learnable=True, recurring=True, unbound=True, params=_PARAMS),
        note="distances are relative; their sum over all units is absolute",
    )

    def __init__(self, dims: Dims, encoding: Euclidean = Euclidean(), kernels: int = 128) -> None:
        labels = len(encoding.labels) + 1
        super().__init__(dims, [encoding], K=kernels, V=labels)
        self.means, self.widths = (nn.Parameter(torch.empty(kernels).uniform_(0, 3)) for _ in range(2))
        self.factor = nn.Parameter(torch.ones(labels, labels))
        self.offset = nn.Parameter(torch.zeros(labels, labels))
        self.hidden, self.out = nn.Linear(kernels, kernels), nn.Linear(kernels, dims.heads)
        self.embed = nn.Linear(kernels, dims.width)

    @property
    def causal(self) -> bool:
        """No: the sum is over all units, future ones included."""
        return False

    def prepare(self, positions: Positions) -> _Prepared:
        """The bias of each distinct value, and what is added to the units."""
        pairs: Lookup = positions[self.encodings[0]]
        basis = pairs.map(self.basis)
        bias = basis.map(lambda g: self.out(functional.gelu(self.hidden(g)))).share()
        return _Prepared(bias, self.embed(_total(basis, positions)))

    def basis(self, values: Tensor) -> Tensor:
        """(R, K) g of distances and labels (R, 3)."""
        query, key = values[:, 1].long(), values[:, 2].long()
        exact = torch.promote_types(self.means.dtype, torch.float32)  # as in the code: narrow bells need the digits
        factor, offset = self.factor.to(exact), self.offset.to(exact)
        moved = factor[query, key] * values[:, 0].to(exact) + offset[query, key]
        return bells(moved, self.means, self.widths, _LEAST).to(self.means.dtype)

    def inputs(self, x: Tensor, prepared: _Prepared) -> Tensor:
        return x + prepared.total.to(x.dtype)

    def terms(self, prepared: _Prepared, site: Site) -> Terms:
        return Terms(bias=(prepared.bias,))


def _total(basis: Lookup, positions: Positions) -> Tensor:
    """(b, n, K) the sum of g over all units of a unit's structure; 0 for padding."""
    batch = torch.arange(len(basis.rows), device=basis.rows.device)[:, None, None]
    rows, table, present = basis.rows[batch, basis.places()].long(), basis.table, positions.present
    if present is not None:
        rows = torch.where(present[:, :, None] & present[:, None], rows, len(table))
        table = torch.cat([table, table.new_zeros(1, table.shape[1])])
    return sum_rows(table, rows.flatten(0, 1)).view(*rows.shape[:2], -1)

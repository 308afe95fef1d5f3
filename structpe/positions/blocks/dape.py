"""DAPE: biases corrected by a network that sees scores and biases of all heads (Zheng et al. 2024)."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from structpe.positions import Cells, Dims, Site, Spec
from structpe.positions.blocks._dape import KERPLE, Bias, ScoreModel
from structpe.precision import widened

__all__ = ["DAPE"]


class DAPE(ScoreModel, name="dape"):
    """DAPE: biases corrected by a network that sees scores and biases of all heads (Zheng et al. 2024).

    softmax_j(s_ij + b_ij + f(s_ij, b_ij)),  s_ij = q_i.k_j / sqrt(d_h),  f = W_2 leaky(W_1 [s; b] + c_1) + c_2.

    Data-adaptive positions: f sees the scores and biases of all heads of one pair, and corrects the bias. b are those
    of another position model, by default of ``kerple-log`` with numbers of each layer (DAPE-Kerple). W_1 (w, 2h) and
    W_2 (h, w) are learned for each layer; leaky is the leaky ReLU of slope 0.01. (Zheng et al. 2024, section 3.3,
    equation 4, and their code; w = 32.) The bias of any model fits, on any structure: ``fire``, ``alibi``, ``t5`` by
    distance in a graph, and so on. Compared with the authors' code in float64.

    It takes 2h + w numbers per pair. A decoder keeps keys and values, and may use it if it may use the other model.

    Args:
        dims: sizes of the Transformer.
        bias: name of the position model that gives b, or a mapping with its options.
        hidden: w.

    Raises:
        PositionError: the other model does something else than to add a bias.
        UnsupportedTerm: something else than which pairs attend is to act on attention.
    """

    spec = Spec(
        "zheng2024",
        "sequence",
        Cells(
            "R",
            "MAM",
            learnable=True,
            recurring=True,
            unbound=True,
            params="inner + (4*(d*d + d) + 3*h*w + w + h)*l",
        ),
        note="a block counts its projections; inner are those of the model that gives the bias",
    )

    def __init__(self, dims: Dims, bias: Bias = KERPLE, hidden: int = 32) -> None:
        super().__init__(dims, bias, w=hidden)
        self.networks = nn.ModuleList(
            nn.Sequential(nn.Linear(2 * dims.heads, hidden), nn.LeakyReLU(), nn.Linear(hidden, dims.heads))
            for _ in range(dims.layers)
        )

    def correction(self, both: Tensor, seen: Tensor, prepared: Any, site: Site) -> Tensor:
        corrected: Tensor = widened(self.networks[site.layer])(both.movedim(1, -1))
        return corrected.movedim(-1, 1)

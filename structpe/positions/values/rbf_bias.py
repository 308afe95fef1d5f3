"""A bias by Gaussian basis functions of any real value of a pair (Zhang et al. 2023)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.resistance import Resistance
from structpe.positions import Cells, Dims, Spec
from structpe.positions._gaussians import GaussianNetwork
from structpe.positions._pair_values import PairNetwork

__all__ = ["RBFBias"]


class RBFBias(PairNetwork, name="rbf-bias"):
    """A bias by Gaussian basis functions of any real value of a pair (Zhang et al. 2023).

    s_ij += (W_2 gelu(W_1 g_ij + c_1) + c_2) of the head, where g_ij are K Gaussians of the value of the pair.

    g_ijk = exp(-((x_ij - m_k) / v_k)^2 / 2) / (sqrt(2 pi) v_k), v_k = |w_k| + 0.01; m, w (K) start from U(0, 3); W_1
    (K, K), W_2 (h, K); all layers have the same. (Zhang et al. 2023, section 4 and appendix; the bias for resistance of
    their code, without the factor by the types of two atoms. The authors write 3.14159 for pi.) A value far from all
    means has the bias of g = 0. ``graphormer-gd`` has this bias beside that of shortest paths, and one more to multiply
    by.

    Pairs without a path have g = 0, and a row of W_1 of their own, if the encoding may have such pairs. Units of one
    node that are k places apart have x = k, if the encoding tells them apart.

    Args:
        dims: sizes of the Transformer.
        encoding: one number per pair.
        kernels: K, 128 in the code.

    Raises:
        PositionError: the encoding does not give one number for each pair.
    """

    spec = Spec(
        "zhang2023",
        "graph",
        Cells(
            "R",
            "MAM",
            learnable=True,
            recurring=True,
            unbound=False,
            params=GaussianNetwork.count("G", "(K - 1)", "h"),
        ),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Resistance(), kernels: int = 32) -> None:
        super().__init__(dims, encoding, vectors=False, G=kernels)
        self.of_values = GaussianNetwork(kernels, self.sizes["K"] - 1, dims.heads)

    def network(self, inputs: Tensor) -> Tensor:
        biases: Tensor = self.of_values(inputs)
        return biases

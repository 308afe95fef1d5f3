"""A bias that a small network computes from any real value of a pair (Zhang et al. 2023)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.resistance import Resistance
from structpe.positions import Cells, Dims, Spec
from structpe.positions._pair_values import PairNetwork
from structpe.positions._perceptron import count_perceptron, perceptron

__all__ = ["MLPBias"]


class MLPBias(PairNetwork, name="mlp-bias"):
    """A bias that a small network computes from any real value of a pair (Zhang et al. 2023).

    s_ij += (W_2 relu(W_1 z_ij + c_1) + c_2) of the head,  z_ij the value of the pair: a number, or a vector.

    W_1 (w, K), W_2 (h, w); all layers have the same. Any encoding of pairs will do: resistance, personalised PageRank,
    distance in space (``euclidean``, with its two labels), walks (``rrwp``; then it is ``random-walk-bias``), or whole
    numbers as with a table, which it continues beyond the largest. (After Zhang et al. 2023, section 4, whose bias is
    "a function of the distance"; their code has Gaussians in front, ``rbf-bias``.)

    z has one more channel if there may be pairs without a path: 1 for these, whose numbers are 0, and 0 for others.
    Units of one node that are k places apart have k, if the encoding tells them apart.

    Args:
        dims: sizes of the Transformer.
        encoding: a number or a vector per pair.
        hidden: w.

    Raises:
        PositionError: the encoding is of single units or listed pairs, or gives sequences.
    """

    spec = Spec(
        "zhang2023",
        "graph",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params=count_perceptron("K", "w", "h")),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Resistance(), hidden: int = 32) -> None:
        super().__init__(dims, encoding, vectors=True, w=hidden)
        self.of_values = perceptron([self.sizes["K"], hidden, dims.heads])

    def network(self, inputs: Tensor) -> Tensor:
        biases: Tensor = self.of_values(inputs)
        return biases

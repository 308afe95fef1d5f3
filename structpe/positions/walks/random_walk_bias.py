"""A bias computed from random walks between two nodes (Ma et al. 2023)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.rrwp import RRWP
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import of_arity
from structpe.positions._perceptron import count_perceptron, perceptron
from structpe.structure import path
from structpe.terms import Lookup, Terms

__all__ = ["RandomWalkBias"]


class RandomWalkBias(PositionModel, name="random-walk-bias"):
    """A bias computed from random walks between two nodes (Ma et al. 2023).

    s_ij += (W_2 relu(W_1 P_ij + c_1) + c_2) of the head: a network from random walks to one scalar per head.

    P_ij (K) are the probabilities to come from i to j in 0, 1, ..., K - 1 steps; W_1 (w, K), W_2 (h, w); all layers
    have the same. (Ma et al. 2023, section 3.1: what such a network can express of a pair, shortest paths included. It
    is ``grit`` without the states of pairs, for comparison with the biases of ``graphormer`` and ``graformer``; the
    authors do not have it as a separate model.) The network runs once per distinct P_ij.

    Args:
        dims: sizes of the Transformer.
        encoding: a vector per pair.
        hidden: w.

    Raises:
        PositionError: the encoding gives no vector per pair.
    """

    spec = Spec(
        "ma2023",
        "graph",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params=count_perceptron("K", "w", "h")),
        note="relative along directed edges; where walks turn back at the ends of a text, text in front changes them",
    )

    def __init__(self, dims: Dims, encoding: Encoding = RRWP(), hidden: int = 32) -> None:
        shape = of_arity(self.name, encoding, 2).one(path(["a", "b"])).values.shape
        if len(shape) != 2:
            raise PositionError(
                f"position model {self.name!r} needs a vector per pair of units (rrwp, ...); {encoding.name!r} gives "
                f"one number"
            )
        super().__init__(dims, [encoding], K=shape[1], w=hidden)
        self.of_walks = perceptron([shape[1], hidden, dims.heads])

    def prepare(self, positions: Positions) -> Terms:
        """The same for all layers."""
        walks: Lookup = positions[self.encodings[0]]
        dtype = next(self.of_walks.parameters()).dtype
        return Terms(bias=(walks.map(lambda p: self.of_walks(p.to(dtype))).share(),))

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared

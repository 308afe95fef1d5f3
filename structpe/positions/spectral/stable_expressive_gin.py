"""Learned functions of the Laplacian, stable and free of any basis (Huang et al. 2024), with a graph network."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.adjacency import Adjacency
from structpe.encodings.eigenpairs import Eigenpairs
from structpe.encodings.unit_count import UnitCount
from structpe.positions import Dims, PositionModel, Positions, Spec
from structpe.positions._perceptron import GraphIsomorphism, around, count_perceptron
from structpe.positions.spectral._nodes import Nodes
from structpe.positions.spectral._spectral_functions import SpectralFunctions
from structpe.positions.spectral._spectrum import Spectrum, learned_cells

__all__ = ["StableExpressiveGIN"]


class StableExpressiveGIN(PositionModel, name="stable-expressive-gin"):
    """Learned functions of the Laplacian, stable and free of any basis (Huang et al. 2024), with a graph network.

    x_u + U sum_w phi(W_.w)_u + c: as ``stable-expressive``, with a graph network over u, for each w, as phi.

    phi is x_u <- MLP((1 + eps) x_u + sum of its neighbours), ``layers`` times, from the M numbers W_uw to p; each MLP
    has one hidden layer. (SPE; Huang et al. 2024, section 3.2, its code with GIN as phi, which is what its experiments
    on molecules use. The code has one more MLP that it does not call; it is left out.)

    Args:
        dims: sizes of the Transformer.
        encoding: the eigenvectors and eigenvalues.
        functions: M.
        hidden: width inside psi and phi.
        width: p.
        layers: of phi.
    """

    spec = Spec(
        "huang2024",
        "graph",
        learned_cells(
            f"{SpectralFunctions.count('m', 'w')} + {GraphIsomorphism.count('m', 'w', 'p', 't')} + "
            f"{count_perceptron('p', 'd')}"
        ),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Eigenpairs = Eigenpairs(whole=True),
        functions: int = 8,
        hidden: int = 16,
        width: int = 16,
        layers: int = 2,
    ) -> None:
        self.adjacency, self.unit_count = Adjacency(), UnitCount()
        super().__init__(dims, [encoding, self.adjacency, self.unit_count], m=functions, w=hidden, p=width, t=layers)
        self.eigenpairs = encoding
        self.functions = SpectralFunctions(functions, hidden)
        self.phi = GraphIsomorphism(functions, hidden, width, layers)
        self.embed = nn.Linear(width, dims.width)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, p) the sum over w."""
        dtype = self.embed.weight.dtype
        nodes = Nodes.of(positions, self.unit_count, dtype)
        spectrum, neighbours = (
            Spectrum.of(positions, self.eigenpairs, dtype),
            nodes.neighbours(positions, self.adjacency),
        )
        (enter, _), *_ = self.phi.ends
        # The first sum over neighbours is of eigenvectors, not of pairs; the last layer of phi follows the sum over w.
        left = around(neighbours, spectrum.vectors, self.phi.eps[0])
        entered = self.functions(left, spectrum, nodes.present, enter)
        hidden = self.phi.after_first(entered, neighbours)
        summed = (hidden * nodes.shares[:, None, :, None]).sum(2)
        leave = self.phi.last
        of_units = functional.linear(summed, leave.weight) + nodes.shares.sum(-1)[:, None, None] * leave.bias
        return torch.where(nodes.present[..., None], of_units, 0)

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        added: Tensor = self.embed(prepared)
        return x + added.to(x.dtype)

"""Learned functions of the Laplacian, stable and free of any basis (Huang et al. 2024), with an MLP over pairs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.eigenpairs import Eigenpairs
from structpe.encodings.unit_count import UnitCount
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._perceptron import count_perceptron, perceptron
from structpe.positions.spectral._nodes import Nodes
from structpe.positions.spectral._spectral_functions import SpectralFunctions
from structpe.positions.spectral._spectrum import Spectrum

__all__ = ["StableExpressive"]


class StableExpressive(PositionModel, name="stable-expressive"):
    """x_u + U sum_w phi(W_uw) + c,  W^m = V diag(psi_m(lambda_1), ..., psi_m(lambda_k)) V^T,  m = 1..M.

    V (n, k) holds the k lowest eigenvectors of the graph; psi_m and phi are MLPs with one hidden layer, from one
    eigenvalue to one number and from the M numbers W_uw of a pair of nodes to p; w runs over the nodes of the graph; U
    (d, p). Signs of eigenvectors, and bases of eigenspaces, change nothing; a small change of the graph changes little.
    (SPE; Huang et al. 2024, section 3, eq. 3; its code with the MLP as phi. Normalisations, an option there, are left
    out.) ``stable-expressive-gin`` has a graph network as phi.

    An eigenspace that the limit k would divide is left out by the default encoding, while the code keeps the part that
    the solver returns, so that its result depends on the basis. Memory grows with n^2 times the width of phi. The
    result for a node does not depend on its number of units.

    Args:
        dims: sizes of the Transformer.
        encoding: the eigenvectors and eigenvalues.
        functions: M.
        hidden: width inside psi and phi.
        width: p.
    """

    spec = Spec(
        "huang2024",
        "graph",
        Cells(
            "A",
            "APE",
            learnable=True,
            recurring=False,
            unbound=True,
            params=f"{SpectralFunctions.count('m', 'w')} + {count_perceptron('m', 'w', 'p', 'd')}",
        ),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Eigenpairs = Eigenpairs(whole=True),
        functions: int = 8,
        hidden: int = 16,
        width: int = 16,
    ) -> None:
        self.unit_count = UnitCount()
        super().__init__(dims, [encoding, self.unit_count], m=functions, w=hidden, p=width)
        self.eigenpairs = encoding
        self.functions = SpectralFunctions(functions, hidden)
        self.phi = perceptron([functions, hidden, width])
        self.embed = nn.Linear(width, dims.width)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, p) the sum over w."""
        dtype = self.embed.weight.dtype
        nodes = Nodes.of(positions, self.unit_count, dtype)
        of_pairs = self.phi(self.functions(Spectrum.of(positions, self.eigenpairs, dtype)))
        return torch.einsum("buw,buwp->bup", nodes.weights, of_pairs)

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        added: Tensor = self.embed(prepared)
        return x + added.to(x.dtype)

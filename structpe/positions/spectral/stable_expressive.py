"""Learned functions of the Laplacian, stable and free of any basis (Huang et al. 2024), with an MLP over pairs."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.eigenpairs import Eigenpairs
from structpe.encodings.unit_count import UnitCount
from structpe.positions import Dims, PositionModel, Positions, Spec
from structpe.positions._perceptron import count_perceptron, perceptron
from structpe.positions.spectral._nodes import Nodes
from structpe.positions.spectral._spectral_functions import SpectralFunctions
from structpe.positions.spectral._spectrum import Spectrum, learned_cells

__all__ = ["StableExpressive"]


class StableExpressive(PositionModel, name="stable-expressive"):
    """Learned functions of the Laplacian, stable and free of any basis (Huang et al. 2024), with an MLP over pairs.

    x_u + U sum_w phi(W_uw) + c,  W^m = V diag(psi_m(lambda_1), ..., psi_m(lambda_k)) V^T,  m = 1..M.

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
        learned_cells(f"{SpectralFunctions.count('m', 'w')} + {count_perceptron('m', 'w', 'p', 'd')}"),
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
        spectrum = Spectrum.of(positions, self.eigenpairs, dtype)
        enter, leave = cast(nn.Linear, self.phi[0]), cast(nn.Linear, self.phi[2])
        entered = self.functions(spectrum.vectors, spectrum, nodes.present, enter)
        # The last layer of phi is linear and follows the sum over w, which is the first unit here: W is symmetric.
        summed = nodes.total(entered)[:, 0]
        of_units = functional.linear(summed, leave.weight) + nodes.shares.sum(-1)[:, None, None] * leave.bias
        return torch.where(nodes.present[..., None], of_units, 0)

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        added: Tensor = self.embed(prepared)
        return x + added.to(x.dtype)

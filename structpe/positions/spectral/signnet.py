"""A network over eigenvectors that does not depend on their signs (Lim et al. 2023)."""

from __future__ import annotations

from torch import Tensor, nn

from structpe.encodings.adjacency import Adjacency
from structpe.encodings.eigenpairs import Eigenpairs
from structpe.encodings.unit_count import UnitCount
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._perceptron import GraphIsomorphism, count_perceptron, perceptron
from structpe.positions.spectral._nodes import Nodes
from structpe.positions.spectral._spectrum import Spectrum

__all__ = ["SignNet"]


class SignNet(PositionModel, name="signnet"):
    """A network over eigenvectors that does not depend on their signs (Lim et al. 2023).

    x_u + U rho(cat_j [phi(v_j) + phi(-v_j)]_u) + c, for the k lowest eigenvectors v_j of the graph.

    phi is a graph network of one channel in and ``channels`` out, x_i <- MLP((1 + eps) x_i + sum of its neighbours),
    run on each eigenvector by itself; rho an MLP on the results of all k for one node, to width k; U (d, k). All MLPs
    have one hidden layer with a rectifier. Signs do not matter; the order of eigenvectors of one eigenvalue, and their
    basis, do. (Lim et al. 2023, section 3, eq. 1; as in the reimplementation of Huang et al. 2024. Batch normalisation,
    which both have as an option, is left out; eigenvalues are not used.)

    Missing eigenvectors of a graph with less than k are zero, as in the code. Neighbours are those along edges of
    either direction. The result for a node does not depend on its number of units.

    Args:
        dims: sizes of the Transformer.
        encoding: the eigenvectors.
        channels: of phi for each eigenvector.
        hidden: width inside phi and rho.
        layers: of phi.
    """

    spec = Spec(
        "lim2023",
        "graph",
        Cells(
            "A",
            "APE",
            learnable=True,
            recurring=False,
            unbound=True,
            params=f"{GraphIsomorphism.count('1', 'w', 'c', 'm')} + {count_perceptron('k*c', 'w', 'k', 'd')}",
        ),
    )

    def __init__(
        self, dims: Dims, encoding: Eigenpairs = Eigenpairs(), channels: int = 4, hidden: int = 64, layers: int = 2
    ) -> None:
        self.adjacency, self.unit_count = Adjacency(), UnitCount()
        k = encoding.k
        super().__init__(dims, [encoding, self.adjacency, self.unit_count], k=k, c=channels, w=hidden, m=layers)
        self.eigenpairs = encoding
        self.phi = GraphIsomorphism(1, hidden, channels, layers)
        self.rho = perceptron([k * channels, hidden, k])
        self.embed = nn.Linear(k, dims.width)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, k) the output of rho."""
        dtype = self.embed.weight.dtype
        vectors = Spectrum.of(positions, self.eigenpairs, dtype).vectors[..., None]
        neighbours = Nodes.of(positions, self.unit_count, dtype).neighbours(positions, self.adjacency)
        both = self.phi(vectors, neighbours) + self.phi(-vectors, neighbours)
        encoded: Tensor = self.rho(both.flatten(2))
        return encoded

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        added: Tensor = self.embed(prepared)
        return x + added.to(x.dtype)

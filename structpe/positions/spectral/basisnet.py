"""A network over eigenspaces that does not depend on their bases (Lim et al. 2023)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.eigenpairs import Eigenpairs
from structpe.encodings.unit_count import UnitCount
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._batch_norm import BatchNorm
from structpe.positions._checks import holds
from structpe.positions._perceptron import count_perceptron, perceptron
from structpe.positions.spectral._nodes import Nodes
from structpe.positions.spectral._spectrum import Spectrum

__all__ = ["BasisNet"]

_OPERATIONS = 5


class BasisNet(PositionModel, name="basisnet"):
    """A network over eigenspaces that does not depend on their bases (Lim et al. 2023).

    x_u + U rho(cat[phi_m(V_i V_i^T)_u for each eigenspace i, lambda_1, ..., lambda_k]) + c, m its dimension.

    V_i (n, m_i) is any orthonormal basis of the i-th eigenspace, so that V_i V_i^T does not depend on it. phi_m, one
    for each dimension m up to ``dimensions``, is an invariant graph network from a matrix to m numbers per node::

        c_u  = [P_uu, sum_w P_ww / n, sum_w P_uw / n, sum_w P_wu / n, sum_vw P_vw / n^2]        P = V_i V_i^T
        y    = norm(relu(A c + a)),   y <- norm(relu(B y + B' mean over nodes of y + b))  twice,   m numbers of an MLP

    norm is batch normalisation over the nodes and eigenspaces of one dimension; rho an MLP with one hidden layer, to
    width k; all inner widths are ``hidden``. (Lim et al. 2023, section 3.2, eq. 5; IGN 2 -> 1 of the authors' code;
    concatenation with the eigenvalues as in the reimplementation of Huang et al. 2024, whose rho is a graph network.)

    An eigenspace cut by the limit k is left out by the default encoding, as the rest of it would depend on the basis.
    Missing eigenvectors, like those of less than k nodes, are zeros, their eigenvalues 0. The result for a node does
    not depend on its number of units.

    Args:
        dims: sizes of the Transformer.
        encoding: the eigenvectors, eigenvalues and eigenspaces.
        dimensions: the largest dimension of an eigenspace; at most k of the encoding.
        hidden: width inside phi and rho.

    Raises:
        PositionError: a batch has an eigenspace of a larger dimension.
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
            params=(
                "m*(6*w + 2*(2*w*w + w) + 3*2*w + (w + 1)*w) + (w + 1)*m*(m + 1)//2 + "
                f"{count_perceptron('2*k', 'w', 'k', 'd')}"
            ),
        ),
    )

    def __init__(
        self, dims: Dims, encoding: Eigenpairs = Eigenpairs(whole=True), dimensions: int = 3, hidden: int = 16
    ) -> None:
        self.unit_count = UnitCount()
        k = encoding.k
        super().__init__(dims, [encoding, self.unit_count], k=k, m=dimensions, w=hidden)
        self.eigenpairs = encoding
        self.phi = nn.ModuleList(_Invariant(hidden, m + 1) for m in range(dimensions))
        self.rho = perceptron([2 * k, hidden, k])
        self.embed = nn.Linear(k, dims.width)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, k) the output of rho."""
        dtype = self.embed.weight.dtype
        spectrum, nodes = Spectrum.of(positions, self.eigenpairs, dtype), Nodes.of(positions, self.unit_count, dtype)
        _, spaces = spectrum.of_structures(nodes.present)
        members = (spaces[:, :, None] == spaces[:, None]) & (spaces >= 0)[:, :, None]
        dimension = members.sum(-1)  # (b, k) of the eigenspace of each vector
        self._check(dimension)
        place = members.tril(-1).sum(-1)  # the how-manieth vector of its eigenspace it is
        begin = torch.arange(place.shape[-1], device=place.device) - place  # its first vector
        projections = _operations(spectrum.vectors, members.to(dtype), nodes)
        of_spaces = torch.zeros_like(spectrum.vectors).transpose(1, 2)
        for m, network in enumerate(self.phi, start=1):
            numbers = self._numbers(network, projections, (place == 0) & (dimension == m), nodes)  # (b, k, n, m)
            own = numbers.gather(1, begin[..., None, None].expand(numbers.shape))
            which = place.clamp(max=m - 1)[..., None, None].expand(*numbers.shape[:3], 1)
            of_spaces = torch.where((dimension == m)[..., None], own.gather(3, which)[..., 0], of_spaces)
        of_spaces = torch.where(nodes.present[..., None], of_spaces.transpose(1, 2), 0)
        values = torch.where(spectrum.there, spectrum.values, 0)
        encoded: Tensor = self.rho(torch.cat([of_spaces, values], dim=-1))
        return encoded

    @staticmethod
    def _numbers(network: nn.Module, projections: Tensor, where: Tensor, nodes: Nodes) -> Tensor:
        """(b, k, n, m) phi_m of the eigenspaces ``where`` (b, k); what the others get has no meaning."""
        if torch.compiler.is_compiling():  # the number of eigenspaces must not matter to a traced graph
            present = where[..., None] & nodes.present[:, None]
            all_of_them: Tensor = network(projections, present, nodes.shares[:, None])
            return all_of_them
        chosen = where.nonzero(as_tuple=True)
        made: Tensor = network(projections[chosen], nodes.present[chosen[0]], nodes.shares[chosen[0]])
        return made.new_zeros(*where.shape, *made.shape[1:]).index_put(chosen, made)

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        added: Tensor = self.embed(prepared)
        return x + added.to(x.dtype)

    def _check(self, dimensions: Tensor) -> None:
        if holds((dimensions > len(self.phi)).any()):
            raise PositionError(
                f"position model {self.name!r} is built for eigenspaces of dimension {len(self.phi)} or less, this "
                f"batch has one of {int(dimensions.max())}; build it with a larger 'dimensions'"
            )


class _Invariant(nn.Module):
    """phi_m: the projections of all eigenspaces (b, n, k, 5) to m numbers each (b, n, k, m)."""

    def __init__(self, hidden: int, numbers: int) -> None:
        super().__init__()
        self.enter = nn.Linear(_OPERATIONS, hidden)
        self.own = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(2))
        self.mean = nn.ModuleList(nn.Linear(hidden, hidden, bias=False) for _ in range(2))
        self.norms = nn.ModuleList(BatchNorm(hidden) for _ in range(3))
        self.out = perceptron([hidden, hidden, numbers])

    def forward(self, projections: Tensor, where: Tensor, shares: Tensor) -> Tensor:
        """(..., n, m) from (..., n, 5); ``where`` (..., n) marks what counts in statistics, ``shares`` is of nodes."""
        enter, *inner = self.norms
        of_mean = (shares / shares.sum(-1, keepdim=True).clamp(min=1))[..., None]
        y = enter(functional.relu(self.enter(projections)), where)
        for own, mean, norm in zip(self.own, self.mean, inner, strict=True):
            y = norm(functional.relu(own(y) + mean((of_mean * y).sum(-2, keepdim=True))), where)
        out: Tensor = self.out(y)
        return out


def _operations(vectors: Tensor, members: Tensor, nodes: Nodes) -> Tensor:
    """(b, k, n, 5) the linear maps from a matrix P to nodes, of the projection on the eigenspace of each vector."""
    diagonal = (vectors * vectors) @ members  # members (b, k, k) are symmetric
    row = (vectors * nodes.means(vectors)) @ members
    every = torch.stack([diagonal, nodes.means(diagonal), row, row, nodes.means(row)], dim=-1)
    return every.transpose(1, 2)

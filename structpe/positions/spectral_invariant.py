"""Functions of eigenvectors that do not depend on their signs or bases, and networks in place of eigenvectors.

Each model computes a vector of each node from the whole graph, and adds a linear map of it to the units. Edges count in
both directions, self-loops do not count, and the result for a node does not depend on its number of units. Missing
eigenvectors, as of graphs with less than k nodes, are zero.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.laplacian import Eigenpairs, Endpoints
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Positions, Spec
from structpe.positions.batch import holds
from structpe.positions.block import SELF
from structpe.positions.by_rows import Ranges, by_rows, cut
from structpe.positions.networks import BatchNorm, GraphIsomorphism, around, count_perceptron, perceptron
from structpe.positions.spectra import ADJACENCY, UNIT_COUNT, Nodes, Spectrum, learned_cells, of_structures
from structpe.terms import Lookup

__all__ = ["BPearl", "BasisNet", "RPearl", "SignNet", "StableExpressive", "StableExpressiveGIN"]


class Embedded(PositionModel):
    """x_u + U z_u + c: subclasses prepare z (b, n, p) of the units, with a network over the graph.

    Args:
        encoding: the eigenvectors, with their eigenvalues and eigenspaces.
    """

    embed: nn.Linear

    def read(self, positions: Positions) -> tuple[Spectrum, Nodes]:
        """The spectrum and the nodes of a batch."""
        dtype = self.embed.weight.dtype
        return Spectrum.of(positions, self.encodings[0], dtype), Nodes.of(positions, dtype)

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        added: Tensor = self.embed(prepared)
        return x + added.to(x.dtype)


def _after_sum(summed: Tensor, weight: Tensor, linear: nn.Linear, nodes: Nodes) -> Tensor:
    """(b, n, p) a linear layer after a weighted sum (b, n, c) in place of before it; 0 for padding.

    Args:
        summed: the sum of what enters the layer, for many vectors in place of one.
        weight: the sum of the weights, which the bias is multiplied by.
        linear: the layer.
        nodes: of the batch.
    """
    return torch.where(nodes.present[..., None], functional.linear(summed, linear.weight) + weight * linear.bias, 0)


class SignNet(Embedded, name="signnet"):
    """A network over eigenvectors that does not depend on their signs (Lim et al. 2023).

    x_u + U rho(cat_j [phi(v_j) + phi(-v_j)]_u) + c, for the k lowest eigenvectors v_j of the graph.

    phi is a graph network of one channel in and ``channels`` out, x_i <- MLP((1 + eps) x_i + sum of its neighbours),
    run on each eigenvector by itself; rho an MLP on the results of all k for one node, to width k; U (d, k). All MLPs
    have one hidden layer with a rectifier. Signs do not matter; the order of eigenvectors of one eigenvalue, and their
    basis, do. (Lim et al. 2023, section 3, eq. 1; as in the reimplementation of Huang et al. 2024. Batch normalisation,
    which both have as an option, is left out; eigenvalues are not used.)

    Args:
        channels: of phi for each eigenvector.
        hidden: width inside phi and rho.
        layers: of phi.
    """

    spec = Spec(
        "lim2023",
        "graph",
        learned_cells(f"{GraphIsomorphism.count('1', 'w', 'c', 'm')} + {count_perceptron('k*c', 'w', 'k', 'd')}"),
    )

    def __init__(
        self, dims: Dims, encoding: Eigenpairs = Eigenpairs(), channels: int = 4, hidden: int = 64, layers: int = 2
    ) -> None:
        k = encoding.k
        super().__init__(dims, [encoding, ADJACENCY, UNIT_COUNT], k=k, c=channels, w=hidden, m=layers)
        self.phi = GraphIsomorphism(1, hidden, channels, layers)
        self.rho = perceptron([k * channels, hidden, k])
        self.embed = nn.Linear(k, dims.width)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, k) the output of rho."""
        spectrum, nodes = self.read(positions)
        vectors, neighbours = spectrum.vectors[..., None], nodes.neighbours(positions)
        both = self.phi(vectors, neighbours) + self.phi(-vectors, neighbours)
        encoded: Tensor = self.rho(both.flatten(2))
        return encoded


class BasisNet(Embedded, name="basisnet"):
    """A network over eigenspaces that does not depend on their bases (Lim et al. 2023).

    x_u + U rho(cat[phi_m(V_i V_i^T)_u for each eigenspace i, lambda_1, ..., lambda_k]) + c, m its dimension.

    V_i (n, m_i) is any orthonormal basis of the i-th eigenspace; V_i V_i^T does not depend on it. phi_m, one for each
    dimension m up to ``dimensions``, is an invariant graph network from a matrix to m numbers per node::

        c_u  = [P_uu, sum_w P_ww / n, sum_w P_uw / n, sum_w P_wu / n, sum_vw P_vw / n^2]        P = V_i V_i^T
        y    = norm(relu(A c + a)),   y <- norm(relu(B y + B' mean over nodes of y + b))  twice,   m numbers of an MLP

    norm is batch normalisation over the nodes and eigenspaces of one dimension; rho an MLP with one hidden layer, to
    width k; all inner widths are ``hidden``. (Lim et al. 2023, section 3.2, eq. 5; IGN 2 -> 1 of the authors' code;
    concatenation with the eigenvalues as in the reimplementation of Huang et al. 2024, whose rho is a graph network.)

    An eigenspace cut by the limit k is left out by the default encoding, as the rest of it would depend on the basis.

    Args:
        dimensions: the largest dimension of an eigenspace; at most k of the encoding.
        hidden: width inside phi and rho.

    Raises:
        PositionError: a batch has an eigenspace of a larger dimension.
    """

    spec = Spec(
        "lim2023",
        "graph",
        learned_cells(
            "m*(6*w + 2*(2*w*w + w) + 3*2*w + (w + 1)*w) + (w + 1)*m*(m + 1)//2 + "
            f"{count_perceptron('2*k', 'w', 'k', 'd')}"
        ),
    )

    def __init__(
        self, dims: Dims, encoding: Eigenpairs = Eigenpairs(whole=True), dimensions: int = 3, hidden: int = 16
    ) -> None:
        k = encoding.k
        super().__init__(dims, [encoding, UNIT_COUNT], k=k, m=dimensions, w=hidden)
        self.phi = nn.ModuleList(_Invariant(hidden, m + 1) for m in range(dimensions))
        self.rho = perceptron([2 * k, hidden, k])
        self.embed = nn.Linear(k, dims.width)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, k) the output of rho."""
        spectrum, nodes = self.read(positions)
        spaces = of_structures(spectrum.spaces, nodes.present)
        members = (spaces[:, :, None] == spaces[:, None]) & (spaces >= 0)[:, :, None]
        dimension = members.sum(-1)  # (b, k) of the eigenspace of each vector
        if holds((dimension > len(self.phi)).any()):
            raise PositionError(
                f"position model {self.name!r} is built for eigenspaces of dimension {len(self.phi)} or less, this "
                f"batch has one of {int(dimension.max())}; build it with a larger 'dimensions'"
            )
        place = members.tril(-1).sum(-1)  # of the vector in its eigenspace, from 0
        begin = torch.arange(place.shape[-1], device=place.device) - place  # its first vector
        projections = _operations(spectrum.vectors, members.to(nodes.shares.dtype), nodes)
        # phi_m runs once for each eigenspace, at its first vector; the i-th of its vectors then reads the i-th number.
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


class _Invariant(nn.Module):
    """phi_m: the projections of all eigenspaces (b, n, k, 5) to m numbers each (b, n, k, m)."""

    def __init__(self, hidden: int, numbers: int) -> None:
        super().__init__()
        self.enter = nn.Linear(5, hidden)
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


def _related(left: Tensor, right: Tensor, bias: Tensor) -> Tensor:
    """(b, n, n c) relu(E W_uw + e) from left (b, n, k), see :class:`SpectralFunctions`."""
    # In place before any view: after it, the gradient would be copied.
    return torch.baddbmm(bias, left, right).relu_()


class SpectralFunctions(nn.Module):
    """relu(E W_uw + e),  W^m_uw = sum_j v_uj psi_m(lambda_j) v_wj, with an MLP of one hidden layer psi_m for each m.

    E and e, the linear layer that a model has first, are applied to psi_m(lambda_j): k vectors in place of n^2.
    """

    def __init__(self, functions: int, hidden: int) -> None:
        super().__init__()
        self.psi = nn.ModuleList(perceptron([1, hidden, 1]) for _ in range(functions))

    def forward(self, left: Tensor, spectrum: Spectrum, present: Tensor, linear: nn.Linear) -> Tensor:
        """(b, n, n, c) of all pairs of units.

        Args:
            left: (b, n, k) v_uj, or sums of these over other units.
            spectrum: v_wj and lambda_j.
            present: (b, n) which units are real.
            linear: E and e, from M to c.
        """
        product = _related(left, *self.factors(spectrum, present, linear))
        return product.view(*product.shape[:2], left.shape[1], -1)

    def factors(self, spectrum: Spectrum, present: Tensor, linear: nn.Linear) -> tuple[Tensor, Tensor]:
        """(b, k, n c) what v_uj is multiplied with, for all w and channels, and e (n c)."""
        of_values = self._of_values(of_structures(spectrum.values, present))
        mapped = functional.linear(of_values, linear.weight)  # (b, k, c)
        right = spectrum.vectors.transpose(1, 2)[..., None] * mapped[:, :, None]  # (b, k, n, c)
        return right.flatten(2), linear.bias.repeat(right.shape[2])

    def _of_values(self, values: Tensor) -> Tensor:
        """(b, k, M) psi of eigenvalues (b, k): all networks at once."""
        networks = [cast(nn.Sequential, psi) for psi in self.psi]
        enter, leave = ([cast(nn.Linear, psi[layer]) for psi in networks] for layer in (0, 2))
        weight, bias = torch.stack([x.weight[:, 0] for x in enter]), torch.stack([x.bias for x in enter])
        hidden = torch.relu(values[..., None, None] * weight + bias)  # (b, k, M, hidden)
        weight, bias = torch.cat([x.weight for x in leave]), torch.cat([x.bias for x in leave])
        return (hidden * weight).sum(-1) + bias

    @staticmethod
    def count(functions: str, hidden: str) -> str:
        """Formula of its number of parameters."""
        return f"{functions}*({count_perceptron('1', hidden, '1')})"


class Stable(Embedded):
    """x_u + U sum_w phi(W_uw) + c, W made by :class:`SpectralFunctions`; subclasses choose phi, and what it sees.

    Args:
        encodings: the eigenvectors first.
        functions: M.
        hidden: width inside psi and phi.
        width: p.
        sizes: values of further symbols of the formula of parameters.
    """

    def __init__(
        self, dims: Dims, encodings: list[Encoding], functions: int, hidden: int, width: int, **sizes: int
    ) -> None:
        super().__init__(dims, encodings, m=functions, w=hidden, p=width, **sizes)
        self.functions = SpectralFunctions(functions, hidden)


class StableExpressive(Stable, name="stable-expressive"):
    """Learned functions of the Laplacian, stable and free of any basis (Huang et al. 2024), with an MLP over pairs.

    x_u + U sum_w phi(W_uw) + c,  W^m = V diag(psi_m(lambda_1), ..., psi_m(lambda_k)) V^T,  m = 1..M.

    V (n, k) holds the k lowest eigenvectors of the graph; psi_m and phi are MLPs with one hidden layer, from one
    eigenvalue to one number and from the M numbers W_uw of a pair of nodes to p; w runs over the nodes of the graph; U
    (d, p). Signs of eigenvectors, and bases of eigenspaces, change nothing; a small change of the graph changes little.
    (SPE; Huang et al. 2024, section 3, eq. 3; its code with the MLP as phi. Normalisations, an option there, are left
    out.) ``stable-expressive-gin`` has a graph network as phi.

    An eigenspace that the limit k would divide is left out by the default encoding, while the code keeps the part that
    the solver returns, which makes its result depend on the basis. Memory grows with n^2 times the width of phi.
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
        super().__init__(dims, [encoding, UNIT_COUNT], functions, hidden, width)
        self.phi = perceptron([functions, hidden, width])
        self.embed = nn.Linear(width, dims.width)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, p) the sum over w."""
        spectrum, nodes = self.read(positions)
        enter, leave = cast(nn.Linear, self.phi[0]), cast(nn.Linear, self.phi[2])
        right, bias = self.functions.factors(spectrum, nodes.present, enter)

        def summed(block: Ranges, left: Tensor, shares: Tensor, right: Tensor, bias: Tensor) -> tuple[Tensor]:
            del block
            return (shares.transpose(1, 2) @ _related(left, right, bias),)

        # The sum is over the first unit of a pair, w here: W is symmetric.
        blocks = cut(bias.shape[0] // enter.out_features, 2 * len(right) * len(bias), right.device)
        rows = [spectrum.vectors, nodes.shares[..., None]]
        (total,) = by_rows(summed, blocks, rows, [right, bias], out=(None,))
        return _after_sum(total.view(len(total), -1, enter.out_features), nodes.whole, leave, nodes)


class StableExpressiveGIN(Stable, name="stable-expressive-gin"):
    """Learned functions of the Laplacian, stable and free of any basis (Huang et al. 2024), with a graph network.

    x_u + U sum_w phi(W_.w)_u + c: as ``stable-expressive``, with a graph network over u, for each w, as phi.

    phi is x_u <- MLP((1 + eps) x_u + sum of its neighbours), ``layers`` times, from the M numbers W_uw to p; each MLP
    has one hidden layer. (SPE; Huang et al. 2024, section 3.2, its code with GIN as phi, which is what its experiments
    on molecules use. The code has one more MLP that it does not call; it is left out.)

    Args:
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
        super().__init__(dims, [encoding, ADJACENCY, UNIT_COUNT], functions, hidden, width, t=layers)
        self.phi = GraphIsomorphism(functions, hidden, width, layers)
        self.embed = nn.Linear(width, dims.width)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, p) the sum over w."""
        spectrum, nodes = self.read(positions)
        neighbours = nodes.neighbours(positions)
        (enter, _), *_ = self.phi.ends
        # The first sum over neighbours is of eigenvectors, not of pairs; the last layer of phi follows the sum over w.
        left = around(neighbours, spectrum.vectors, self.phi.eps[0])
        entered = self.functions(left, spectrum, nodes.present, enter)
        hidden = self.phi.after_first(entered, neighbours)
        return _after_sum(nodes.within(hidden), nodes.whole, self.phi.last, nodes)


class Pearl(Embedded):
    """x_u + U pool_m phi(relu(A [w_m, L w_m, ..., L^(K-1) w_m] + a))_u + c; subclasses choose w_m and pool.

    Args:
        encodings: what the vectors w are made of, besides the graph.
        powers: K.
        hidden: w, width of A's output and inside phi.
        width: p, of phi's output.
        layers: of phi.
    """

    params = f"(k + 1)*w + {GraphIsomorphism.count('w', 'w', 'p', 'm')} + {count_perceptron('p', 'd')}"
    """Formula of the number of parameters."""

    def __init__(
        self, dims: Dims, encodings: list[Encoding], powers: int, hidden: int, width: int, layers: int
    ) -> None:
        super().__init__(dims, [ADJACENCY, UNIT_COUNT, *encodings], k=powers, w=hidden, p=width, m=layers)
        self.powers = powers
        self.enter = nn.Linear(powers, hidden)
        self.phi = GraphIsomorphism(hidden, hidden, width, layers)
        self.embed = nn.Linear(width, dims.width)

    @property
    def causal(self) -> bool:
        """No: an edge to a later unit changes the Laplacian."""
        return False

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, p) the pooled output of phi; 0 for padding."""
        nodes = Nodes.of(positions, self.embed.weight.dtype)
        neighbours = nodes.neighbours(positions)
        degree = neighbours.sum(-1).clamp(min=1).rsqrt()
        walk = degree[:, :, None] * neighbours * degree[:, None]
        each = [self.vectors(positions, nodes)]
        while len(each) < self.powers:
            each.append(each[-1] - walk @ each[-1])
        entered = torch.relu(self.enter(torch.stack(each, dim=-1)))
        pooled, weight = self.pooled(self.phi.before_last(entered, neighbours), nodes)
        return _after_sum(pooled, weight, self.phi.last, nodes)

    @abstractmethod
    def vectors(self, positions: Positions, nodes: Nodes) -> Tensor:
        """(b, n, M) w of each unit."""

    @abstractmethod
    def pooled(self, x: Tensor, nodes: Nodes) -> tuple[Tensor, Tensor]:
        """(b, n, c) a weighted sum over m of x (b, n, M, c), and (b or 1, 1, 1) the sum of its weights."""


class RPearl(Pearl, name="r-pearl"):
    """A graph network over random vectors of the nodes, averaged over many of them (Kanatsoulis et al. 2025, R-PEARL).

    x_u + U mean_m phi(relu(A [w_m, L w_m, ..., L^(K-1) w_m] + a))_u + c,  w_m (n) of independent normal numbers.

    L = I - D^-1/2 A D^-1/2, m = 1..M; phi is a graph network, x_i <- MLP((1 + eps) x_i + sum of its neighbours), that
    runs on each m by itself; A (w, K), U (d, p). It costs no eigenvectors, and its expectation does not depend on the
    numbers of nodes. (Kanatsoulis et al. 2025; the authors' code, whose configuration for ZINC has M 120, K 1 and phi
    of 8 layers.) ``b-pearl`` takes unit vectors for w_m.

    In training the w_m are drawn for each batch. In evaluation those of a structure of n nodes come from a generator
    with a fixed seed, and are always the same; their rows go to nodes in reading order. Nodes without an order are read
    by their numbers: other numbers give another sample of the same mean.

    Unlike the code: mean instead of sum over m, which lets M change after training; no batch normalisation, and MLPs
    with one hidden layer.

    Args:
        samples: M.
        seed: of the generator in evaluation.
    """

    spec = Spec(
        "kanatsoulis2025",
        "graph",
        learned_cells(Pearl.params),
        not_compiled="how much noise it draws depends on the batch",
        not_exported="how much noise it draws depends on the batch",
    )

    def __init__(
        self,
        dims: Dims,
        samples: int = 64,
        powers: int = 1,
        hidden: int = 32,
        width: int = 16,
        layers: int = 2,
        seed: int = 0,
    ) -> None:
        self.endpoints, self.samples, self.seed = Endpoints(), samples, seed
        super().__init__(dims, [self.endpoints], powers, hidden, width, layers)

    def vectors(self, positions: Positions, nodes: Nodes) -> Tensor:
        place = torch.where(nodes.present, positions[self.endpoints][..., 0], 0)
        noise = self._drawn([most + 1 for most in place.amax(1).tolist()], place.device)
        sizes = torch.tensor([len(each) for each in noise], device=place.device)
        rows = (sizes.cumsum(0) - sizes)[:, None] + place
        return torch.cat(noise).to(nodes.shares.dtype)[rows]

    def pooled(self, x: Tensor, nodes: Nodes) -> tuple[Tensor, Tensor]:
        return x.mean(2), x.new_ones(1, 1, 1)

    def _drawn(self, counts: list[int], device: torch.device) -> list[Tensor]:
        """Per structure (n, M)."""
        if self.training:
            return [torch.randn(n, self.samples, device=device) for n in counts]
        generators = {n: torch.Generator().manual_seed(self.seed) for n in counts}
        drawn = {n: torch.randn(n, self.samples, generator=each).to(device) for n, each in generators.items()}
        return [drawn[n] for n in counts]


class BPearl(Pearl, name="b-pearl"):
    """A graph network over the unit vectors of the nodes, summed over all of them (Kanatsoulis et al. 2025, B-PEARL).

    x_u + U sum_v phi(relu(A [e_v, L e_v, ..., L^(K-1) e_v] + a))_u + c,  e_v (n) the unit vector of node v.

    As ``r-pearl``, with unit vectors in place of random ones: nothing is drawn, and it takes memory n^2 times the width
    of phi. The first layer sees (L^k)_uv of each pair of nodes, as ``stable-expressive-gin`` sees learned functions of
    L, but without eigenvectors. (Kanatsoulis et al. 2025; the authors' code, whose configuration for ZINC has K 7 and
    phi of 8 layers.)
    """

    spec = Spec("kanatsoulis2025", "graph", learned_cells(Pearl.params))

    def __init__(self, dims: Dims, powers: int = 7, hidden: int = 32, width: int = 16, layers: int = 2) -> None:
        super().__init__(dims, [], powers, hidden, width, layers)

    def vectors(self, positions: Positions, nodes: Nodes) -> Tensor:
        codes: Lookup = positions[ADJACENCY]  # larger ones are of two units of one node
        return codes.map(lambda code: code >= SELF).dense().to(nodes.shares.dtype) * nodes.present[..., None]

    def pooled(self, x: Tensor, nodes: Nodes) -> tuple[Tensor, Tensor]:
        return nodes.within(x), nodes.whole

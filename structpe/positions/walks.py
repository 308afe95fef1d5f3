"""Random walks, diffusion and other real values of a graph.

A model raises a :class:`PositionError` for an encoding that does not give a vector per unit, or what it needs per pair.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.curvature import CurvatureProfile
from structpe.encodings.diffusion import Electrostatic, HeatKernel, Resistance
from structpe.encodings.directed_walks import DirectedWalks
from structpe.encodings.motifs import Motifs
from structpe.encodings.walks import RRWP, RandomWalk, WalkKernel
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.batch import holds, of_all_pairs, offsets, width_of
from structpe.positions.networks import (
    BatchNorm,
    GaussianNetwork,
    concatenated,
    count_perceptron,
    pair_vector_width,
    perceptron,
    position_width,
    rectified,
)
from structpe.positions.spectra import UNIT_COUNT, Nodes, learned_cells
from structpe.positions.tables import PairNetwork
from structpe.terms import Lookup, Terms

__all__ = [
    "GKAT",
    "RWSE",
    "DirectedWalksSE",
    "ElectrostaticSE",
    "HeatKernelSE",
    "LocalCurvatureProfile",
    "MLPBias",
    "MoSE",
    "RBFBias",
    "RandomWalkBias",
]

Norm: TypeAlias = Literal["batch", "none"]


class StructuralEncoding(PositionModel):
    """cat[x_u, f(norm(s_u))]: a vector of statistics, normalised and embedded in p channels next to the content.

    What norm gives is kept between -5 and 5, which the authors' code does not do. Without that, a statistic that is
    nearly constant in training, such as the walks of three steps where triangles are rare, is 40 deviations away in the
    first triangle, and so is what a model predicts. With ``norm`` "none", f sees the statistics as they are.

    Args:
        encoding: s (k), a vector of statistics per unit.
        width: p, how many of the d channels are the second part; None for a quarter of them.
        layers: of f; 0 for one linear map, as GraphGPS's ``linear``; m for m of them, each followed by a rectifier, the
            inner ones of width 2p, as its ``mlp``.
        norm: "batch" as above, before which an untrained model knows nothing of how large statistics are; or "none".

    Raises:
        PositionError: p leaves no channels for content.
    """

    cells = learned_cells(
        "2*k*b + (k*p + p if m == 0 else k*p + p if m == 1 else (k + 1)*2*p + (m - 2)*(2*p + 1)*2*p + (2*p + 1)*p)"
    )

    def __init__(self, dims: Dims, encoding: Encoding, width: int | None, layers: int, norm: Norm = "batch") -> None:
        k, p = width_of(self.name, encoding), position_width(self.name, width or max(dims.width // 4, 1), dims.width)
        super().__init__(dims, [encoding], k=k, p=p, m=layers, b=int(norm == "batch"))
        self.norm = BatchNorm(k) if norm == "batch" else None
        network = rectified(k, p, layers)
        self.embed = network if layers else nn.Linear(k, p)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, p) the embedded statistics of the queries."""
        statistics = positions.queries(self.encodings[0]).to(next(self.embed.parameters()).dtype)
        if self.norm is None:
            plain: Tensor = self.embed(statistics)
            return plain
        here = statistics.new_ones(statistics.shape[:2], dtype=torch.bool)
        # Queries are the last units of all.
        present = here if positions.present is None else positions.present[:, -here.shape[1] :]
        embedded: Tensor = self.embed(self.norm(statistics, present).clamp(-5, 5))
        return embedded

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        return concatenated(x, prepared)


class RWSE(StructuralEncoding, name="rwse"):
    """Return probabilities of random walks, concatenated with the content (Rampasek et al. 2022; Dwivedi et al. 2022).

    cat[x_u, f(norm([(P)_uu, ..., (P^k)_uu]))],  P = D^-1 A, p of the d channels of the input being the second part.

    f is linear, or has ``layers`` layers with rectifiers (inner width 2p); norm is batch normalisation, over the real
    units, kept between -5 and 5, unlike in the code, where a rare ring is tens of deviations away. (GraphGPS, its
    encoder of node statistics; after RWPE of Dwivedi et al. 2022, section 3.) Authors choose k and p per data set, 20
    and 28 of 64 for ZINC. x is the content in the other d - p channels: the last p channels of the input of the layers
    are overwritten.

    Walks ignore the direction of edges by default; the code follows it, and its data sets have each edge in both
    directions. With directions, a directed acyclic graph has only zeros.
    """

    spec = Spec("rampasek2022", "graph", StructuralEncoding.cells)

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = RandomWalk(undirected=True),
        width: int | None = None,
        layers: int = 0,
        norm: Norm = "batch",
    ) -> None:
        super().__init__(dims, encoding, width, layers, norm)


class HeatKernelSE(StructuralEncoding, name="heat-kernel"):
    """Heat that stays at its node, concatenated with the content (Rampasek et al. 2022).

    cat[x_u, f(norm([h_u(t) for each time t]))]: HKdiagSE of GraphGPS. All else is as in ``rwse``.

    h_u(t) sums exp(-t lambda) v_u^2 over the eigenpairs of D - A, the eigenvalue 0 left out as in the code.
    """

    spec = Spec("rampasek2022", "graph", StructuralEncoding.cells)

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = HeatKernel(),
        width: int | None = None,
        layers: int = 0,
        norm: Norm = "batch",
    ) -> None:
        super().__init__(dims, encoding, width, layers, norm)


class ElectrostaticSE(StructuralEncoding, name="electrostatic"):
    """Statistics of electrostatic potentials, concatenated with the content (Rampasek et al. 2022).

    cat[x_u, f(norm(s_u))]: ElstaticSE of GraphGPS. All else is as in ``rwse``.

    s_u are ten statistics of the potentials G_ij - G_jj, G being the pseudo-inverse of D - A; one of them is there
    twice, as in the code.
    """

    spec = Spec("rampasek2022", "graph", StructuralEncoding.cells)

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Electrostatic(),
        width: int | None = None,
        layers: int = 0,
        norm: Norm = "batch",
    ) -> None:
        super().__init__(dims, encoding, width, layers, norm)


class MoSE(StructuralEncoding, name="mose"):
    """Counts of homomorphisms of small graphs, concatenated with the content (Bao et al. 2025, MoSE).

    cat[x_u, f(norm([Hom_u(F) for each motif F]))]: motif structural encoding. All else is as in ``rwse``.

    Hom_u(F) counts the homomorphisms of a small graph F that map its root to u, see :class:`Motifs`. (Bao et al.
    2025, section 3; the authors' code, whose configurations have an MLP of two layers and no norm: ``layers`` 2 and
    ``norm`` "none", since counts grow fast and all large ones are 5 after the norm of an untrained model.) The authors
    choose the motifs for each data set: for ZINC all images of cycles of seven and eight vertices, for others all
    graphs of up to five vertices and a cycle of six. Here they are cycles of three to eight, and two triangles with an
    edge in common.
    """

    spec = Spec("bao2025", "graph", StructuralEncoding.cells)

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Motifs(),
        width: int | None = None,
        layers: int = 0,
        norm: Norm = "batch",
    ) -> None:
        super().__init__(dims, encoding, width, layers, norm)


class LocalCurvatureProfile(StructuralEncoding, name="curvature-profile"):
    """Statistics of the curvature of a node's edges, concatenated with the content (Fesser & Weber 2024, LCP).

    cat[x_u, f(norm([min, max, mean, std, median of k_uw over the neighbours w of u]))]. All else is as in ``rwse``.

    k_uw is Ollivier's curvature: low for an edge between two communities or in a tree, high inside a clique. The
    authors concatenate the five numbers to the features of nodes, without norm or f.
    """

    spec = Spec(
        "fesser2024",
        "graph",
        replace(StructuralEncoding.cells, reference="R", unbound=False),
        note="no edge of a sequence is curved, so that it says nothing of one",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = CurvatureProfile(),
        width: int | None = None,
        layers: int = 0,
        norm: Norm = "batch",
    ) -> None:
        super().__init__(dims, encoding, width, layers, norm)


class DirectedWalksSE(PositionModel, name="directed-walks"):
    """Random walks from all nodes to a node, along edges and against them, added to it (Geisler et al. 2023).

    x_u + relu(W sum_w relu(V p_wu + a) + b),  p_wu the probabilities to come from w to u, w running over the nodes.

    p_wu (K) has those of 1, 2, 3 steps along edges, those of a walk that begins anew now and then, and the same of
    walks against edges; V (K, K), W (d, K). (Directional random walks; Geisler et al. 2023, their code with its
    settings; compared with its formulas.) Without directions, both halves are the same. Their other form, in which p_wu
    enters attention, is not included; ``mlp-bias`` reads this encoding, too.

    Args:
        encoding: a vector per pair.
    """

    spec = Spec("geisler2023", "graph", learned_cells("(K + 1)*K + (K + 1)*d"))

    def __init__(self, dims: Dims, encoding: Encoding = DirectedWalks()) -> None:
        width = pair_vector_width(self.name, encoding)
        super().__init__(dims, [of_all_pairs(self.name, encoding), UNIT_COUNT], K=width)
        self.of_pairs, self.of_sums = nn.Linear(width, width), nn.Linear(width, dims.width)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, d) what is added."""
        dtype = self.of_sums.weight.dtype
        walks: Lookup = positions[self.encodings[0]]
        seen = walks.map(lambda p: torch.relu(self.of_pairs(p.to(dtype)))).dense()
        summed = (Nodes.of(positions, dtype).shares[:, None] @ seen.flatten(2)).view(len(seen), *seen.shape[2:])
        return torch.relu(self.of_sums(summed))

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        return x + prepared.to(x.dtype)


def _network_cells(params: str, unbound: bool) -> Cells:
    """The row of Table 1 of a bias that a network computes for each pair."""
    return Cells("R", "MAM", learnable=True, recurring=True, unbound=unbound, params=params)


class RandomWalkBias(PositionModel, name="random-walk-bias"):
    """A bias computed from random walks between two nodes (Ma et al. 2023).

    s_ij += (W_2 relu(W_1 P_ij + c_1) + c_2) of the head: a network from random walks to one scalar per head.

    P_ij (K) are the probabilities to come from i to j in 0, 1, ..., K - 1 steps; W_1 (w, K), W_2 (h, w); all layers
    have the same. (Ma et al. 2023, section 3.1: what such a network can express of a pair, shortest paths included. It
    is ``grit`` without the states of pairs, for comparison with the biases of ``graphormer`` and ``graformer``; the
    authors do not have it as a separate model.) The network runs once per distinct P_ij.

    Args:
        encoding: a vector per pair.
        hidden: w.
    """

    spec = Spec(
        "ma2023",
        "graph",
        _network_cells(count_perceptron("K", "w", "h"), unbound=False),
        note="relative along directed edges; where walks turn back at the ends of a text, text in front changes them",
    )

    def __init__(self, dims: Dims, encoding: Encoding = RRWP(), hidden: int = 32) -> None:
        width = pair_vector_width(self.name, encoding)
        super().__init__(dims, [encoding], K=width, w=hidden)
        self.of_walks = perceptron([width, hidden, dims.heads])

    def prepare(self, positions: Positions) -> Terms:
        """The same for all layers."""
        walks: Lookup = positions[self.encodings[0]]
        dtype = next(self.of_walks.parameters()).dtype
        return Terms(bias=(walks.map(lambda p: self.of_walks(p.to(dtype))).share(),))

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared


class GKAT(PositionModel, name="gkat"):
    """Attention weighed by a kernel of random walks (Choromanski et al. 2022).

    w_ij = K_ij exp(s_ij) / sum_k K_ik exp(s_ik), that is s_ij += log K_ij, no attention where K_ij = 0.

    K_ij measures how many nodes the random walks from i and from j share. (Choromanski et al. 2022, section 4.2, the
    random walk graph-nodes kernel; their code multiplies by K instead of using a mask.) Nothing is learned. The
    denominator of their code is 1e-19 larger.

    Args:
        encoding: a number of 0 or more per pair.

    Raises:
        PositionError: the encoding has a negative value.
    """

    spec = Spec(
        "choromanski2022",
        "graph",
        Cells("B", "MAM", learnable=False, recurring=True, unbound=False, params="0"),
        note="a relative model by its form; but a walk ends where a text does, so that text in front changes it",
    )

    def __init__(self, dims: Dims, encoding: Encoding = WalkKernel()) -> None:
        super().__init__(dims, [of_all_pairs(self.name, encoding)])

    def prepare(self, positions: Positions) -> Terms:
        """The same for all layers."""
        kernel: Lookup = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        if holds((kernel.table < 0).any()):
            raise PositionError(
                f"position model 'gkat' needs a kernel of 0 or more; {self.encodings[0].name!r} gives "
                f"{float(kernel.table.min()):g}"
            )
        bias = kernel.map(lambda values: values.where(values > 0, 1).log()[:, None])  # what is 0 is masked instead
        return Terms(bias=(bias,), mask=(kernel.map(lambda values: values > 0).dense()[:, None],))

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared


class MLPBias(PairNetwork, name="mlp-bias"):
    """A bias that a small network computes from any real value of a pair (Zhang et al. 2023).

    s_ij += (W_2 relu(W_1 z_ij + c_1) + c_2) of the head,  z_ij the value of the pair: a number, or a vector.

    W_1 (w, K), W_2 (h, w); all layers have the same. Any encoding of pairs will do: resistance, personalised PageRank,
    distance in space (``euclidean``, with its two labels), walks (``rrwp``; then it is ``random-walk-bias``), or whole
    numbers as with a table, which it continues beyond the largest. (After Zhang et al. 2023, section 4, whose bias is
    "a function of the distance"; their code has Gaussians in front, ``rbf-bias``.)

    If there may be pairs without a path, z has one more channel: 1 for these, whose numbers are 0, and 0 for others.
    Units of one node that are k places apart have k, if the encoding distinguishes them.

    Args:
        encoding: a number or a vector per pair.
        hidden: w.
    """

    spec = Spec("zhang2023", "graph", _network_cells(count_perceptron("K", "w", "h"), unbound=True))

    def __init__(self, dims: Dims, encoding: Encoding = Resistance(), hidden: int = 32) -> None:
        super().__init__(dims, encoding, vectors=True, w=hidden)
        self.of_values = perceptron([self.sizes["K"], hidden, dims.heads])

    def network(self, inputs: Tensor) -> Tensor:
        biases: Tensor = self.of_values(inputs)
        return biases


class RBFBias(PairNetwork, name="rbf-bias"):
    """A bias by Gaussian basis functions of any real value of a pair (Zhang et al. 2023).

    s_ij += (W_2 gelu(W_1 g_ij + c_1) + c_2) of the head, where g_ij are K Gaussians of the value of the pair.

    g_ijk = exp(-((x_ij - m_k) / v_k)^2 / 2) / (sqrt(2 pi) v_k), v_k = |w_k| + 0.01; m, w (K) start from U(0, 3); W_1
    (K, K), W_2 (h, K); all layers have the same. (Zhang et al. 2023, section 4 and appendix; the bias for resistance of
    their code, without the factor by the types of two atoms. The authors write 3.14159 for pi.) A value far from all
    means has the bias of g = 0. ``graphormer-gd`` has this bias beside that of shortest paths, and one more to multiply
    by.

    Pairs without a path have g = 0, and a row of W_1 of their own, if the encoding may have such pairs. Units of one
    node that are k places apart have x = k, if the encoding distinguishes them.

    Args:
        encoding: one number per pair.
        kernels: K, 128 in the code.
    """

    spec = Spec("zhang2023", "graph", _network_cells(GaussianNetwork.count("G", "(K - 1)", "h"), unbound=False))

    def __init__(self, dims: Dims, encoding: Encoding = Resistance(), kernels: int = 32) -> None:
        super().__init__(dims, encoding, vectors=False, G=kernels)
        self.of_values = GaussianNetwork(kernels, self.sizes["K"] - 1, dims.heads)

    def network(self, inputs: Tensor) -> Tensor:
        biases: Tensor = self.of_values(inputs)
        return biases

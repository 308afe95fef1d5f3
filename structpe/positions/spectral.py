"""Eigenvectors and eigenvalues of the Laplacian of a graph, at the input.

An eigenvector and its negative are equally good; so most models here draw a random sign for each while training. They
raise a :class:`PositionError` for an encoding of pairs, or of single numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.dropout import Dropout
from structpe.encodings.base import Encoding
from structpe.encodings.distance import Neighbours
from structpe.encodings.laplacian import Eigenpairs, Endpoints, Laplacian, MagneticLaplacian, TokenLaplacian
from structpe.encodings.tabular import Tabular
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.batch import clipped, of_listed_pairs, width_of
from structpe.positions.networks import AttentionNetwork, concatenated, count_perceptron, position_width, rectified
from structpe.positions.spectra import SpectralTransformer, Spectrum, flipped, learned_cells, transformer_width
from structpe.terms import Pairs, SparsePairs, Terms

__all__ = [
    "Dwivedi",
    "DwivediNeighbours",
    "LapPE",
    "LapPETransformer",
    "MagneticLaplacianInput",
    "TabPET",
    "TokenGT",
    "TokenGTORF",
]


class SignedVectors(PositionModel):
    """x_u + W (s * V_u) + c: V_u the unit's entries of k eigenvectors, s a random sign each in training.

    Args:
        encoding: a vector per unit; random signs suit eigenvectors only.
        others: further encodings.
    """

    def __init__(self, dims: Dims, encoding: Encoding, *others: Encoding) -> None:
        k = width_of(self.name, encoding)
        super().__init__(dims, [encoding, *others], k=k)
        self.embed = nn.Linear(k, dims.width)

    def prepare(self, positions: Positions) -> Any:
        """(b, n, k) the eigenvectors at the queries, with the signs of this batch."""
        vectors: Tensor = positions.queries(self.encodings[0])
        return flipped(vectors) if self.training else vectors

    def inputs(self, x: Tensor, prepared: Any) -> Tensor:
        added: Tensor = self.embed(prepared.to(x.dtype))
        return x + added


class Dwivedi(SignedVectors, name="dwivedi"):
    """Laplacian eigenvectors at the input (Dwivedi and Bresson 2020).

    x_u + W (s * V_u) + c: V_u the unit's entries of the k lowest eigenvectors, s a random sign each in training.

    Drawing one sign per eigenvector and batch, as in the authors' code, teaches the model to ignore signs. W is (d, k),
    c (d). (Dwivedi and Bresson 2020; survey, section 4.3.2.) Their attention is also restricted to the neighbours of
    each node: ``dwivedi-neighbours`` has both. Table 1 counts the eigenvectors as the embedding, without parameters.
    """

    spec = Spec(
        "dwivedi2020",
        "graph",
        learned_cells("k*d + d"),
        table1=Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0"),
        note="the code has a linear layer from k eigenvectors to the width of the model",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Laplacian()) -> None:
        super().__init__(dims, encoding)


class DwivediNeighbours(SignedVectors, name="dwivedi-neighbours"):
    """Laplacian eigenvectors at the input, attention along edges only (Dwivedi and Bresson 2020).

    s_ij = clip(q_i.k_j / sqrt(d_h), -5, 5) where an edge joins i and j, and no other pair;  x_u + W (s * V_u) + c.

    V_u are the unit's entries of the k lowest eigenvectors, s a random sign each in training, one for the whole batch;
    W is (d, k), c (d). (Dwivedi and Bresson 2020, section 2.3, and the authors' code, which clips the scores.)
    ``dwivedi`` is the same with all pairs and no clipping.

    A unit attends to itself only if its node has a self-loop: the same holds in the code unless loops are added to the
    data; ``Neighbours(itself=True)`` adds them. Units of one node are neighbours. A unit without neighbours gets zeros,
    where the code divides by zero. The authors' second form, which multiplies scores by features of edges and updates
    these, is not included: ``exphormer`` multiplies them by types of edges.

    Args:
        neighbours: which pairs attend, a list.
    """

    spec = Spec(
        "dwivedi2020", "graph", Cells("B", "both", learnable=True, recurring=True, unbound=True, params="k*d + d")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Laplacian(), neighbours: Encoding = Neighbours()) -> None:
        super().__init__(dims, encoding, of_listed_pairs(self.name, neighbours))

    def prepare(self, positions: Positions) -> tuple[Tensor, Pairs]:
        """The eigenvectors, and the pairs that attend."""
        listed: SparsePairs = positions[self.encodings[1]]
        return super().prepare(positions), listed.pairs

    def inputs(self, x: Tensor, prepared: tuple[Tensor, Pairs]) -> Tensor:
        return super().inputs(x, prepared[0])

    def terms(self, prepared: tuple[Tensor, Pairs], site: Site) -> Terms:
        return Terms(act=clipped, pairs=(prepared[1],))


class SpectralSet(PositionModel):
    """cat[x_u, sum_j f([s_j v_uj, lambda_j])], j running over the k lowest eigenvectors that the graph has.

    Args:
        encoding: eigenvectors and eigenvalues, the trivial one among them as in the code.

    Raises:
        PositionError: p leaves no channels for content, or the heads do not divide it.
    """

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, p) the sum over eigenvectors."""
        dtype = next(self.parameters()).dtype
        return self.summed(Spectrum.of(positions, self.encodings[0], dtype, drawn=self.training))

    @abstractmethod
    def summed(self, spectrum: Spectrum) -> Tensor:
        """(b, n, p) the sum of f."""

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        return concatenated(x, prepared)


class LapPE(SpectralSet, name="lap-pe"):
    """Eigenvectors with their eigenvalues as a set, concatenated with the content (Rampasek et al. 2022).

    cat[x_u, sum_j f([s_j v_uj, lambda_j])], j running over the k lowest eigenvectors that the graph has.

    f is an MLP with a rectifier after each of its ``layers`` layers, the inner ones of width 2p, the last of width p;
    s_j a random sign for each eigenvector and batch in training, 1 in evaluation. (GraphGPS's LapPE with its DeepSet;
    Rampasek et al. 2022; after Kreuzer et al. 2021, whose Transformer over eigenvectors is ``lap-pe-transformer``.) x
    is the content in the other d - p channels: the last p channels of the input of the layers are overwritten. The
    code's six scales of eigenvectors are options of the encoding, its layers after the sum are not included. Self-loops
    count in the Laplacian, as in SAN's code; GraphGPS's removes them, and adds up parallel edges.

    Args:
        width: p; None for a quarter of the model's width, 4 at least.
        layers: of f.
    """

    spec = Spec(
        "rampasek2022", "graph", learned_cells("3*p if m == 1 else 3*2*p + (m - 2)*(2*p + 1)*2*p + (2*p + 1)*p")
    )

    def __init__(
        self, dims: Dims, encoding: Eigenpairs = Eigenpairs(), width: int | None = None, layers: int = 2
    ) -> None:
        p = position_width(self.name, max(dims.width // 4, 4) if width is None else width, dims.width)
        super().__init__(dims, [encoding], p=p, m=layers)
        self.of_each = rectified(2, p, layers)

    def summed(self, spectrum: Spectrum) -> Tensor:
        each: Tensor = self.of_each(spectrum.pairs())
        return each.masked_fill(~spectrum.there[..., None], 0).sum(-2)


class LapPETransformer(SpectralSet, name="lap-pe-transformer"):
    """Eigenvectors with their eigenvalues, read by a Transformer, concatenated with the content (Rampasek et al. 2022).

    cat[x_u, sum_j T(A [s_j v_uj, lambda_j] + a)_j], j running over the k lowest eigenvectors that the graph has.

    T is a Transformer over the k eigenvectors of one node, of width p; s_j a random sign for each eigenvector and batch
    in training, 1 in evaluation. (GraphGPS's LapPE with its Transformer; Rampasek et al. 2022; Kreuzer et al. 2021, the
    input of ``san``.) All else is as in ``lap-pe``.

    Args:
        width: p; None for a quarter of the model's width, 4 at least, rounded up to what the heads divide.
        heads: of T.
        layers: of T.
        feedforward: hidden width of T; PyTorch's default in the code.
    """

    spec = Spec("rampasek2022", "graph", learned_cells(SpectralTransformer.count("p", "m", "f")))

    def __init__(
        self,
        dims: Dims,
        encoding: Eigenpairs = Eigenpairs(),
        width: int | None = None,
        heads: int = 2,
        layers: int = 1,
        feedforward: int = 2048,
    ) -> None:
        p = transformer_width(self.name, width, heads, dims.width)
        super().__init__(dims, [encoding], p=p, m=layers, f=feedforward)
        self.of_all = SpectralTransformer(p, heads, layers, feedforward)

    def summed(self, spectrum: Spectrum) -> Tensor:
        summed: Tensor = self.of_all(spectrum)
        return summed


class MagneticLaplacianInput(PositionModel, name="magnetic-laplacian"):
    """Eigenvectors of the magnetic Laplacian, for directed graphs (Geisler et al. 2023).

    x_u + relu(W cat_j [y_uj] + c),  y_uj = z_uj + attention(norm(z_u))_j,  z_uj = [lambda_j, f(Re v_uj, Im v_uj)].

    v_j are the k lowest eigenvectors of the magnetic Laplacian, whose phases encode the direction of edges; f = relu(A
    . + a) with A (2e, 2), the same for all; z_uj (2e + 1). Attention is over the k eigenvectors of one node: heads of
    width (2e + 1) / heads, rounded down, queries, keys and values without bias, after a layer normalisation; W (d, k
    (2e + 1)). (MagLapNet; Geisler et al. 2023, section 4.1 and figure 5; the authors' code with its settings for
    sorting networks: no average over signs, phases fixed by the encoding.) Missing eigenvectors, of graphs with less
    than k nodes, are masked and count 0. The code also masks eigenvalues of 0 except the first; here they count.

    Args:
        encoding: the eigenvectors and eigenvalues.
        elements: e; 8 of a model of width 256 in the code.
        heads: of the attention over eigenvectors.
        dropout: of its output and weights.
    """

    spec = Spec(
        "geisler2023",
        "graph",
        learned_cells(
            f"{count_perceptron('2', '2*e')} + 2*(2*e + 1) + 3*(2*e + 1)*w + (w + 1)*(2*e + 1) + "
            f"{count_perceptron('k*(2*e + 1)', 'd')}"
        ),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: MagneticLaplacian = MagneticLaplacian(),
        elements: int = 8,
        heads: int = 4,
        dropout: float = 0.1,
    ) -> None:
        inner = 2 * elements + 1
        each = max(inner // heads, 1)
        super().__init__(dims, [encoding], k=encoding.k, e=elements, w=heads * each)
        self.of_each = nn.Linear(2, 2 * elements)
        self.norm = nn.LayerNorm(inner)
        self.attention = AttentionNetwork(inner, heads, each, dropout, bias=False)
        self.dropout = Dropout(dropout)
        self.out = nn.Linear(encoding.k * inner, dims.width)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, d) the term to add."""
        pairs = positions.queries(self.encodings[0]).to(self.out.weight.dtype)
        values, there = pairs[..., 2:], pairs[..., 2] >= 0
        z = torch.cat([values, functional.relu(self.of_each(pairs[..., :2]))], dim=-1)
        z = (z + self.attention(self.norm(z), there)) * there[..., None]
        return functional.relu(self.out(self.dropout(z.flatten(2))))

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        return x + prepared.to(x.dtype)


class TabPET(PositionModel, name="tab-pet"):
    """Eigenvectors of a graph of columns, concatenated with the content of table cells (Leng et al. 2025).

    cat[x_u, alpha clip(z_u, -10, 10)]: z-scores of lowest and highest eigenvectors of a weighted graph of columns.

    The units are the columns of a table; the weights of their graph, such as rank correlations, are the edge feature
    ``edge_weight``. Nothing is learned. (Leng et al. 2025; the code of their FT-Transformer.) The authors widen tokens
    by z; here d is the whole width, and the last channels of the content are overwritten by z. As many channels are
    taken as the encoding has, zero where it found fewer eigenvectors.

    Args:
        encoding: z, a vector per unit; None for ``tabular``, whose eigenvectors fill at most half the width, 10 at
            either end at most.
        alpha: its weight; the authors choose 0.05 to 10 by validation, 0.1 is the code's default.

    Raises:
        PositionError: the encoding leaves no channels for content.
    """

    spec = Spec("leng2025", "graph", Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0"))

    def __init__(self, dims: Dims, encoding: Encoding | None = None, alpha: float = 0.1) -> None:
        encoding = encoding or Tabular(max_k=max(2, min(10, dims.width // 4)))
        position_width(self.name, width_of(self.name, encoding), dims.width)
        super().__init__(dims, [encoding])
        self.alpha = alpha

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        scores: Tensor = prepared.queries(self.encodings[0])
        return concatenated(x, self.alpha * scores.clamp(-10, 10))


class Identify(nn.Module):
    """W [P_u, P_v] + E[u = v]: W (d, 2k) without bias, E (2, d), its first row for edges, its second for nodes."""

    def __init__(self, k: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Linear(2 * k, width, bias=False)
        self.types = nn.Parameter(torch.randn(2, width) * 0.02)
        nn.init.normal_(self.embed.weight, std=0.02)

    def forward(self, identifiers: Tensor, ends: Tensor) -> Tensor:
        """(b, n, d) from [P_u, P_v] (b, n, 2k) and (u, v) (b, n, 2)."""
        added: Tensor = self.embed(identifiers)
        return added + self.types[(ends[..., 0] == ends[..., 1]).long()]


class Tokens(PositionModel):
    """x_t + W [P_u, P_v] + E[u = v]: token t is the node u = v, or the edge from u to v.

    The tokens are made by :func:`structpe.transforms.nodes.edge_tokens`; in any other structure every unit is a
    node.
    """

    identify: Identify

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        return x + prepared.to(x.dtype)


class TokenGT(Tokens, name="tokengt"):
    """Nodes and edges as tokens, whose ends are identified by Laplacian eigenvectors (Kim et al. 2022).

    x_t + W [s * P_u, s * P_v] + E[u = v]: token t is the node u = v, or the edge from u to v.

    P_u has the node's entries of the k lowest eigenvectors of the Laplacian, the trivial one among them; s is a random
    sign for each eigenvector and structure in training, 1 in evaluation. W (d, 2k) without bias; E (2, d) tells nodes
    from edges, a self-loop looking like a node. The tokens are made by
    :func:`structpe.transforms.nodes.edge_tokens`; in any other structure every unit is a node. (Kim et al. 2022,
    section 2.2; the authors' code, where random signs and a dropout of eigenvectors, not here, are options.) The tokens
    [graph] and [null] that the code adds are not positions: they would be units.

    Args:
        encoding: eigenvectors at both ends.
    """

    spec = Spec("kim2022", "graph", learned_cells("2*k*d + 2*d"))

    def __init__(self, dims: Dims, encoding: TokenLaplacian = TokenLaplacian()) -> None:
        super().__init__(dims, [encoding, Endpoints()], k=encoding.k)
        self.identify = Identify(encoding.k, dims.width)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, d) the term to add."""
        vectors, ends = (positions.queries(encoding) for encoding in self.encodings)
        if self.training:
            signs = torch.randint(0, 2, (len(vectors), 1, vectors.shape[-1] // 2), device=vectors.device) * 2 - 1
            vectors = vectors * torch.cat([signs, signs], dim=-1)
        added: Tensor = self.identify(vectors.to(self.identify.types.dtype), ends)
        return added


class TokenGTORF(Tokens, name="tokengt-orf"):
    """Nodes and edges as tokens, whose ends are identified by orthogonal random features (Kim et al. 2022).

    x_t + W [P_u, P_v] + E[u = v], P_u row u of a random orthogonal matrix: token t is the node u = v or the edge uv.

    For m nodes the matrix is (m, m); of each row the first k numbers are taken, or zeros added up to k, and the row is
    brought to length 1 again. W (d, 2k) without bias, E (2, d). The tokens are made by
    :func:`structpe.transforms.nodes.edge_tokens`; in any other structure every unit is a node. (Kim et al. 2022,
    section 2.2; the authors' code, whose matrix has the size of the largest graph of a batch, and gives a small graph
    different features in a batch with a large one; here each has its own.)

    In training the matrices are drawn for each batch. In evaluation the matrix of a structure of m nodes is drawn from
    a generator with a fixed seed. Its rows go to nodes in reading order, and a text is always represented alike; in a
    structure without an order they go by number, and the same graph numbered otherwise is represented otherwise.

    Args:
        width: k.
        seed: of the generator in evaluation.
    """

    spec = Spec(
        "kim2022",
        "graph",
        learned_cells("2*k*d + 2*d"),
        not_compiled="how much noise it draws depends on the batch",
        not_exported="how much noise it draws depends on the batch",
    )

    def __init__(self, dims: Dims, width: int = 64, seed: int = 0) -> None:
        super().__init__(dims, [Endpoints()], k=width)
        self.width, self.seed = width, seed
        self.identify = Identify(width, dims.width)

    @property
    def causal(self) -> bool:
        """No: with every node that is added there is another matrix."""
        return False

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, d) the term to add."""
        ends: Tensor = positions[self.encodings[0]]
        if positions.present is not None:
            ends = ends * positions.present[..., None]
        last = ends.flatten(1).amax(1)
        which = torch.arange(len(ends), device=ends.device)[:, None].expand(ends.shape[:2])
        return self.added(self.draw([most + 1 for most in last.tolist()], ends.device), ends, which)

    def draw(self, counts: list[int], device: torch.device) -> list[Tensor]:
        """Per structure a random orthogonal matrix (m, m), m its number of nodes."""
        if self.training:
            return [_orthogonal(torch.randn(m, m, device=device)) for m in counts]
        generators = {m: torch.Generator().manual_seed(self.seed) for m in counts}
        drawn = {m: _orthogonal(torch.randn(m, m, generator=each)).to(device) for m, each in generators.items()}
        return [drawn[m] for m in counts]

    def added(self, matrices: list[Tensor], ends: Tensor, which: Tensor) -> Tensor:
        """(b, n, d) from a matrix per structure, the ends (b, n, 2) of the tokens, and (b, n) whose these are."""
        cut = [functional.pad(each[:, : self.width], (0, max(self.width - len(each), 0))) for each in matrices]
        table = functional.normalize(torch.cat(cut), dim=1).to(self.identify.types.dtype)
        sizes = torch.tensor([len(matrix) for matrix in matrices], device=ends.device)
        rows = (sizes.cumsum(0) - sizes)[which][..., None] + ends
        added: Tensor = self.identify(table[rows].flatten(-2), ends)
        return added


def _orthogonal(gaussian: Tensor) -> Tensor:
    orthogonal: Tensor = torch.linalg.qr(gaussian)[0].T
    return orthogonal

"""Eigenvectors and eigenvalues of graphs: of the Laplacian, of the magnetic one, of nodes and edges as tokens.

Shapes: b graphs of one size, c nodes each, m eigenvectors.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from structpe.encodings.base import Encoded, Encoding, check_matrices, check_sizes, flags
from structpe.encodings.columns import groups
from structpe.encodings.graphs import Graphs, OfNodes, adjacency_matrices, of_units, ranks, ranks_of_all
from structpe.encodings.spectra import canonical_signs, eigenpairs, laplacians, lowest_dense, with_signs
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = [
    "Eigenpairs",
    "Eigenvalues",
    "Endpoints",
    "Laplacian",
    "MagneticLaplacian",
    "MultiQMagnetic",
    "Norm",
    "TokenLaplacian",
    "endpoints",
    "one_way",
    "scaled",
]


Floats = NDArray[np.float64]

Norm: TypeAlias = Literal["L2", "L1", "abs-max", "wavelength", "wavelength-asin", "wavelength-soft", "rows"]
"""How eigenvectors are scaled: to length 1 (L2), to a sum of magnitudes of 1 (L1), to a largest magnitude of 1
(abs-max); the latter, its arcsine, or a soft maximum, times the wavelength 1/sqrt(lambda) (wavelength...); or each
row, the entries of one node, to length 1 (rows)."""

_EPS = 1e-12


def scaled(vectors: Floats, values: Floats, norm: Norm) -> Floats:
    """Eigenvectors (b, c, m) with eigenvalues (b, m), scaled; vectors and rows of zeros remain zero."""
    sizes = np.abs(vectors)
    largest = np.maximum(sizes.max(axis=1, keepdims=True), _EPS)
    root = np.where(values < _EPS, 1.0, np.sqrt(np.maximum(values, 0.0)))[:, None]  # 1 for a constant vector
    size: Floats
    match norm:
        case "L2":
            size = np.linalg.norm(vectors, axis=1, keepdims=True)
        case "L1":
            size = sizes.sum(axis=1, keepdims=True)
        case "abs-max":
            size = largest
        case "wavelength":
            size = sizes.max(axis=1, keepdims=True) * root * 2 / np.pi
        case "wavelength-asin":
            vectors, size = np.arcsin(np.clip(vectors / largest, -1, 1)), root  # rounding may exceed the range
        case "wavelength-soft":
            size = (softmax(sizes, axis=1) * sizes).sum(axis=1, keepdims=True) * root
        case "rows":
            size = np.linalg.norm(vectors, axis=2, keepdims=True)
    scaled: NDArray[np.float64] = vectors / np.maximum(size, _EPS)
    return scaled


_SAME = 1e-7  # eigenvalues that differ by less are equal: more than the solvers' errors, less than gaps of long paths


@dataclass(frozen=True)
class _Lowest(OfNodes):
    """Encodings of the lowest eigenpairs of L = I - D^-1/2 A D^-1/2.

    Args:
        k: number of eigenvectors.
        components: decompose each connected part separately.
        skip: how many of the lowest are dropped; 0 keeps the trivial one, as SAN and GraphGPS do.
        minutes: time limit for one part of a graph, by an estimate; does not change values.

    Raises:
        EncodingError: k or skip is too small; the iterations for a large graph do not converge, or would take too long
            by an estimate.
    """

    real = True
    version = 2

    k: int = 8
    components: bool = True
    skip: int = 1
    minutes: int = 1

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True)
class Laplacian(_Lowest, name="laplacian"):
    """Eigenvectors of the Laplacian of the graph.

    V_u: the unit's entries of the k lowest non-trivial eigenvectors of L = I - D^-1/2 A D^-1/2: float32 (k).

    (Dwivedi & Bresson 2020; survey, section 4.3.2.) A_ij = 1 if an edge leads from i to j or from j to i, where
    parallel edges and self-loops count once; D is its row sum, at least 1. Eigenvalues ascend, vectors have length 1.
    Missing columns of a small graph are zero, which adds nothing to a linear map of the columns; the encoding
    :class:`Eigenvalues` with the same options marks them. All units of a node have its entries.

    Parts: each connected part is decomposed separately and its trivial eigenvector (eigenvalue 0) is dropped, so column
    j has the j-th vector of every part. Dwivedi & Bresson's code decomposes the whole graph and drops the first vector
    only (``components=False``), so with several parts an arbitrary basis of the other trivial vectors remains.

    Sign: the entry of largest magnitude is positive, and the next ones break ties. If v and -v have the same entries
    (every second vector of a path), the first node in reading order, or by number, with a nonzero entry is positive.
    For a repeated eigenvalue only the space is determined, and the solver chooses its basis; :meth:`repeated` says
    where. Models that must not depend on signs or bases use an invariant (SignNet, SPE).

    Computed in float64, from the singular vectors of half the matrix if edges join two sides only, as in trees; above
    500 nodes by Lanczos iterations from fixed starts, first in float32. Residuals are checked in float64 and, if it is
    cheap, eigenvalues are counted, so no copy of a repeated one is missed. If the computation would take longer
    than ``minutes``, by an estimate for one core, an error is raised before it begins: from about 500,000 nodes on,
    except for trees, paths and graphs that are nearly one.
    """

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> NDArray[np.float32]:
        total, done = int(graphs.start[-1]), 0
        found, nodes, start = np.zeros((total, self.k)), np.empty(total, dtype=np.int64), []
        for of_each, _, vectors in eigenpairs(
            self, structures, graphs, self.skip + self.k, self.minutes, self.components
        ):
            (b, c), kept, end = of_each.shape, vectors[..., self.skip :], done + of_each.size
            nodes[done:end] = of_each.reshape(-1)
            found[done:end].reshape(b, c, self.k)[..., : kept.shape[-1]] = kept
            start.append(np.arange(done, end, c))
            done = end
        result = np.empty((total, self.k), dtype=np.float32)
        result[nodes] = with_signs(found, ranks_of_all(structures)[nodes], np.concatenate([nodes[:0], *start]))
        return result

    def repeated(self, structure: Structure) -> NDArray[np.bool_]:
        """(u, k) whether the eigenvalue of an entry is repeated: then the solver has chosen the eigenvector.

        Eigenvalues that differ by less than 1e-7 are equal. The first one that is left out counts too: k may cut
        through an eigenspace.

        Raises:
            EncodingError: as for :meth:`one`.
        """
        graphs, count = Graphs.of([structure]), self.skip + self.k
        found = np.zeros((int(graphs.start[-1]), self.k))
        for nodes, values, _ in eigenpairs(self, [structure], graphs, count + 1, self.minutes, self.components):
            equal = np.pad(np.diff(values) < _SAME, ((0, 0), (1, 1)))
            kept = (equal[:, :-1] | equal[:, 1:])[:, self.skip : count]
            found[nodes, : kept.shape[-1]] = kept[:, None]
        return graphs.of_units(found) > 0


@dataclass(frozen=True)
class Eigenvalues(_Lowest, name="eigenvalues"):
    """Eigenvalues of the Laplacian of the graph.

    lambda_u: eigenvalues of the vectors of :class:`Laplacian` for the unit's part: float32 (k).

    From 0 to 2, ascending; -1 without a vector, so ``values >= 0`` is the mask of the columns. (An isolated node has
    D = 1 and so the eigenvalue 1, as in Dwivedi & Bresson's code; ``skip=1`` drops it, as the only one of its part.)
    """

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> NDArray[np.float32]:
        result = np.full((int(graphs.start[-1]), self.k), -1.0, dtype=np.float32)
        count = self.skip + self.k
        for nodes, values, _ in eigenpairs(self, structures, graphs, count, self.minutes, self.components):
            kept = np.clip(values[:, self.skip :], 0.0, 2.0)  # rounding may exceed the range
            result[nodes, : kept.shape[-1]] = kept[:, None]
        return result


def _check(encoding: _Lowest | Eigenpairs) -> None:
    if encoding.k < 1 or encoding.skip < 0:
        raise EncodingError(
            f"encoding {encoding.name!r}: k must be 1 or more and skip 0 or more; they are k {encoding.k}, "
            f"skip {encoding.skip}"
        )
    check_sizes(encoding, k=encoding.k, minutes=encoding.minutes)


@dataclass(frozen=True)
class Eigenpairs(OfNodes, name="eigenpairs"):
    """Eigenvectors and eigenvalues of the graph together, with the number of the eigenspace of each.

    (v_uj, lambda_j, e_j) for the k lowest eigenvectors: float32 (k, 3).

    v_uj is the unit's entry of the j-th eigenvector of L, lambda_j its eigenvalue, and e_j = 0, 1, ... the number of
    the eigenspace: vectors with the same eigenvalue have the same number, and any orthonormal basis of them is
    equivalent. If there is no j-th vector, the three are 0, -1, -1. The graph is decomposed as a whole, and its lowest
    vectors are kept, as in SAN (Kreuzer et al. 2021), GraphGPS (Rampasek et al. 2022), SignNet and BasisNet (Lim et al.
    2023) and SPE (Huang et al. 2024). Signs are fixed as in the encoding ``laplacian``.

    Eigenvalues of L = I - D^-1/2 A D^-1/2 are 0 to 2, an isolated node has 1. Those of L = D - A are 0 to 2 max D.

    Args:
        k: number of eigenvectors.
        skip: how many of the lowest are dropped.
        normalised: L = I - D^-1/2 A D^-1/2, else L = D - A.
        norm: how the vectors are scaled; see :data:`Norm`.
        whole: leave out the last eigenspace if k cuts it. Its remaining vectors would be the solver's choice, and
            every function of them would depend on the basis.
        minutes: time limit for one graph, by an estimate; does not change values.

    Raises:
        EncodingError: k or skip is too small; the iterations for a large graph do not converge, or would take too long
            by an estimate.
    """

    real = True
    version = 2

    k: int = 8
    skip: int = 0
    normalised: bool = True
    norm: Norm = "L2"
    whole: bool = False
    minutes: int = 1

    def __post_init__(self) -> None:
        _check(self)

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> NDArray[np.float32]:
        result = np.tile(np.array([0, -1, -1], dtype=np.float32), (int(graphs.start[-1]), self.k, 1))
        rank, count = ranks_of_all(structures), self.skip + self.k
        found = eigenpairs(self, structures, graphs, count + self.whole, self.minutes, False, self.normalised)
        for nodes, values, vectors in found:
            values = np.maximum(values, 0.0)  # rounding may exceed the range
            numbers = np.cumsum(np.diff(values, axis=1, prepend=values[:, :1]) > _SAME, axis=1)  # of eigenspaces
            there = slice(self.skip, min(count, values.shape[1]))
            kept = scaled(canonical_signs(vectors[..., there], rank[nodes]), values[:, there], self.norm)
            first = numbers[:, self.skip : self.skip + 1]  # numbers begin at 0 after skipping
            of_all = values[:, None, there], (numbers[:, there] - first)[:, None]
            pairs = np.stack([kept, *(np.broadcast_to(each, kept.shape) for each in of_all)], axis=-1)
            if values.shape[1] > count:
                cut = numbers[:, None, there] == numbers[:, None, count:]
                pairs[np.broadcast_to(cut, kept.shape)] = (0, -1, -1)
            result[nodes, : pairs.shape[2]] = pairs
        return result


Complex = NDArray[np.complex128]

_SAME_ENTRY = 1e-6  # entries that differ by less are equal: well above rounding


@dataclass(frozen=True)
class _Magnetic(OfNodes):
    """Encodings of the lowest eigenpairs of Hermitian matrices.

    Args:
        k: number of eigenvectors.
        q: how far phases turn.
    """

    real = True

    k: int = 8
    q: float = 0.25

    def __post_init__(self) -> None:
        check_sizes(self, k=self.k)
        if not math.isfinite(self.q):
            raise EncodingError(f"encoding {self.name!r}: q is {self.q}; give a finite number")

    @property
    def count(self) -> int:
        """How many matrices."""
        return 1

    @abstractmethod
    def matrices(self, leads: NDArray[np.bool_], charged: bool) -> Iterator[Complex | Floats]:
        """Each (b, c, c) matrix of adjacencies (b, c, c), all or none with one-way edges; real if it can be."""

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> NDArray[np.float32]:
        """(T, count, k, 3)."""
        rank = ranks_of_all(structures)
        result = np.empty((int(graphs.start[-1]), self.count, self.k, 3), dtype=np.float32)
        for nodes, edges in graphs.parts(connected=False):
            check_matrices(self, nodes.shape[1])
            directed = graphs.directed[graphs.graph[nodes[:, 0]]]
            leads = adjacency_matrices(edges, len(nodes), nodes.shape[1], directed)
            charged = (leads != leads.swapaxes(1, 2)).any(axis=(1, 2)) & (self.q != 0)
            # The real solver for a real matrix: the complex one may add a phase that the rules do not remove.
            for some in (charged, ~charged):
                if some.any():
                    for which, matrix in enumerate(self.matrices(leads[some], bool(charged[some][0]))):
                        result[nodes[some], which] = self._pairs(matrix, rank[nodes[some]])
        return result

    def _pairs(self, matrices: Complex | Floats, rank: Ids) -> NDArray[np.float32]:
        """(b, c, k, 3) of (b, c, c) matrices and (b, c) ranks."""
        values, found = lowest_dense(matrices, self.k)
        phased = np.iscomplexobj(matrices)
        vectors = _phased(found.astype(np.complex128), rank) if phased else canonical_signs(found, rank)
        pairs = np.tile(np.array([0, 0, -1], dtype=np.float32), (*found.shape[:2], self.k, 1))
        pairs[:, :, : values.shape[1]] = np.stack(
            np.broadcast_arrays(vectors.real, vectors.imag, np.maximum(values, 0.0)[:, None]), axis=-1
        )
        return pairs


@dataclass(frozen=True)
class MagneticLaplacian(_Magnetic, name="magnetic-laplacian"):
    """Eigenvectors of the magnetic Laplacian, whose phases follow the direction of edges.

    (Re v_uj, Im v_uj, lambda_j) for the k lowest eigenvectors of L = I - D^-1/2 B D^-1/2: float32 (k, 3).

    B_uw = exp(2 pi i q' (A_uw - A_wu)) if an edge joins u and w in any direction, else 0; A_uw = 1 if an edge leads
    from u to w; D is the row sum of |B|, at least 1. (Geisler et al. 2023, section 3; Furutani et al. 2020.) L is
    Hermitian: eigenvalues are real, eigenvectors complex. Along an edge of a graph without cycles the phase decreases
    by 2 pi q', and by another half turn if the vector changes sign. The charge is q' = q / max(min(m, n), 1), for m
    edges with one direction only and n nodes, so phases make at most q turns. Without such edges L is the ordinary
    Laplacian and the imaginary parts are 0. If there is no j-th vector, the three are 0, 0, -1.

    Phase: a multiple of an eigenvector by a complex number of length 1 is also an eigenvector. Each vector is first
    rotated so that its entry of largest magnitude is positive. Then the node with the largest imaginary part in the
    first vector is chosen, and all vectors with an entry there are rotated so that it is positive. (The authors'
    convention, except for the first step, which removes the phase from the solver.) Ties are broken by the entries
    themselves: in the first step by the imaginary, then the real part of p_u^j conj(sum_w |v_w|^2 p_w^j), p_u = v_u /
    |v_u|, j = 1, 2, 3; in the second by the real part, and then by the other vectors. What is left is a symmetry, and
    the first in reading order, or by number, is taken. If no edge has one direction only, signs are those of
    ``laplacian``. The solver chooses the basis for a repeated eigenvalue.

    Args:
        k: number of eigenvectors.
        q: range of the phases; 0 for the ordinary Laplacian. The authors use 0.1 and 0.25.
        normalised: L as above, else L = D - B.

    Raises:
        EncodingError: k is too small.
    """

    version = 2

    k: int = 8
    q: float = 0.25
    normalised: bool = True

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> NDArray[np.float32]:
        return super().of_nodes(graphs, structures)[:, 0]

    def matrices(self, leads: NDArray[np.bool_], charged: bool) -> Iterator[Complex | Floats]:
        """L of adjacencies, all or none with one-way edges."""
        plain = laplacians(leads | leads.swapaxes(1, 2), self.normalised)
        turned = self._turns(leads)
        yield plain * turned if turned.imag.any() else plain

    def _turns(self, leads: NDArray[np.bool_]) -> Complex:
        """(b, c, c) exp(2 pi i q' (A - A^T))."""
        way = leads.astype(np.float64) - leads.swapaxes(1, 2)
        result: Complex = np.exp(2j * np.pi * (self.q / one_way(leads))[:, None, None] * way)
        return result


@dataclass(frozen=True)
class MultiQMagnetic(_Magnetic, name="multi-q-magnetic"):
    """Eigenvectors of several magnetic Laplacians, whose phases turn by different shares of a circle along an edge.

    (Re v_cuj, Im v_cuj, lambda_cj) for the k lowest eigenvectors of L_c, c = 1..charges: float32 (charges, k, 3).

    L_c = I - D^-1/2 (e^(2 pi i c q) A + e^(-2 pi i c q) A^T) D^-1/2; A_uw = 1 if an edge leads from node u to another
    node w; D is the sum of its rows and of its columns, at least 1. (Huang et al. 2025; their code.) Functions of
    several of these spectra can express how many walks lead from a node to another with so many steps along edges and
    so many against them, which those of one cannot. Unlike in ``magnetic-laplacian``, q does not depend on the size of
    the graph, and two edges of opposite directions count as two, whose turns cancel.

    Phases are those of ``magnetic-laplacian``, for each L_c alone, and where L_c is real, signs are those of
    ``laplacian``. The authors keep what the solver returns. If there is no j-th vector, the three are 0, 0, -1.

    Args:
        k: number of eigenvectors of each.
        q: of the first, in circles; 0.1 in their code.
        charges: how many; 5 or 10 there.
        relative: divide q by max(min(m, n), 1), as ``magnetic-laplacian`` does; "dynamic" in their code.

    Raises:
        EncodingError: k or charges are too small, or q is not finite.
    """

    k: int = 8
    q: float = 0.1
    charges: int = 5
    relative: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes(self, charges=self.charges)

    @property
    def count(self) -> int:
        """How many matrices."""
        return self.charges

    def matrices(self, leads: NDArray[np.bool_], charged: bool) -> Iterator[Complex | Floats]:
        """L_1, L_2, ...; real ones if no edge has one direction only, or if each is turned by half a circle."""
        onward = leads & ~np.eye(leads.shape[1], dtype=np.bool_)
        degree = onward.sum(axis=1) + onward.sum(axis=2)
        scale = np.maximum(degree, 1) ** -0.5
        scaled = scale[:, :, None] * onward * scale[:, None]
        turns = self.q / (one_way(leads) if self.relative else np.ones(len(leads)))
        for charge in range(1, self.charges + 1):
            turned = np.exp(2j * np.pi * charge * turns)[:, None, None] * scaled
            whole = np.eye(leads.shape[1]) - turned - turned.swapaxes(1, 2).conj()
            yield whole if charged and (np.abs(whole.imag) > _SAME_ENTRY).any() else whole.real


def one_way(leads: NDArray[np.bool_]) -> Floats:
    """(b,) max(min(m, n), 1), m the number of edges that have one direction only, n that of nodes."""
    edges = (leads != leads.swapaxes(1, 2)).sum(axis=(1, 2)) / 2
    found: Floats = np.maximum(np.minimum(edges, leads.shape[1]), 1)
    return found


def _phased(vectors: Complex, rank: Ids) -> Complex:
    """(b, c, m) eigenvectors rotated so that one node of each graph is real in all; the rank (b, c) breaks ties."""
    sizes = np.abs(vectors)
    phases = np.where(sizes > _SAME_ENTRY, vectors / np.maximum(sizes, _SAME_ENTRY), 0.0)
    turns = [phases**p * (sizes**2 * phases**p).sum(axis=1, keepdims=True).conj() for p in (1, 2, 3)]
    vectors = vectors * _back(vectors, _first_largest([sizes, *_parts(turns)], rank))
    columns = np.split(vectors, vectors.shape[2], axis=2)
    return vectors * _back(vectors, _first_largest(_parts(columns), rank))


def _parts(values: Sequence[Complex]) -> list[Floats]:
    """The imaginary and the real part of each."""
    return [part for each in values for part in (each.imag, each.real)]


def _first_largest(values: Sequence[Floats], rank: Ids) -> Ids:
    """(b, 1, m) the node with the largest of (b, c, m) values; the next values break ties, and at last the rank."""
    candidates = np.ones(values[0].shape, dtype=np.bool_)
    for each in values:
        left = np.where(candidates, each, -np.inf)
        candidates = left > left.max(axis=1, keepdims=True) - _SAME_ENTRY
    first: Ids = np.where(candidates, rank[:, :, None], np.iinfo(np.int64).max).argmin(axis=1)[:, None]
    return first


def _back(vectors: Complex, nodes: Ids) -> Complex:
    """(b, 1, m) factors that rotate the entries of some nodes to the positive real axis; 1 for an entry of 0."""
    entries = np.take_along_axis(vectors, np.broadcast_to(nodes, (*nodes.shape[:2], vectors.shape[2])), axis=1)
    sizes = np.abs(entries)
    return np.where(sizes > _SAME_ENTRY, entries.conj() / np.maximum(sizes, _SAME_ENTRY), 1.0)


def endpoints(encoding: Encoding, structure: Structure) -> tuple[Ids, Ids, Ids]:
    """The graph whose nodes and edges are the tokens of a structure, see :func:`structpe.transforms.edge_tokens`.

    Without the feature ``is_edge``, all tokens are nodes, and the edges are unchanged.

    Returns:
        (m,) the tokens that are nodes, in reading order; (n, 2) index of source and target of each token among these,
        twice the same for a node; (e, 2) the edges between these.

    Raises:
        EncodingError: a token of an edge does not have one source and one target.
    """
    tokens = flags(encoding, structure, "is_edge")
    nodes = np.flatnonzero(~tokens)
    nodes = nodes[np.argsort(ranks(structure)[nodes])]
    place = np.full(structure.size, -1)
    place[nodes] = np.arange(len(nodes))
    ends = np.stack([place, place], axis=1)
    if not tokens.any():
        return nodes, ends, place[structure.edges]
    for column, (far, token) in enumerate(((0, 1), (1, 0))):
        rows = structure.edges[tokens[structure.edges[:, token]]]
        if sorted(rows[:, token].tolist()) != np.flatnonzero(tokens).tolist() or (place[rows[:, far]] < 0).any():
            raise encoding.error(
                structure,
                "a node with the feature 'is_edge' is an edge between two nodes, so it needs one edge from a node and "
                "one to a node; make them with structpe.transforms.edge_tokens",
            )
        ends[rows[:, token], column] = place[rows[:, far]]
    return nodes, ends, ends[tokens]


@dataclass(frozen=True)
class Endpoints(Encoding, name="endpoints"):
    """The two nodes of a token, for nodes and edges as tokens.

    (source, target): int64 (2), places of nodes in reading order; twice its own place for a token that is a node.

    :func:`structpe.transforms.nodes.edge_tokens` makes edges into tokens; without it every token is a node.
    Without an order, places are node numbers. (Kim et al. 2022, TokenGT.)

    Raises:
        EncodingError: a token of an edge does not have one source and one target.
    """

    arity = 1
    causal = True

    def one(self, structure: Structure) -> Encoded:
        return Encoded(of_units(structure, endpoints(self, structure)[1]))


@dataclass(frozen=True)
class TokenLaplacian(OfNodes, name="token-laplacian"):
    """Laplacian eigenvectors at both ends of each token, for nodes and edges as tokens.

    [P_u, P_v]: float32 (2k), the entries of nodes u and v in the k lowest eigenvectors of I - D^-1/2 A D^-1/2.

    u = v for a token of a node; u is the source and v the target for a token of an edge, see
    :func:`structpe.transforms.nodes.edge_tokens`; without it every token is a node. In the original graph A_ij =
    1 if an edge joins i and j, in either direction; D is its row sum, at least 1. As in the code of TokenGT (Kim et al.
    2022) the graph is decomposed as a whole, the trivial eigenvector is the first, and missing columns of a small graph
    are zero. Signs are those of :class:`Laplacian`. It uses a full decomposition, for graphs of a few thousand nodes.

    Args:
        k: number of eigenvectors.

    Raises:
        EncodingError: a token of an edge does not have one source and one target.
    """

    real = True

    k: int = 16

    def __post_init__(self) -> None:
        check_sizes(self, k=self.k)

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> NDArray[np.float32]:
        found = [endpoints(self, each) for each in structures]
        counts = np.array([len(nodes) for nodes, _, _ in found], dtype=np.int64)
        check_matrices(self, int(counts.max(initial=0)))
        rows = [np.zeros((0, 0))] * len(found)
        for members in groups(counts):
            b, m = len(members), int(counts[members[0]])
            edges = [found[i][2] for i in members]
            part = np.repeat(np.arange(b), [len(each) for each in edges])
            matrices = laplacians(adjacency_matrices(np.column_stack([part, np.concatenate(edges)]), b, m))
            vectors = lowest_dense(matrices, self.k)[1]
            # Nodes are in reading order here, which breaks ties of signs.
            signed = canonical_signs(vectors, np.broadcast_to(np.arange(m), (b, m)))
            wide = np.zeros((b, m, self.k), dtype=np.float32)
            wide[..., : signed.shape[-1]] = signed
            for i, of_nodes in zip(members.tolist(), wide, strict=True):
                rows[i] = of_nodes[found[i][1]].reshape(-1, 2 * self.k)
        return np.concatenate([np.zeros((0, 2 * self.k), dtype=np.float32), *rows])

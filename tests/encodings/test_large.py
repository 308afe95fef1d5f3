"""Encodings of large graphs: those that would fill the memory say so at once, the others do not even try."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import coo_array
from scipy.sparse.linalg import eigsh

from structpe.data import store
from structpe.encodings import ENCODINGS, ChildPath, Window, spectra
from structpe.encodings import expander as expander_module
from structpe.encodings.base import MOST_NODES, Encoding
from structpe.encodings.distance import Degree, Distance, Neighbours
from structpe.encodings.expander import Expander
from structpe.encodings.graphs import Graphs
from structpe.encodings.laplacian import Laplacian
from structpe.encodings.walks import RandomWalk
from structpe.errors import EncodingError
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from structpe.terms import Toeplitz
from tests.together import together

CUBIC = (
    "electrostatic",
    "heat-kernel",
    "intimacy",
    "magnetic-laplacian",
    "multi-q-magnetic",
    "tabular",
    "token-laplacian",
)
N = MOST_NODES + 1
RING = Structure(("",) * N, np.column_stack([np.arange(N), (np.arange(N) + 1) % N]), root=0)


@pytest.mark.parametrize("encoding", [ENCODINGS[name]() for name in CUBIC], ids=lambda e: e.name)
def test_what_needs_a_matrix_of_all_pairs_is_refused(encoding: Encoding) -> None:
    message = rf"'{encoding.name}' takes a matrix with a number for each pair.*20001 nodes 3 GiB.*20000 nodes at most"
    with pytest.raises(EncodingError, match=message):
        encoding.many([RING])


# From the last node to the first: a plain sequence has offsets, and no matrix.
PATH = Structure(
    ("x",) * N, np.column_stack([np.arange(1, N), np.arange(N - 1)]), root=N - 1, order=np.arange(N)[::-1].copy()
)
TEXT = Structure(("x",) * N, np.column_stack([np.arange(N - 1), np.arange(1, N)]), root=0, order=np.arange(N))
PAIRS = sorted(name for name, kind in ENCODINGS.items() if kind.arity == 2 and not kind.sparse)


@together("name", PAIRS)
def test_encodings_of_all_pairs_refuse_it_themselves(name: str) -> None:
    encoding = ENCODINGS[name]().fit([path("ab"), replace(path("xx"), relations=("a",))])
    for asked in (lambda: encoding.one(PATH), lambda: encoding.many([path("ab"), PATH])):
        with pytest.raises(
            EncodingError, match=rf"'{name}' takes a matrix with (a|\d+) numbers? for each pair.*20001 nodes"
        ):
            asked()


@pytest.mark.parametrize("name", ["offset", "distance", "undirected-distance"])
def test_long_sequences_take_no_memory_for_each_pair(name: str) -> None:
    """The index of a sequence depends on the offset only, so that three numbers a unit hold it."""
    encoding, n = ENCODINGS[name](), 1 << 16
    of_pairs = encode([path(("",) * n), path(("",) * 9)], [encoding])[encoding]
    assert isinstance(of_pairs.index, Toeplitz)
    assert of_pairs.index.diagonals.numel() == 2 * n - 1
    corner = of_pairs.queries(slice(0, 9)).dense()[0]
    offsets = torch.arange(9)[None] - torch.arange(9)[:, None]
    assert torch.equal(corner, offsets.abs() if name == "undirected-distance" else offsets)


SEVERAL = {  # encodings with several numbers for each pair, and how many nodes they take at most
    "rrwp": (ENCODINGS["rrwp"](), 8, 7071),
    "label-path": (ENCODINGS["label-path"](labels=("",), paths=4), 4, 10_000),
    "grid-offset": (ENCODINGS["grid-offset"](axes=9), 9, 6666),
    "euclidean": (ENCODINGS["euclidean"](), 3, 11_547),
    "lowest-common-ancestor": (ENCODINGS["lowest-common-ancestor"](), 2, 14_142),
}


@pytest.mark.parametrize("name", sorted(SEVERAL))
def test_what_has_several_numbers_for_each_pair_counts_them(name: str) -> None:
    """At 20,000 nodes the 8 steps of rrwp passed, which take 24 GiB."""
    encoding, numbers, most = SEVERAL[name]
    n = MOST_NODES
    line = Structure(
        ("",) * n, np.column_stack([np.arange(n - 1), np.arange(1, n)]), relations=("",) * (n - 1), root=0,
        order=np.arange(n),
    )  # fmt: skip
    message = rf"'{name}' takes a matrix with {numbers} numbers for each pair.*; {most} nodes at most"
    with pytest.raises(EncodingError, match=message):
        encoding.one(line)


def test_walks_that_would_fill_the_memory_are_refused() -> None:
    kernel = ENCODINGS["walk-kernel"](walks=60_000, length=60_000)
    with pytest.raises(EncodingError, match=r"the walks visit 7200000000 nodes, which take 54 GiB; 400000000 at most"):
        kernel.one(path("ab"))


def test_coordinates_count_too() -> None:
    n = 3000
    cloud = Structure(("",) * n, np.zeros((0, 2), dtype=int), features={"coordinates": np.zeros((n, 99))})
    with pytest.raises(EncodingError, match=r"99 numbers for each pair of nodes, for 3000 nodes 7 GiB"):
        ENCODINGS["euclidean"]().one(cloud)


@together("name", [name for name in PAIRS if name != "offset"])  # which reads units only
def test_few_units_of_many_nodes_are_refused_too(name: str) -> None:
    """Only units were counted, and matrices of nodes are made."""
    encoding = ENCODINGS[name]().fit([path("ab"), replace(path("xx"), relations=("a",))])
    with pytest.raises(EncodingError, match=rf"'{name}' takes a matrix with .*20001 nodes"):
        encoding.one(replace(PATH, units=("x",), owner=np.zeros(1, dtype=int)))


def test_words_of_paths_are_not_collected_from_what_is_too_large() -> None:
    with pytest.raises(EncodingError, match=r"'path-token' takes a matrix with a number for each pair.*20001 nodes"):
        ENCODINGS["path-token"]().fit([path("ab"), PATH])


def test_windows_too_wide_for_memory_are_refused() -> None:
    n = 1_000_000
    text = Structure(("",) * n, np.zeros((0, 2), dtype=int), order=np.arange(n), name="text:1")
    message = (
        r"text:1: encoding 'window': 1000000 units with 256 to either side are 513000000 pairs, which take 31 GiB; "
        r"134217728 pairs at most. Give a max_distance of 66, or encode parts of the text"
    )
    with pytest.raises(EncodingError, match=message):
        Window().one(text)


def test_long_ways_from_the_root_take_no_time_of_their_own() -> None:
    """Those of 20,001 nodes, one below the other, were followed step by step to the root: 200 million steps."""
    chain = ChildPath(depth=4).one(TEXT).values
    assert chain[:5].tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
    assert (chain[4:] == 1).all()


def test_encodings_of_all_pairs_are_refused(tmp_path: Path) -> None:
    for asked in (
        lambda: encode([RING], [Degree(), Distance()]),
        lambda: store.write(tmp_path / "s", [RING], [Distance()]),
    ):
        with pytest.raises(EncodingError, match="'distance' takes a matrix with a number for each pair"):
            asked()
    assert not (tmp_path / "s").exists()


def drawn(nodes: int, edges: int) -> Structure:
    ends = np.random.default_rng(0).integers(0, nodes, (edges, 2))
    return Structure(("",) * nodes, ends, directed=False, name="graph:1")


def test_walks_that_would_take_hours_are_refused(tmp_path: Path) -> None:
    arxiv = drawn(169_343, 1_166_243)
    message = (
        r"graph:1: encoding 'random-walk': 20 steps from each of 169343 nodes along 2332486 edges take "
        r"about 142 minutes, and 10 are allowed; take fewer steps, encode parts of the graph "
        r".* give probes: 256 for estimates within about 9 %, or give minutes: 142"
    )
    with pytest.raises(EncodingError, match=message):
        encode([path("ab"), arxiv], [RandomWalk(steps=20)])
    with pytest.raises(EncodingError, match="about 29 minutes, and 28 are allowed"):
        store.write(tmp_path / "s", [arxiv], [RandomWalk(steps=4, minutes=28)])


@pytest.mark.parametrize(("nodes", "edges", "steps"), [(10_000, 39_402, 20), (20_000, 100_000, 16)])
def test_walks_that_take_seconds_or_a_minute_are_not(nodes: int, edges: int, steps: int) -> None:
    given = [drawn(nodes, edges)]
    RandomWalk(steps=steps)._check_time(given, Graphs.of(given))


def test_a_longer_time_can_be_allowed() -> None:
    walk = RandomWalk(steps=20, minutes=142)
    given = [drawn(169_343, 1_166_243)]
    walk._check_time(given, Graphs.of(given))
    estimate = RandomWalk(steps=20, probes=256)
    estimate._check_time(given, Graphs.of(given))
    with pytest.raises(EncodingError, match=r"about 14 minutes, and 10 are allowed; .* give fewer probes, or give min"):
        RandomWalk(steps=20, probes=16_000)._check_time(given, Graphs.of(given))
    assert RandomWalk(**walk.options()) == walk


def test_encodings_of_listed_pairs_are_not() -> None:
    positions = encode([RING], [Neighbours(), Degree(direction="out")])
    assert len(positions[Neighbours()].index) == 2 * N
    assert positions[Degree(direction="out")].unique().tolist() == [1]


@pytest.mark.parametrize("direction", ["out", "in", "both"])
@pytest.mark.parametrize("directed", [False, True])
def test_degrees_count_different_neighbours(direction: str, directed: bool) -> None:
    edges = np.random.default_rng(0).integers(0, 9, (40, 2))
    out, into = Counter[int](), Counter[int]()
    for source, target in {tuple(edge) for edge in edges.tolist()}:
        out[source] += 1
        into[target] += 1
    ways = {tuple(edge) for edge in edges.tolist()} | {tuple(edge) for edge in edges[:, ::-1].tolist()}
    either = Counter(source for source, _ in ways)
    expected = either if direction == "both" or not directed else out if direction == "out" else into
    graph = Structure(("",) * 9, edges, directed=directed)
    found = Degree(direction=direction).one(graph).values  # type: ignore[arg-type]
    assert found.tolist() == [expected[node] for node in range(9)]


def test_virtual_nodes_are_joined_with_all() -> None:
    graph = Structure(("",) * 5, np.zeros((0, 2), dtype=int), features={"virtual": np.array([0, 1, 0, 1, 0])})
    encoded = Expander().one(graph)
    assert encoded.listed is not None
    assert encoded.index is not None
    types = dict(zip(map(tuple, encoded.listed.tolist()), encoded.values[encoded.index].tolist(), strict=True))
    pairs = [(query, key) for query in range(5) for key in range(5) if query != key]
    assert types == {(q, k): 1 if q in (1, 3) else 2 if k in (1, 3) else 0 for q, k in pairs}


def test_eigenvectors_whose_search_would_fill_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eigenvalues of a long ring are so close to each other that only its inverse separates them."""
    n = 3000
    ring = Structure(("",) * n, np.column_stack([np.arange(n), (np.arange(n) + 1) % n]), name="ring")
    assert np.isfinite(Laplacian(k=2).one(ring).values).all()
    monkeypatch.setattr(spectra, "_MOST_ENTRIES", n)
    with pytest.raises(EncodingError, match=r"ring: encoding 'laplacian': the lowest eigenvalues are too close.*GiB"):
        Laplacian(k=2).one(ring)


@pytest.mark.slow
def test_the_gap_of_a_large_graph_is_found_in_half_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """In double precision, and with a matrix made three times, a million nodes took more than 20 seconds."""
    seen: list[np.dtype[Any]] = []

    def watched(matrix: Any, *given: Any, **options: Any) -> Any:
        seen.append(matrix.dtype)
        return eigsh(matrix, *given, **options)

    monkeypatch.setattr(expander_module, "eigsh", watched)
    generator = np.random.default_rng(0)
    for nodes, tolerance in ((2000, 1e-9), (20_001, 0.02)):
        edges = expander_module.GENERATORS["permutations"](nodes, 5, generator)
        both = np.concatenate([edges, edges[:, ::-1]])
        matrix = coo_array((-np.ones(len(both)), both.T), shape=(nodes, nodes)).tocsr()
        matrix.setdiag(10)  # each node has ten ends of edges, those of loops too
        exact = eigsh(matrix, 2, which="SA", return_eigenvectors=False)
        assert expander_module.gap(edges, nodes) == pytest.approx(exact.max(), abs=tolerance)
    assert seen == [np.float64, np.float32]


@pytest.mark.parametrize("algorithm", ["permutations", "permutation", "cycles"])
def test_rings_are_not_searched_for_a_gap(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one ring any gap is large enough, and that of a long one took minutes: its eigenvalues are so near."""
    monkeypatch.setattr(expander_module, "gap", None)
    edges = expander_module.expander(5000, 1, algorithm, 0, 100)  # type: ignore[arg-type]
    assert np.bincount(edges.ravel(), minlength=5000).tolist() == [2] * 5000

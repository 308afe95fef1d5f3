"""Degrees, Weisfeiler-Lehman roles, intimacy, distances from the root and kernels of walks."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.encodings import Degree, Intimacy, RootDistance, WalkKernel, WeisfeilerLehman
from structpe.encodings.columns import significant
from structpe.encodings.walks import kernel_of
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from tests.examples import examples
from tests.golden import golden
from tests.strategies import structures, undirected
from tests.together import together

SIZES = {"g7": 7, "disc6": 6, "cycle4": 4}


def drawn(seed: int, size: int = 12, directed: bool = False) -> Structure:
    graph = nx.gnp_random_graph(size, 0.25, seed=seed)
    return Structure(("x",) * size, np.array(graph.edges).reshape(-1, 2), directed=directed, root=3)


def matrix(graph: Structure) -> np.ndarray:
    joined = nx.empty_graph(graph.size, nx.Graph())
    joined.add_edges_from(graph.edges.tolist())
    return nx.to_numpy_array(joined)


# --- roles ---


@pytest.mark.parametrize("graph", SIZES)
def test_the_authors_roles(graph: str) -> None:
    given = golden("lap_wl_rw_dgl")
    structure = Structure(("x",) * SIZES[graph], given[f"in.{graph}.edges"].numpy())
    roles = WeisfeilerLehman().fit([structure]).one(structure).values
    assert roles.tolist() == given[f"out.{graph}.wl"].tolist()


def test_one_round_is_the_degree_and_its_number_that_of_its_md5_sum() -> None:
    star = Structure(("x",) * 5, [[0, 1], [2, 0], [0, 3], [3, 4]])
    sums = [hashlib.md5(("1" + "_1" * degree).encode()).hexdigest() for degree in (3, 1, 1, 2, 1)]
    expected = [1 + sorted(set(sums)).index(one) for one in sums]
    assert WeisfeilerLehman().fit([star]).one(star).values.tolist() == expected


@examples(50)
@given(graph=undirected(units=False))
def test_until_stable_it_tells_apart_what_colour_refinement_does(graph: Structure) -> None:
    """Against refinement of partitions, without hashes: same classes."""
    adjacency = [set[int]() for _ in graph.nodes]
    for a, b in graph.edges.tolist():
        adjacency[a].add(b)
        adjacency[b].add(a)
    classes = [0] * graph.size
    for _ in range(graph.size + 1):
        seen = [(classes[i], tuple(sorted(classes[j] for j in near))) for i, near in enumerate(adjacency)]
        classes = [sorted(set(seen)).index(one) for one in seen]
    roles = WeisfeilerLehman(iterations=None).fit([graph]).one(graph).values.tolist()
    assert len(set(zip(classes, roles, strict=True))) == len(set(classes)) == len(set(roles))


def literal_colours(graph: Structure, rounds: int) -> list[str]:
    """Node by node, as the definition says."""
    near = [
        {j for a, b in graph.edges.tolist() for i, j in ((a, b), (b, a)) if i == node} for node in range(graph.size)
    ]
    colours = ["1"] * graph.size
    for _ in range(rounds):
        texts = ["_".join([own, *sorted(colours[j] for j in each)]) for own, each in zip(colours, near, strict=True)]
        colours = [hashlib.md5(text.encode()).hexdigest()[:16] for text in texts]
    return colours


@examples(40)
@given(st.lists(structures(), min_size=1, max_size=4), st.integers(1, 4))
def test_colours_are_those_of_the_definition(graphs: list[Structure], rounds: int) -> None:
    colours = [literal_colours(graph, rounds) for graph in graphs]
    encoding = WeisfeilerLehman(iterations=rounds).fit(graphs)
    assert encoding.roles == tuple(sorted({colour for each in colours for colour in each}))
    for graph, mine, found in zip(graphs, colours, encoding.many(graphs), strict=True):
        assert found.values.tolist() == [1 + encoding.roles.index(mine[node]) for node in graph.unit_owner]


@examples(40)
@given(st.lists(structures(), min_size=1, max_size=4))
def test_as_many_rounds_as_any_structure_needs(graphs: list[Structure]) -> None:
    def needed(graph: Structure) -> int:
        kinds = [len(set(literal_colours(graph, rounds))) for rounds in range(1, graph.size + 2)]
        return next((i for i, (a, b) in enumerate(pairwise(kinds), start=1) if a == b), graph.size)

    assert WeisfeilerLehman(iterations=None).fit(graphs).iterations == max(map(needed, graphs))


def test_nodes_of_different_graphs_have_one_role_if_they_look_alike() -> None:
    ring, line = (Structure(("x",) * n, edges, directed=False) for n, edges in (
        (3, [[0, 1], [1, 2], [2, 0]]), (4, [[0, 1], [1, 2], [2, 3]])))  # fmt: skip
    encoding = WeisfeilerLehman().fit([ring, line])
    assert encoding.one(line).values[1] == encoding.one(ring).values[0]
    assert WeisfeilerLehman(iterations=2).fit([ring, line]).one(line).values[1] not in (
        WeisfeilerLehman(iterations=2).fit([ring, line]).one(ring).values
    )


def test_colours_not_seen_have_number_zero_and_rare_ones_may_be_left_out() -> None:
    line = path("abcdef")
    encoding = WeisfeilerLehman(max_roles=1).fit([line])
    assert encoding.size == 2
    assert encoding.one(line).values.tolist() == [0, 1, 1, 1, 1, 0]
    with pytest.raises(EncodingError, match=r"it knows no role yet; .* encoding.fit\(structures\)"):
        WeisfeilerLehman().one(line)
    with pytest.raises(EncodingError, match="iterations is 0; give 1 or more, or None"):
        WeisfeilerLehman(iterations=0)


# --- nearness to the root ---


@together("seed", range(8))
def test_intimacy_by_the_authors_formula(seed: int) -> None:
    """S = c (I - (1 - c) D^-1/2 A D^-1/2)^-1, the root left out, sorted."""
    graph = drawn(seed)
    a = matrix(graph)
    with np.errstate(divide="ignore"):
        scale = np.where(a.sum(1) > 0, a.sum(1) ** -0.5, 0.0)
    s = 0.15 * np.linalg.inv(np.eye(12) - 0.85 * np.diag(scale) @ a @ np.diag(scale))
    ranks = Intimacy().one(graph).values
    assert ranks[3] == 0
    for i in range(12):
        if i != 3:
            assert ranks[i] == 1 + sum(s[3, j] > s[3, i] + 1e-12 for j in range(12) if j != 3)


def test_equally_near_nodes_have_one_rank() -> None:
    star = Structure(("x",) * 5, [[0, i] for i in range(1, 4)] + [[3, 4]], root=0)
    assert Intimacy().one(star).values.tolist() == [0, 2, 2, 1, 4]


def test_hops_from_the_root_and_their_absence() -> None:
    graph = Structure(("x",) * 5, [[1, 0], [1, 2]], root=0)
    assert RootDistance().one(graph).values.tolist() == [0, 1, 2, 99, 99]
    assert RootDistance(unreachable=-1).one(graph).values.tolist() == [0, 1, 2, -1, -1]


@pytest.mark.parametrize("encoding", [Intimacy(), RootDistance()], ids=lambda e: e.name)
def test_without_a_root_nothing_is_near(encoding: Intimacy | RootDistance) -> None:
    with pytest.raises(EncodingError, match=r"the structure has no root .*; give Structure\(root=...\)"):
        encoding.one(Structure(("a", "b"), [[0, 1]]))


@pytest.mark.parametrize("restart", [0, 1, -0.5])
def test_a_probability_that_is_none(restart: float) -> None:
    with pytest.raises(EncodingError, match=f"restart is {float(restart)}; give a probability between 0 and 1"):
        Intimacy(restart)


def test_a_direction_that_is_none() -> None:
    takes = "option 'direction' of encoding 'degree' takes one of 'out', 'in', 'both'"
    with pytest.raises(EncodingError, match=f"{takes}; given is 'up'"):
        Degree("up")


# --- walks ---


def test_the_authors_kernel() -> None:
    given = golden("gkat")
    np.testing.assert_allclose(kernel_of(given["in.walks"].numpy()), given["out.kernel"].numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_walks_go_to_each_neighbour_equally_often(seed: int) -> None:
    """Many walks come to the kernel of expected visits, sum_t P^t."""
    graph = drawn(seed, 8)
    a = matrix(graph)
    a += np.diag(a.sum(1) == 0)
    p = a / a.sum(1, keepdims=True)
    visits = sum(np.linalg.matrix_power(p, t) for t in range(4))
    norm = np.linalg.norm(visits, axis=1)
    expected = visits @ visits.T / np.outer(norm, norm)
    found = WalkKernel(walks=20_000).one(graph).pairs()
    np.testing.assert_allclose(found, expected, atol=0.02)
    assert (found[expected == 0] == 0).all()


def walks_of(graph: Structure, seed: int) -> np.ndarray:
    shares = np.random.default_rng(seed).random(12 * 50 * 3)
    return WalkKernel()._draw(matrix(graph)[None] > 0, np.arange(12)[None], shares)[0]


def test_every_step_is_along_an_edge_and_the_seed_decides() -> None:
    graph = drawn(1)
    walks = walks_of(graph, 0)
    assert walks.shape == (12, 50, 4)
    assert (walks[:, :, 0] == np.arange(12)[:, None]).all()
    edges = {tuple(e) for e in graph.edges.tolist()} | {tuple(e[::-1]) for e in graph.edges.tolist()}
    lonely = set(range(12)) - {i for e in edges for i in e}
    for walk in walks.reshape(-1, 4).tolist():
        assert all((a, b) in edges or (a == b and a in lonely) for a, b in pairwise(walk))
    assert (walks_of(graph, 0) == walks).all()
    assert (walks_of(graph, 1) != walks).any()
    assert (WalkKernel().one(graph).pairs() == significant(kernel_of(walks))).all()
    assert (WalkKernel(seed=1).one(graph).pairs() != significant(kernel_of(walks))).any()


def test_walks_of_no_length() -> None:
    with pytest.raises(EncodingError, match="walks is 0; give 1 or more"):
        WalkKernel(walks=0)

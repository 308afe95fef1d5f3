"""Samples of a graph: neighbourhoods against plain loops, subgraphs against networkx, partitions against rules."""

from __future__ import annotations

from collections import Counter

import networkx
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from structpe.data.batch import CSRAdjacency, EdgeIndex
from structpe.data.sampling import Sample, Sampler, partition
from structpe.errors import ConfigError, StructureError
from structpe.nn.convolutions import GCN
from structpe.structure import Ids, Structure
from structpe.transforms import subgraph


def graph(n: int = 40, edges: int = 120, directed: bool = True, seed: int = 0) -> Structure:
    ends = np.random.default_rng(seed).integers(0, n, (edges, 2))
    return Structure(tuple(str(i) for i in range(n)), ends, directed=directed)


def messages(structure: Structure) -> list[tuple[int, int]]:
    """(source, target) of each message, by a plain loop; sorted as they are numbered."""
    walked = []
    for source, target in structure.edges.tolist():
        walked.append((target, source))
        if structure.directed or source != target:
            walked.append((source, target))
    return [(source, target) for target, source in sorted(walked)]


def sampler(structure: Structure) -> Sampler:
    return Sampler(EdgeIndex.of(structure), structure.size)


def drawn(structure: Structure, seeds: list[int], fanouts: list[int], seed: int = 0) -> Sample:
    return sampler(structure).neighbourhood(np.array(seeds), fanouts, np.random.default_rng(seed))


@pytest.mark.parametrize("directed", [False, True])
def test_with_room_for_all_a_neighbourhood_is_a_ball(directed: bool) -> None:
    structure = graph(directed=directed)
    network = networkx.Graph(structure.edges.tolist())
    network.add_nodes_from(range(structure.size))
    for seed in range(0, structure.size, 7):
        distance = networkx.single_source_shortest_path_length(network, seed, cutoff=2)
        sample = drawn(structure, [seed], [100, 100])
        assert sample.nodes.tolist() == sorted(distance)
        inner = {node for node, steps in distance.items() if steps < 2}
        expected = [i for i, (_, target) in enumerate(messages(structure)) if target in inner]
        assert sample.messages.tolist() == expected


def test_no_more_than_the_fanout_is_drawn_and_none_twice() -> None:
    structure = graph()
    seeds, all_messages = [3, 5, 8], messages(structure)
    degrees = Counter(target for _, target in all_messages)
    sample = drawn(structure, seeds, [2, 1])
    assert len(set(sample.messages.tolist())) == len(sample.messages)
    received = Counter(all_messages[i][1] for i in sample.messages)
    first = {all_messages[i][0] for i in sample.messages if all_messages[i][1] in seeds} - set(seeds)
    assert dict(received) == {
        **{node: min(2, degrees[node]) for node in seeds if degrees[node]},
        **{node: min(1, degrees[node]) for node in first},
    }
    ends = {node for i in sample.messages for node in all_messages[i]}
    assert set(sample.nodes.tolist()) == ends | set(seeds)


def test_every_neighbour_is_as_likely_as_any_other() -> None:
    star = Structure(("",) * 11, np.array([[0, i] for i in range(1, 11)]), directed=False)
    generator = np.random.default_rng(0)
    seen: Counter[int] = Counter()
    sampled = sampler(star)
    for _ in range(2000):
        seen.update(sampled.neighbourhood(np.array([0]), [3], generator).nodes.tolist())
    assert seen.pop(0) == 2000
    assert len(seen) == 10
    assert all(abs(count - 600) < 5 * (2000 * 0.3 * 0.7) ** 0.5 for count in seen.values())


def test_the_same_generator_draws_the_same_and_another_something_else() -> None:
    structure = graph(400, 4000)
    one, same, other = (drawn(structure, [1, 2, 3], [5, 5], seed) for seed in (0, 0, 1))
    assert np.array_equal(one.nodes, same.nodes)
    assert np.array_equal(one.messages, same.messages)
    assert not np.array_equal(one.messages, other.messages)


@pytest.mark.parametrize("directed", [False, True])
def test_what_is_cut_out_is_what_lies_among_the_nodes(directed: bool) -> None:
    structure = graph(directed=directed)
    chosen = [4, 30, 2, 17, 8, 9, 21, 22, 23, 24, 25]
    whole = sampler(structure)
    sample = whole.among(np.array(chosen))
    cut, edges = whole.cut_out(sample)
    inside = [(s, t) for s, t in messages(structure) if s in chosen and t in chosen]
    names = sample.nodes.tolist()
    assert names == sorted(chosen)
    assert [(names[s], names[t]) for s, t in zip(cut.source.tolist(), cut.target.tolist(), strict=True)] == inside
    assert (np.diff(cut.source[cut.by_source]) >= 0).all()
    ends = structure.edges[edges][cut.edge]
    against = cut.reverse[:, None]
    if directed:
        walked = np.where(against, ends[:, ::-1], ends)
        assert np.array_equal(walked, np.array(inside))
    assert len(edges) == sum(s in chosen and t in chosen for s, t in structure.edges.tolist())
    again = EdgeIndex.of(subgraph(structure, sample.nodes, edges))
    assert np.array_equal(np.sort(again.source), np.sort(cut.source))


def test_drawn_messages_stand_for_those_that_were_not() -> None:
    """In the mean over many draws a graph convolution gives what it gives on the whole graph."""
    structure = graph(30, 200, directed=False)
    whole = sampler(structure)
    values = torch.from_numpy(np.random.default_rng(1).standard_normal((30, 1)))
    near = CSRAdjacency.join([whole.directions], [30])[0]
    convolution = GCN(1).double().requires_grad_(False)
    expected, _ = convolution(values, None, near)
    generator, total = np.random.default_rng(2), 0.0
    for _ in range(800):
        sample = whole.neighbourhood(np.array([7]), [4], generator)
        part = CSRAdjacency.join([whole.cut_out(sample, drawn=True)[0]], [len(sample.nodes)])[0]
        of_part, _ = convolution(values[sample.nodes], None, part)
        total += of_part[np.flatnonzero(sample.nodes == 7)[0]].item() / 800
    assert total == pytest.approx(expected[7].item(), abs=0.05)
    assert torch.equal(part.whole_degrees, near.degrees[torch.from_numpy(sample.nodes)])


def test_a_subgraph_is_that_of_networkx() -> None:
    structure = Structure(
        tuple("abcdef"),
        np.array([[0, 1], [1, 2], [2, 5], [5, 0], [3, 4], [1, 0]]),
        ("r", "s", "t", "u", "v", "w"),
        order=np.array([5, 4, 3, 2, 1, 0]),
        root=2,
        features={"x": np.arange(6), "edge_x": np.arange(6)},
    )
    cut = subgraph(structure, np.array([2, 0, 1]))
    expected = networkx.DiGraph(structure.edges.tolist()).subgraph([0, 1, 2])
    assert {(cut.nodes[s], cut.nodes[t]) for s, t in cut.edges} == {
        ("abcdef"[s], "abcdef"[t]) for s, t in expected.edges
    }
    assert cut.nodes == ("c", "a", "b")
    assert cut.relations == ("r", "s", "w")
    assert cut.features["x"].tolist() == [2, 0, 1]
    assert cut.features["edge_x"].tolist() == [0, 1, 5]
    assert cut.order is not None
    assert cut.order.tolist() == [0, 2, 1]  # c before b before a
    assert cut.root == 0
    assert subgraph(structure, np.array([0, 1])).root is None


def test_a_subgraph_refuses_what_makes_none() -> None:
    structure = graph()
    with pytest.raises(StructureError, match="each of its nodes once"):
        subgraph(structure, np.array([1, 1]))
    with pytest.raises(StructureError, match="one node at least"):
        subgraph(structure, np.array([], dtype=np.int64))
    with pytest.raises(StructureError, match="has an end that is not among its nodes"):
        subgraph(structure, structure.edges[0][:1], np.array([0, 1, 2, 3]))
    with pytest.raises(StructureError, match="take the subgraph first, then split"):
        subgraph(structure.with_units(["u"] * structure.size, range(structure.size)), np.array([0]))


def communities(groups: int, size: int, seed: int = 0) -> Structure:
    network = networkx.planted_partition_graph(groups, size, 0.3, 0.005, seed=seed)
    shuffled = np.random.default_rng(seed).permutation(groups * size)
    return Structure(("",) * len(shuffled), shuffled[np.array(network.edges)], directed=False)


def cut_share(structure: Structure, parts: list[Ids]) -> float:
    part = {node: number for number, nodes in enumerate(parts) for node in nodes.tolist()}
    return float(np.mean([part[s] != part[t] for s, t in structure.edges.tolist()]))


def test_parts_hold_every_node_once_and_are_of_like_size() -> None:
    for structure, count in [(communities(8, 40), 8), (graph(50, 10), 7), (graph(12, 40), 12), (graph(9, 0), 2)]:
        parts = partition(structure, count)
        assert len(parts) == count
        assert sorted(np.concatenate(parts).tolist()) == list(range(structure.size))
        mean = structure.size / count
        assert all(0.85 * mean - 1 <= len(part) <= 1.15 * mean + 1 for part in parts)
    assert [part.tolist() for part in partition(graph(5), 1)] == [[0, 1, 2, 3, 4]]


def test_few_edges_lead_from_part_to_part() -> None:
    structure = communities(8, 40)
    found = cut_share(structure, partition(structure, 8))
    random = np.array_split(np.random.default_rng(1).permutation(structure.size), 8)
    between = cut_share(structure, [np.flatnonzero(label) for label in communities_of(structure)])
    assert cut_share(structure, random) > 0.8
    assert found < between + 0.1


def communities_of(structure: Structure) -> list[NDArray[np.bool_]]:
    """The planted groups: nodes are shuffled by the same seed."""
    shuffled = np.random.default_rng(0).permutation(structure.size)
    return [np.isin(np.arange(structure.size), shuffled[i : i + 40]) for i in range(0, structure.size, 40)]


def test_the_same_graph_gives_the_same_parts() -> None:
    one, other = (partition(communities(4, 30), 6) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("parts", [0, 6])
def test_more_parts_than_nodes_are_refused(parts: int) -> None:
    with pytest.raises(ConfigError, match=rf"5 nodes cannot be cut into {parts} parts; give 1 to 5"):
        partition(graph(5), parts)

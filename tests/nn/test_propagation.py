"""Sums over neighbours are those of plain loops, and so are their gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from torch import Tensor

from structpe.data.batch import CSRAdjacency, EdgeIndex
from structpe.nn import convolutions as convolutions_module
from structpe.nn.convolutions import (
    gather,
    gather_target,
    propagate,
    propagate_rectified,
    propagate_weighted,
    scatter,
)
from structpe.structure import Structure
from tests.examples import examples
from tests.strategies import structures

LOOPS = Structure(("",) * 4, [[0, 0], [0, 1], [1, 0], [2, 0], [2, 0]])
"""A self-loop, an edge each way, two parallel ones, and a node without any."""


def adjacency(*each: Structure) -> CSRAdjacency:
    return CSRAdjacency.join([EdgeIndex.of(s) for s in each], [s.size for s in each])[0]


def walked(*each: Structure) -> list[tuple[int, int]]:
    """(source, target) of each message, by a loop over edges."""
    messages, first = [], 0
    for structure in each:
        for s, t in structure.edges.tolist():
            messages.append((first + s, first + t))
            if structure.directed or s != t:
                messages.append((first + t, first + s))
        first += structure.size
    return messages


def rows(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@examples(40)
@given(structures(units=False), structures(units=False))
def test_messages_are_the_edges_walked_both_ways_grouped_by_target(one: Structure, other: Structure) -> None:
    both = adjacency(one, other)
    messages = list(zip(both.source.tolist(), both.target.tolist(), strict=True))
    assert sorted(messages) == sorted(walked(one, other))
    assert both.count == one.size + other.size
    for node in range(both.count):
        coming = messages[both.starts[node] : both.starts[node + 1]]
        going = both.by_source[both.source_starts[node] : both.source_starts[node + 1]].tolist()
        assert all(target == node for _, target in coming)
        assert all(messages[k][0] == node for k in going)
    assert torch.equal(both.target_by_source, both.target[both.by_source])
    assert sorted(both.by_source.tolist()) == list(range(len(messages)))


@examples(40)
@given(structures(units=False))
def test_sums_are_those_of_loops(structure: Structure) -> None:
    there = adjacency(structure)
    messages = list(zip(there.source.tolist(), there.target.tolist(), strict=True))
    x, m = rows(structure.size, 3), rows(len(messages), 3)
    plain, summed, weighted = torch.zeros(3, structure.size, 3, dtype=torch.float64)
    w = rows(len(messages))
    for k, (source, target) in enumerate(messages):
        plain[target] += x[source].detach()
        summed[target] += m[k].detach()
        weighted[target] += w[k].detach() * x[source].detach()
        assert torch.equal(gather(x, there)[k], x[source])
        assert torch.equal(gather_target(x, there)[k], x[target])
    torch.testing.assert_close(propagate(x, there), plain)
    torch.testing.assert_close(scatter(m, there), summed)
    torch.testing.assert_close(propagate_weighted(x, w, there), weighted)


WAYS: dict[str, Callable[[Tensor, CSRAdjacency], Tensor]] = {
    "propagate": propagate,
    "gather": gather,
    "gather_target": gather_target,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("structure", [LOOPS, Structure(("", ""), [])], ids=["loops", "no edges"])
def test_gradients_are_those_of_finite_differences(way: str, structure: Structure) -> None:
    there = adjacency(structure, structure)
    assert torch.autograd.gradcheck(lambda x: WAYS[way](x, there), rows(there.count, 2))


@pytest.mark.parametrize("structure", [LOOPS, Structure(("", ""), [])], ids=["loops", "no edges"])
def test_gradients_of_messages_are_those_of_finite_differences(structure: Structure) -> None:
    there = adjacency(structure, structure)
    assert torch.autograd.gradcheck(lambda m: scatter(m, there), rows(len(there.source), 2))


@pytest.mark.parametrize("structure", [LOOPS, Structure(("", ""), [])], ids=["loops", "no edges"])
def test_gradients_of_weights_are_those_of_finite_differences(
    structure: Structure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolutions_module, "CHUNK", 7)  # of 20 messages
    there = adjacency(structure, structure)
    inputs = rows(there.count, 2), rows(len(there.source))
    assert torch.autograd.gradcheck(lambda x, w: propagate_weighted(x, w, there), inputs)
    assert torch.autograd.gradgradcheck(lambda x, w: propagate_weighted(x, w, there), inputs)


def test_a_gradient_that_is_no_block_of_memory_is_summed_too() -> None:
    there = adjacency(LOOPS)
    x = rows(4, 3)
    propagate(x, there).T.contiguous().T.sum().backward()
    assert torch.equal(x.grad, torch.tensor([3.0 + 1 + 2, 2.0, 2.0, 0.0], dtype=torch.float64)[:, None].expand(4, 3))


def test_edges_are_numbered_and_their_direction_is_told() -> None:
    directions = EdgeIndex.of(LOOPS)
    for source, target, edge, against in zip(
        directions.source, directions.target, directions.edge, directions.reverse, strict=True
    ):
        expected = LOOPS.edges[edge][::-1] if against else LOOPS.edges[edge]
        np.testing.assert_array_equal([source, target], expected)
    assert directions.reverse.sum() == len(LOOPS.edges)
    undirected = EdgeIndex.of(Structure(("",) * 3, [[0, 0], [0, 1]], directed=False))
    assert not undirected.reverse.any()
    assert undirected.edge.tolist() == [0, 1, 1]


def test_degrees_count_messages() -> None:
    there = adjacency(Structure(("",) * 3, [[0, 1], [1, 2]], directed=False))
    assert there.degrees.tolist() == there.whole_degrees.tolist() == [1, 2, 1]


@pytest.mark.parametrize("structure", [LOOPS, Structure(("", ""), [])], ids=["loops", "no edges"])
def test_rectified_messages_are_those_of_its_parts(structure: Structure) -> None:
    there = adjacency(structure, structure)
    x, edges = rows(there.count, 2), rows(len(there.source), 2)
    parts = scatter((gather(x, there) + edges).relu(), there)
    torch.testing.assert_close(propagate_rectified(x, edges, there), parts)
    assert torch.autograd.gradcheck(lambda *given: propagate_rectified(*given, there), (x, edges))

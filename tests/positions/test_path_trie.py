"""The network over a trie of paths is torch.nn.GRU over each path; filters are torch's convolution."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from structpe.positions.cai import PathGRU, Trie
from structpe.positions.stochastic import correlated
from tests.examples import examples

LABELS, WIDTH = 3, 5
DRAWN = st.lists(st.lists(st.integers(0, LABELS - 1), min_size=1, max_size=6), min_size=1, max_size=9, unique_by=tuple)


def padded(paths: list[list[int]], length: int = 7) -> Tensor:
    return torch.tensor([path + [-1] * (length - len(path)) for path in paths])


@examples(20)
@given(paths=DRAWN)
def test_the_last_states_are_those_of_a_network_that_reads_path_by_path(paths: list[list[int]]) -> None:
    torch.manual_seed(0)
    mine = PathGRU(4, WIDTH, dropout=0.0).double()
    theirs = nn.GRU(4, WIDTH, num_layers=2, bidirectional=True, batch_first=True).double()
    theirs.load_state_dict(mine.state_dict())
    table = torch.randn(LABELS, 4, dtype=torch.float64, requires_grad=True)
    last = torch.stack([theirs(table[torch.tensor(path)])[1][-2:].flatten() for path in paths])
    found = mine.of_paths(padded(paths), table)
    torch.testing.assert_close(found, last, rtol=0, atol=1e-12)
    weigh = torch.randn_like(last)
    grads = (
        torch.autograd.grad((out * weigh).sum(), [table, *net.parameters()])
        for out, net in ((found, mine), (last, theirs))
    )
    torch.testing.assert_close(*grads, rtol=0, atol=1e-11)


@given(paths=DRAWN)
def test_a_node_for_each_distinct_beginning(paths: list[list[int]]) -> None:
    trie = Trie.of(padded(paths))
    beginnings = {tuple(path[:end]) for path in paths for end in range(1, len(path) + 1)}
    assert sum(len(labels) for labels, _ in trie.levels) == len(beginnings)
    of_node = {tuple(path[: t + 1]): int(trie.nodes[i, t]) for i, path in enumerate(paths) for t in range(len(path))}
    assert sorted(of_node.values()) == list(range(len(beginnings)))


def test_dropout_is_the_same_for_paths_with_a_common_beginning_and_another_each_time() -> None:
    torch.manual_seed(0)
    network = PathGRU(4, WIDTH, dropout=0.5)
    table, paths = torch.randn(LABELS, 4), padded([[0, 1], [0, 2]])
    first, second = (network.of_paths(paths, table) for _ in range(2))
    assert not torch.allclose(first, second)
    torch.testing.assert_close(*(network.eval().of_paths(paths, table) for _ in range(2)), rtol=0, atol=0)
    trie = Trie.of(paths)
    states = network.train()._lower(trie, table, "")
    assert len(states) == 3


def test_the_gradient_of_a_gradient_is_refused() -> None:
    network, table = PathGRU(4, WIDTH, dropout=0.0), torch.randn(LABELS, 4, requires_grad=True)
    (grad,) = torch.autograd.grad(network.of_paths(padded([[0, 1]]), table).sum(), table, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


@pytest.mark.parametrize(("width", "places"), [(1, 1), (1, 7), (4, 3), (4, 4), (4, 9), (3, 12)])
def test_noise_is_filtered_as_by_a_convolution(width: int, places: int) -> None:
    noise = torch.randn(6, 5, places + width - 1, dtype=torch.float64)
    filters = torch.randn(5, width, dtype=torch.float64, requires_grad=True)
    theirs = functional.conv1d(noise, filters[:, None], groups=5).permute(1, 2, 0)
    mine = correlated(noise, filters)
    torch.testing.assert_close(mine, theirs)
    weigh = torch.randn_like(theirs)
    grads = [torch.autograd.grad((out * weigh).sum(), filters) for out in (mine, theirs)]
    torch.testing.assert_close(*grads)

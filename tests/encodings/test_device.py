"""Encodings that are computed on a device are those of the CPU. The device is the CPU here, by PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import structpe
from structpe.encodings import RRWP, Degree, Distance, Eigenvalues, Encoding, Laplacian, RandomWalk, UndirectedDistance
from structpe.encodings import device as device_module
from structpe.encodings.graphs import chosen_device
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from structpe.terms import Lookup
from tests.strategies import structures

INTEGRAL = [Distance(), UndirectedDistance(), Distance(max_distance=3)]
REAL = [RandomWalk(steps=7), RandomWalk(steps=4, undirected=True), RRWP(steps=5), Eigenvalues(k=4)]


def drawn(nodes: int, edges: int, seed: int) -> Structure:
    graph = nx.gnm_random_graph(nodes, edges, seed=seed)
    return Structure(("",) * nodes, np.array(graph.edges), directed=False)


LARGE = [drawn(200, 300, 1), drawn(70, 140, 2), drawn(90, 1, 3), path(["x"] * 5), drawn(33, 90, 4), drawn(64, 70, 5)]
RING = Structure(("",) * 700, np.array([(i, (i + 1) % 700) for i in range(700)]), directed=True)


def values(positions: structpe.Positions, encoding: Encoding) -> torch.Tensor:
    found = positions[encoding]
    assert isinstance(found, (torch.Tensor, Lookup))
    return found.dense() if isinstance(found, Lookup) else found


def compare(given: list[Structure], encodings: list[Encoding]) -> None:
    here, there = structpe.encode(given, encodings), structpe.encode(given, encodings, device="cpu")
    for encoding in encodings:
        if encoding.real:
            torch.testing.assert_close(values(there, encoding), values(here, encoding), rtol=1e-6, atol=1e-6)
        else:
            assert torch.equal(values(there, encoding), values(here, encoding))


@given(st.lists(structures(), min_size=1, max_size=4))
def test_all_values_are_the_same(drawn_ones: list[Structure]) -> None:
    compare(drawn_ones, [*INTEGRAL, *REAL])


@pytest.mark.slow
def test_large_and_long_graphs_have_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    compare([*LARGE, RING], INTEGRAL)  # distances above 254, in pieces, and of plain sequences
    compare(LARGE, REAL)
    monkeypatch.setattr(device_module, "CELLS", 1 << 13)  # some graphs of a size at a time
    compare(LARGE * 3, [*INTEGRAL, *REAL])
    monkeypatch.setattr(device_module, "LARGEST", 40)  # the others stay on the CPU
    compare(LARGE, REAL)


def test_eigenvectors_are_the_same_where_they_are_determined() -> None:
    given = [drawn(24, 60, seed) for seed in range(5)]
    for graph in given:
        found = Eigenvalues(k=7).one(graph).values[0]
        assert np.diff(found).min() > 1e-4, "a repeated eigenvalue has no vectors to compare"
    compare(given, [Laplacian(k=6)])


@pytest.mark.parametrize(
    ("name", "encoding"),
    [("returns", RandomWalk()), ("lowest", Laplacian(k=2))],
)
def test_they_are_computed_there(name: str, encoding: Encoding, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    compute: Callable[..., Any] = getattr(device_module, name)

    def counted(*given: Any) -> Any:
        assert chosen_device() == torch.device("cpu")
        calls.append(name)
        return compute(*given)

    monkeypatch.setattr(device_module, name, counted)
    structpe.encode(LARGE[:2], [encoding])
    assert not calls
    structpe.encode(LARGE[:2], [encoding], device="cpu")
    assert calls
    assert chosen_device() is None


@pytest.mark.parametrize("device", ["cuda:99", "nonsense"])
def test_a_device_that_is_not_there_is_named(device: str) -> None:
    with pytest.raises(EncodingError, match=rf"encodings cannot be computed on '{device}' \(.+\); give a device that"):
        structpe.encode(LARGE[:1], [Degree()], device=device)
    assert chosen_device() is None

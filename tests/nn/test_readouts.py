"""Readouts against plain loops; which of them a model takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from structpe.data.batch import Batch
from structpe.data.features import Categories
from structpe.errors import ConfigError
from structpe.nn.graph_model import GraphModel, GraphModelConfig
from structpe.nn.readouts import READOUTS, readout_of
from structpe.positions.build import build
from structpe.structure import Structure

WIDTH, RELATIONS = 6, 3
PAIRS = [name for name, readout in READOUTS.items() if readout.level == "pair"]
GRAPHS = [Structure(("",) * size, np.zeros((0, 2), dtype=np.int64), root=size - 1) for size in (2, 3, 1)]


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("mean", lambda rows: rows.mean(0)),
        ("sum", lambda rows: rows.sum(0)),
        ("max", lambda rows: rows.max(0).values),
        ("root", lambda rows: rows[-1]),
    ],
)
def test_graphs(name: str, plain: Any) -> None:
    batch = Batch.of(GRAPHS)
    x = torch.randn(6, WIDTH, dtype=torch.float64, requires_grad=True)
    rows = READOUTS[name](WIDTH, 1)(x, batch)
    expected = torch.stack([plain(x[batch.graph == number]) for number in range(3)])
    torch.testing.assert_close(rows, expected)
    weights = torch.randn_like(rows)
    torch.testing.assert_close(*(torch.autograd.grad((each * weights).sum(), x) for each in (rows, expected)))


def score(name: str, h: list[float], r: list[float], t: list[float]) -> float:
    """The score of one triple, as the papers write it."""
    if name == "distmult":
        return sum(a * b * c for a, b, c in zip(h, r, t, strict=True))
    if name == "transe":
        return -(sum((a + b - c) ** 2 for a, b, c in zip(h, r, t, strict=True)) ** 0.5)
    half = len(h) // 2
    hs, rs, ts = ([complex(*z) for z in zip(each[:half], each[half:], strict=True)] for each in (h, r, t))
    return sum((a * b * c.conjugate()).real for a, b, c in zip(hs, rs, ts, strict=True))


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_in_both_directions(name: str) -> None:
    torch.manual_seed(0)
    readout, x = READOUTS[name](WIDTH, RELATIONS).double(), torch.randn(5, WIDTH, dtype=torch.float64)
    queries = torch.tensor([[0, 2, 0], [3, 1, 1], [4, 0, 1], [4, 0, 0]])
    batch = Batch.of([Structure(("",) * 5, np.zeros((0, 2), dtype=np.int64))]).replaced(queries=queries)
    entities, relations = x.tolist(), readout.relations.tolist()

    def one(i: int, r: int, back: int, k: int) -> float:
        head, tail = (k, i) if back else (i, k)
        return score(name, entities[head], relations[r], entities[tail])

    expected = [[one(*query, k) for k in range(5)] for query in queries.tolist()]
    torch.testing.assert_close(readout(x, batch), torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-9)


def test_an_entity_that_is_where_it_should_be_has_a_gradient() -> None:
    """The root of TransE's squares has none at 0."""
    readout = READOUTS["transe"](WIDTH, 1)
    x = torch.zeros(2, WIDTH, requires_grad=True)
    readout.relations.data.zero_()
    batch = Batch.of([GRAPHS[0]]).replaced(queries=torch.tensor([[0, 0, 0]]))
    readout(x, batch).sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()


def test_which_readout_a_model_takes() -> None:
    assert [readout_of(None, level).name for level in (None, "graph", "node", "pair")] == [
        *("mean", "mean", "node", "distmult")
    ]
    assert readout_of("complex", None).name == "complex"
    for level in {readout.level for readout in READOUTS.values()}:
        assert sum(readout.default for readout in READOUTS.values() if readout.level == level) == 1
    with pytest.raises(
        ConfigError, match=r"readout is 'sum', which has the level 'graph'; .* 'node': choose one of node"
    ):
        readout_of("sum", "node")
    with pytest.raises(ConfigError, match="no readout is the default of the level 'edge'"):
        readout_of(None, "edge")
    with pytest.raises(ConfigError, match=r"there is no readout named 'summ'\. Did you mean 'sum'"):
        GraphModelConfig(readout="summ")
    with pytest.raises(ConfigError, match="width is 5; complex needs an even width"):
        READOUTS["complex"](5, 1)


def test_without_layers_a_model_of_pairs_scores_embeddings() -> None:
    config = GraphModelConfig(WIDTH, 0, attention=None, message_passing=None, readout="distmult")
    model = GraphModel(config, build([], config.dims), Categories((4,)), None, RELATIONS, "pair").eval()
    assert {name for name, _ in model.named_parameters()} == {"nodes.table.weight", "readout.relations"}
    graph = Structure(("",) * 4, [[0, 1]], features={"x": np.arange(4)[:, None]})
    batch = Batch.of([graph]).replaced(queries=torch.tensor([[1, 2, 0]]))
    vectors = model.nodes.table.weight
    torch.testing.assert_close(model(batch), (vectors[1:2] * model.readout.relations[2]) @ vectors.T)
    with pytest.raises(ConfigError, match=r"head_dropout is 0\.9, .* no effect, as the readout 'distmult' has no head"):
        replace(config, head_dropout=0.9)
    with pytest.raises(ConfigError, match="needs attention, or message_passing, or both"):
        GraphModelConfig(WIDTH, 1, attention=None, message_passing=None)
    with pytest.raises(ConfigError, match="layers is 0, so attention, message_passing and virtual_node have no effect"):
        GraphModelConfig(WIDTH, 0, attention=None)
    with pytest.raises(ConfigError, match="acts on attention only, and this model has none"):
        GraphModel(config, build("t5", config.dims), Categories((4,)), None, RELATIONS)

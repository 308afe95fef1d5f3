"""One graph whose nodes are predicted, in samples: what a step is given, what is scored, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from structpe.data.batch import Batch, collate
from structpe.data.features import Numbers
from structpe.datasets import Benchmark, Split
from structpe.encodings.distance import Distance
from structpe.errors import ConfigError
from structpe.nn.graph_model import GraphModel
from structpe.objectives.classification import Multiclass
from structpe.positions import MODELS, Dims, Site
from structpe.positions.build import build
from structpe.structure import Structure
from structpe.tasks.config import make
from structpe.tasks.prediction import encodings as encodings_module
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.encodings import quadratic
from structpe.tasks.prediction.sources import SOURCES, Data
from structpe.tasks.runs import train
from structpe.tasks.training.batches import Batches, BatchPlan
from tests.representatives import only
from tests.tasks.prediction.tiny import MODEL, TRAINING, data_in, single, that_act

CLASSIC = {"width": 8, "layers": 2, "attention": None, "feedforward": 0, "norm": "none"}
WALK = {"name": "rwse", "encoding": {"name": "random-walk", "steps": 4}}


def benchmark(n: int = 60, edges: int = 150, seed: int = 0) -> Benchmark:
    """A random graph with edge features; the target of every fifth node is not known."""
    generator = np.random.default_rng(seed)
    graph = Structure(
        ("",) * n,
        generator.integers(0, n, (edges, 2)),
        directed=False,
        features={
            "x": generator.standard_normal((n, 3)).astype(np.float32),
            "edge_x": generator.standard_normal((edges, 2)).astype(np.float32),
        },
    )
    targets = generator.integers(0, 4, n)
    targets[::5] = -1
    split = Split(*np.split(generator.permutation(n), [n // 2, 3 * n // 4]))
    return Benchmark("made", [graph], targets, (split,), Multiclass("node", 4, "accuracy"), Numbers(3), Numbers(2))


def config(model: dict[str, Any], position: Any = (), **sampling: Any) -> PredictionConfig:
    training = {**TRAINING, "batch_size": sampling.pop("batch_size", 6)}
    data = {"name": "minesweeper", "folder": "."}
    position = position or []
    given = {"data": data, "model": model, "position": position, "sampling": sampling, "training": training}
    return make(PredictionConfig, that_act(given))


def model_of(given: PredictionConfig, made: Benchmark) -> GraphModel:
    torch.manual_seed(0)
    position = build(given.position, given.model.dims)
    return GraphModel(given.model, position, made.nodes, made.edges, made.objective.outputs, "node")


def data_of(given: PredictionConfig, made: Benchmark, folder: Path) -> Data:
    return SOURCES["node"].data(given, made, made.splits[0], model_of(given, made), folder)


def known(made: Benchmark) -> list[int]:
    return sorted(i for i in made.splits[0].train.tolist() if made.targets[i] >= 0)


def gradients(model: GraphModel, batch: Batch, made: Benchmark) -> dict[str, Tensor]:
    model.zero_grad()
    total, count = made.objective.loss(model(batch), batch.target)
    (total / count).backward()  # type: ignore[no-untyped-call]
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize(
    "convolution", only(["gcn", "sage", "gin", "gine", "gatedgcn", "gat", "gatv2"], "gcn", "gatedgcn")
)
def test_with_room_for_all_the_gradients_are_those_of_the_whole_graph(convolution: str, tmp_path: Path) -> None:
    made = benchmark()
    given = config({**CLASSIC, "message_passing": convolution}, WALK, fanouts=[1000, 1000])
    data, model = data_of(given, made, tmp_path), model_of(given, made).double().eval()
    seeds = data.train[:7]
    whole = np.isin(np.arange(made.graphs[0].size), seeds)
    example = data_of(config({**CLASSIC, "message_passing": convolution}, WALK), made, tmp_path).train[0]
    full = collate([type(example)(**{**vars(example), "target_mask": whole})], model.grouping)
    drawn = data.collate(seeds)
    assert len(drawn.adjacency.source) < len(full.adjacency.source)
    one, other = (gradients(model, _double(batch), made) for batch in (full, drawn))
    assert one.keys() == other.keys()
    assert all(torch.allclose(one[name], other[name], atol=1e-9) for name in one)


def _double(batch: Batch) -> Batch:
    assert batch.x is not None
    assert batch.edge_x is not None
    return Batch(**{**vars(batch), "x": batch.x.double(), "edge_x": batch.edge_x.double()})


@pytest.mark.parametrize("sampling", [{"fanouts": [10, 10]}, {"parts": 9}], ids=list)
def test_every_training_node_with_a_known_target_comes_once_an_epoch(sampling: dict[str, Any], tmp_path: Path) -> None:
    made = benchmark()
    data = data_of(config({**CLASSIC, "message_passing": "sage"}, **sampling, batch_size=4), made, tmp_path)
    plan = BatchPlan(data.sizes, 4, 0)
    x = torch.from_numpy(made.graphs[0].features["x"])
    for epoch in range(2):
        seen = []
        for numbers in plan.epoch(epoch):
            batch = data.collate([data.train[i] for i in numbers])
            assert batch.x is not None
            assert batch.target_mask is not None
            rows = batch.x[batch.target_mask]
            found = (rows[:, None] == x[None]).all(-1).int().argmax(1)
            assert torch.equal(batch.target, torch.from_numpy(made.targets)[found])
            seen += found.tolist()
        assert sorted(seen) == known(made)


@pytest.mark.parametrize("sampling", [{"fanouts": [2, 2]}, {"parts": 9}], ids=list)
def test_a_training_that_goes_on_is_given_the_batches_that_it_would_have_been(
    sampling: dict[str, Any], tmp_path: Path
) -> None:
    made = benchmark()
    given = config({**CLASSIC, "message_passing": "sage"}, **sampling, batch_size=5)

    def batches() -> Batches[Any, Batch]:
        data = data_of(given, made, tmp_path)
        return Batches(data.train, BatchPlan(data.sizes, 5, 3), data.collate, 12)

    through, later = list(batches()), batches()
    later.load_state_dict(batches().state_dict() | {"done": 7})
    for one, other in zip(through[7:], later, strict=True):
        assert torch.equal(one.adjacency.source, other.adjacency.source)
        assert torch.equal(one.target, other.target)
        assert one.x is not None
        assert other.x is not None
        assert torch.equal(one.x, other.x)


def test_another_seed_draws_other_neighbours(tmp_path: Path) -> None:
    made = benchmark(200, 2000)
    given = config({**CLASSIC, "message_passing": "sage"}, fanouts=[3, 3])
    data, model = data_of(given, made, tmp_path), model_of(given, made)
    other = make(PredictionConfig, {**_plain(given), "training": {**TRAINING, "seed": 5}})
    another = SOURCES["node"].data(other, made, made.splits[0], model, tmp_path)
    one, again, differs = data.collate(data.train[:5]), data.collate(data.train[:5]), another.collate(data.train[:5])
    assert torch.equal(one.adjacency.source, again.adjacency.source)
    assert not torch.equal(one.adjacency.source, differs.adjacency.source)


def _plain(given: PredictionConfig) -> dict[str, Any]:
    from structpe.tasks.config import to_dict

    return to_dict(given)


def test_encodings_of_nodes_are_of_the_whole_graph_and_those_of_pairs_of_the_sample(tmp_path: Path) -> None:
    made = benchmark()
    position = [WALK, {"name": "graformer", "max_distance": 3}]
    data = data_of(config(MODEL, position, parts=6, batch_size=2), made, tmp_path)
    batch = data.collate(data.train[:2])
    values = {encoding.name: encoding for encoding in batch.positions[0]}
    walks = batch.positions[0][values["random-walk"]]
    whole = values["random-walk"].many(made.graphs)[0].values
    x = made.graphs[0].features["x"]
    assert batch.x is not None
    found = [int(np.flatnonzero((x == row).all(axis=1))[0]) for row in batch.x.numpy()]
    assert np.allclose(walks[0].numpy(), whole[found])
    inside = [[found.index(s), found.index(t)] for s, t in made.graphs[0].edges.tolist() if {s, t} <= set(found)]
    cut = Structure(("",) * len(found), np.array(inside), directed=False)
    expected = values["distance"].many([cut])[0].pairs()
    assert np.array_equal(batch.positions[0][values["distance"]].dense()[0].numpy(), expected)


def test_the_whole_graph_is_scored_unless_all_pairs_were_learned_in_parts(tmp_path: Path) -> None:
    made = benchmark()
    options = {**MODEL, "heads": 2, "attention": {"feature_map": "elu"}}
    linear = config(options, WALK, parts=6, batch_size=2)
    dense = config(MODEL, WALK, parts=6, batch_size=2)
    for part, expected in (("valid", made.splits[0].valid), ("test", made.splits[0].test)):
        (whole,) = vars(data_of(linear, made, tmp_path))[part]
        assert whole.size == 60
        assert np.flatnonzero(whole.target_mask).tolist() == sorted(expected.tolist())
        pieces = vars(data_of(dense, made, tmp_path))[part]
        assert len(pieces) == 3
        assert sum(piece.size for piece in pieces) == 60
        assert sum(int(piece.target_mask.sum()) for piece in pieces) == len(expected)
        of_nodes = np.concatenate([piece.x[piece.target_mask] for piece in pieces])
        in_order = made.graphs[0].features["x"][expected]
        assert np.array_equal(np.sort(of_nodes, axis=0), np.sort(in_order, axis=0))


def test_what_looks_at_all_pairs() -> None:
    made = benchmark()

    def looks(model: dict[str, Any], position: Any = ()) -> bool:
        return quadratic(model_of(config(model, position), made))

    assert looks(MODEL)
    assert looks(MODEL, WALK)
    assert looks(MODEL, "graformer")
    assert looks(MODEL, "grit")
    assert looks({**MODEL, "attention": {"kernel": "dense"}}, "exphormer")
    assert looks({**MODEL, "attention": None}, "graphormer")
    assert not looks(MODEL, "exphormer")
    assert not looks(MODEL, [WALK, "dwivedi-neighbours"])
    assert not looks({**MODEL, "attention": {"feature_map": "random"}}, WALK)
    assert not looks({**MODEL, "attention": None}, WALK)


def test_models_that_ask_for_listed_pairs_let_no_others_attend() -> None:
    """What :func:`quadratic` takes for granted, of every model of the registry."""
    from structpe.positions.batch import encode

    dims, graph = Dims(8, 2, 1), Structure(tuple("abcd"), np.array([[0, 1], [1, 2]]), order=np.arange(4))
    found = []
    for name in MODELS:
        model = build(name, dims)
        if any(encoding.sparse for encoding in model.encodings) and not model.own_attention:
            assert model.terms(model.prepare(encode([graph], model.encodings)), Site(0)).pairs, name
            found.append(name)
    assert {"exphormer", "dwivedi-neighbours", "sliding-window"} <= set(found)


def test_too_many_pairs_are_refused_before_anything_is_computed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(encodings_module, "MOST", 50)
    monkeypatch.setattr(Distance, "many", None)
    made = benchmark()
    remedy = r"has 60 nodes, and attention looks at all pairs of nodes, of 50 nodes at most. Set sampling.parts, such"
    for sampling in ({}, {"fanouts": [10, 10]}):
        with pytest.raises(ConfigError, match=remedy):
            data_of(config(MODEL, **sampling), made, tmp_path)
    with pytest.raises(ConfigError, match="an encoding of the position model looks at all pairs"):
        data_of(config({**MODEL, "attention": None}, "graphormer"), made, tmp_path)
    with pytest.raises(
        ConfigError, match=r"6 of 6 parts are some 60 nodes.*raise sampling.parts, or lower training.bat"
    ):
        data_of(config(MODEL, parts=6), made, tmp_path)
    data_of(config(MODEL, parts=12), made, tmp_path)
    monkeypatch.setattr(encodings_module, "MOST", 60)
    data = data_of(config(MODEL, fanouts=[50, 50]), made, tmp_path)
    data.collate.most = 20  # type: ignore[attr-defined]
    with pytest.raises(
        ConfigError, match=r"5 nodes and those drawn around them are \d+, and the model.*, 20 nodes at mo"
    ):
        data.collate(data.train[:5])


def test_more_parts_than_nodes_and_nothing_to_learn_are_refused(tmp_path: Path) -> None:
    made = benchmark()
    classic = {**CLASSIC, "message_passing": "gcn"}
    with pytest.raises(ConfigError, match="60 nodes cannot be cut into 61 parts"):
        data_of(config(classic, parts=61), made, tmp_path)
    object.__setattr__(made, "targets", np.full(60, -1))
    with pytest.raises(ConfigError, match="made: the target of no training node is known; there is nothing to learn"):
        data_of(config(classic, fanouts=[10, 10]), made, tmp_path)


def test_graphs_are_not_sampled(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sampling is for one graph whose nodes are predicted; here .*: leave sampl"):
        train(single(tmp_path, sampling={"parts": 64}))


PARTS = {"parts": 8}


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampling",
    only([{"fanouts": [4, 4]}, PARTS], PARTS),
    ids=list,
)
def test_a_run_that_was_killed_ends_as_if_it_had_not(sampling: dict[str, Any], tmp_path: Path) -> None:
    data = {"name": "minesweeper", "folder": str(data_in(tmp_path))}
    given = {"data": data, "split": 0, "sampling": sampling}
    given["model"] = {"message_passing": "sage", "attention": {"feature_map": "elu"}}
    through = train(single(tmp_path, **given, out=str(tmp_path / "one")))
    half = single(tmp_path, **given, out=str(tmp_path / "two"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("structpe.tasks.training.lightning_module.Checkpoints.on_train_batch_end", _stop_at(6))
        with pytest.raises(RuntimeError, match="killed"):
            train(half)
    resumed = train(half)
    assert resumed.test == through.test
    assert resumed.valid == through.valid
    assert through.test > 0.5


def _stop_at(step: int) -> Any:
    from structpe.tasks.training.lightning_module import Checkpoints

    usual = Checkpoints.on_train_batch_end

    def stopping(self: Checkpoints, trainer: Any, *given: Any, **named: Any) -> None:
        usual(self, trainer, *given, **named)
        if trainer.global_step == step:
            raise RuntimeError("killed")

    return stopping

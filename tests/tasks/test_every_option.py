"""Every field of every configuration acts or is refused: nothing that is set is ignored in silence.

A field is changed in settings in which others may make it inert. Then the model, or the run, is another one, or there
is an error. What is changed stands in a table, so that a new field without a line fails here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import torch
from torch import nn

from structpe.data.batch import Batch
from structpe.data.features import Numbers
from structpe.errors import ConfigError, PositionError
from structpe.nn.graph_model import GraphModel, GraphModelConfig
from structpe.nn.language_model import LanguageModel
from structpe.nn.layer import Attention, StackConfig
from structpe.nn.search import SearchConfig, search
from structpe.nn.seq2seq import EncoderDecoder, TransformerConfig
from structpe.parsing.training import Plan
from structpe.positions import MODELS, Block, Dims, Site
from structpe.positions.build import build, fitted
from structpe.structure import Structure
from structpe.tasks.config import make, merged, to_dict
from structpe.tasks.graph_to_text.config import (
    DataConfig,
    GraphToTextConfig,
    PretrainedConfig,
    PretrainedTextConfig,
    TextTraining,
)
from structpe.tasks.prediction.config import PredictionConfig, PredictionTraining, SamplingConfig
from structpe.tasks.prediction.study import StudyConfig
from structpe.tasks.runs import run_of, train
from structpe.tasks.training import checkpoint
from structpe.tasks.training.config import HardwareConfig, ValidationConfig
from structpe.terms import Terms
from tests.representatives import only
from tests.tasks.prediction.tiny import single
from tests.together import together

GRAPH: dict[str, Any] = {
    "width": 24,
    "layers": 3,
    "attention": None,
    "heads": 2,
    "attention.dropout": 0.3,
    "attention.kernel": "dense",
    "attention.feature_map": "elu",
    "attention.zero_init": True,
    "message_passing": "gcn",
    "message_activation": "gelu",
    "feedforward": 40,
    "activation": "gelu",
    "norm": "layer",
    "norm_first": True,
    "residual": "linear",
    "dropout": 0.3,
    "input_dropout": 0.3,
    "virtual_node": True,
    "readout": "sum",
    "head_layers": 3,
    "head_dropout": 0.3,
}
"""Another value of each option of a model of graphs."""
SMALL: dict[str, Any] = {"width": 8, "layers": 2, "feedforward": 16, "dropout": 0.1}
NO_LAYERS = {"layers": 0, "attention": None, "message_passing": None}
SETTINGS: dict[str, tuple[dict[str, Any], Any, str]] = {
    "both": ({}, [], "graph"),
    "attention": ({"message_passing": None}, [], "graph"),
    "linear": ({"message_passing": None, "attention": {"feature_map": "elu"}}, [], "graph"),
    "messages": ({"attention": None}, [], "graph"),
    "gcn without feed-forward": ({"attention": None, "message_passing": "gcn", "feedforward": 0}, [], "graph"),
    "one linear map": ({"attention": None, "head_layers": 1, "feedforward": 0}, [], "graph"),
    "no layers": (NO_LAYERS, [], "graph"),
    "pairs without layers": (NO_LAYERS, [], "pair"),
    "own attention": ({}, "grit", "graph"),
    "own attention without weights": ({}, "lspe", "graph"),
    "pairs": ({"readout": "complex"}, [], "pair"),
    "pairs by default": ({}, [], "pair"),
    "no residual": ({"residual": False}, [], "graph"),
}
ALIKE = (
    "gcn without feed-forward",
    "own attention",
    "own attention in both",
    "pairs by default",
    "pairs without layers",
)
"""Settings that another one represents."""
SIDES = ("encoder", "decoder")
TARGETS = [[1, 4, 5, 2], [1, 6, 2, 0], [1, 7, 3, 2]]
TEXT: dict[str, Any] = {
    "width": 24,
    "heads": 4,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "feedforward": 40,
    "activation": "gelu",
    "dropout": 0.3,
    "attention_dropout": 0.3,
    "input_dropout": 0.3,
    "message_passing": "gcn",
    "message_activation": "gelu",
    "norm": "batch",
    "norm_first": False,
    "virtual_node": True,
    "feature_map": "elu",
    "copy_units": True,
    "kernel": "dense",
}
OF_TEXT: dict[str, tuple[dict[str, Any], Any, str]] = {
    "plain": ({}, [], "sinusoidal"),
    "messages": ({"message_passing": "gcn"}, [], "sinusoidal"),
    "own attention": ({}, "grit", "sinusoidal"),
    "own attention without weights": ({}, "lspe", "sinusoidal"),
    "own attention in both": ({}, "lspe", "forgetting-attention"),
}


def graphs() -> list[Structure]:
    random = np.random.default_rng(0)
    return [
        Structure(
            ("",) * n,
            np.stack([np.arange(n - 1), np.arange(1, n)], axis=1),
            order=np.arange(n),
            root=0,
            features={"x": random.standard_normal((n, 3)).astype(np.float32)},
        )
        for n in (5, 7, 4)
    ]


def seen(model: nn.Module, compute: Callable[[], Any]) -> str:
    """All that a model is and computes in training: parts, parameters, outputs, kernels that it asks for."""
    found = hashlib.sha256(repr(model).encode())
    for name, each in model.state_dict().items():
        found.update(f"{name}{tuple(each.shape)}".encode())
        found.update(each.numpy().tobytes())
    torch.manual_seed(1)
    found.update(compute().detach().numpy().tobytes())
    found.update(str([each.kernel for each in model.modules() if isinstance(each, Attention)]).encode())
    return found.hexdigest()


def graph_model(setting: str, **changed: Any) -> str:
    options, position, level = SETTINGS[setting]
    config = make(GraphModelConfig, merged(GraphModelConfig, _that_act(options), options, changed))
    torch.manual_seed(0)
    model = GraphModel(config, build(position, config.dims), Numbers(3), None, 2, level)
    batch = Batch.of(graphs(), model.position.encodings, grouping=model.grouping)
    if level == "pair":
        batch = batch.replaced(queries=torch.tensor([[0, 1, 0], [1, 0, 1]]))
    return seen(model.train(), lambda: model(batch))


def _that_act(options: Mapping[str, Any]) -> dict[str, Any]:
    without = ("layers", "feedforward", "dropout") if not options.get("layers", 1) else ()
    return {name: value for name, value in SMALL.items() if name not in without}


def text_model(setting: str, **changed: Any) -> str:
    options, *positions = OF_TEXT[setting]
    small = {"width": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feedforward": 16}
    config = TransformerConfig(**{**small, **options, **changed})
    torch.manual_seed(0)
    encoder, decoder = (build(each, config.dims(side)) for each, side in zip(positions, SIDES, strict=True))
    model = EncoderDecoder(config, 9, encoder, decoder)
    made = Batch.of(graphs(), encoder.encodings, grouping=model.encoder.grouping)
    edges = torch.zeros(len(made.adjacency.source), 1, dtype=torch.int64)
    batch = made.replaced(x=torch.arange(16) % 9, edge_x=edges, target=torch.tensor(TARGETS))
    return seen(model.train(), lambda: model.loss(batch, 0)[0])


@pytest.mark.parametrize("setting", only(SETTINGS, *(each for each in SETTINGS if each not in ALIKE)))
def test_each_option_of_a_model_of_graphs(setting: str) -> None:
    _each_acts(GraphModelConfig, GRAPH, lambda **changed: graph_model(setting, **changed), SETTINGS[setting][0])


@pytest.mark.parametrize("setting", only(OF_TEXT, *(each for each in OF_TEXT if each not in ALIKE)))
def test_each_option_of_a_model_of_texts(setting: str) -> None:
    _each_acts(TransformerConfig, TEXT, lambda **changed: text_model(setting, **changed), OF_TEXT[setting][0])


def _each_acts(cls: type, values: Mapping[str, Any], made: Callable[..., str], options: Mapping[str, Any]) -> None:
    assert set(values) == set(keys_of(cls))
    plain, silent = made(), []
    for name, value in values.items():
        if name in keys_in(options):
            continue
        try:
            if made(**nested(name, value)) == plain:
                silent.append(name)
        except (ConfigError, PositionError):
            continue
    assert not silent


def keys_of(cls: Any) -> Iterator[str]:
    """The dotted keys of a configuration; a group that may be null is a key, too."""
    for name, hint in ((each.name, get_type_hints(cls)[each.name]) for each in fields(cls)):
        groups = [each for each in (hint, *get_args(hint)) if is_dataclass(each)]
        if groups != [hint]:
            yield name
        if groups and get_origin(hint) is not list:
            yield from (f"{name}.{inner}" for inner in keys_of(groups[0]))


def keys_in(given: Mapping[str, Any]) -> set[str]:
    """The dotted keys of plain data, and those of its groups."""
    inner = {f"{name}.{key}" for name, each in given.items() if isinstance(each, dict) for key in each}
    return {*given, *inner}


def nested(key: str, value: Any) -> dict[str, Any]:
    """Plain data with one dotted key."""
    group, _, name = key.rpartition(".")
    return {group: {name: value}} if group else {key: value}


def test_a_layer_without_the_model_around_it() -> None:
    for options in ({"attention": None, "norm_first": True}, {"message_passing": None, "message_activation": "gelu"}):
        with pytest.raises(ConfigError, match=r"which has no effect, as (attention|message_passing) is null"):
            StackConfig(**options)


@together("name", [name for name in MODELS if issubclass(MODELS[name], Block)])
def test_what_a_block_says_of_dropout_and_heads(name: str) -> None:
    whole, dropped = (_attended(name, 2, dropout) for dropout in (0.0, 0.5))
    drops, heads = MODELS[name].drops, MODELS[name].heads  # type: ignore[attr-defined]
    assert torch.equal(whole, _attended(name, 2, 0.0))
    assert torch.equal(whole, dropped) is not drops
    assert torch.equal(whole, _attended(name, 1, 0.0)) is not heads


def _attended(name: str, heads: int, dropout: float) -> torch.Tensor:
    torch.manual_seed(0)
    dims = Dims(8, heads, 1)
    block = build(fitted(name, dims, graphs), dims)
    assert isinstance(block, Block)
    batch = Batch.of(graphs(), block.encodings, grouping="together").positions[0]
    x = torch.randn(3, 7, 8)
    mask = torch.arange(7) < torch.tensor([4, 5, 7])[:, None]
    terms = Terms(mask=(mask[:, None, None],))

    with torch.no_grad():
        prepared = block.eval().prepare(batch)
        return block.attend(x, prepared, Site(0, dropout=dropout), terms)[0][mask]


def test_each_option_of_a_search() -> None:
    config = StackConfig.transformer(Dims(8, 2, 1), 16)
    torch.manual_seed(3)
    model = LanguageModel(config, 11, build("sinusoidal", config.dims)).eval()
    tables = torch.randn(8, 13, 11, 11)  # scores of a unit after another one, at each place
    tables[..., 2] -= 0.5  # the end of a text

    def texts(**options: Any) -> list[list[list[int]]]:
        def of(scores: torch.Tensor) -> list[list[int]]:
            def step(written: torch.Tensor, state: Any) -> torch.Tensor:
                model.step(written, state)
                return scores[state.length][written].log_softmax(-1)

            return search(step, model.start(1), 1, 2, SearchConfig(**options))

        return [of(scores) for scores in tables]

    plain = {"beam": 4, "length_penalty": 1.5, "longest": 12}
    assert set(plain) == {each.name for each in fields(SearchConfig)}
    for name, value in {"beam": 1, "length_penalty": 0.0, "longest": 3}.items():
        given = {**plain, name: value}
        if name == "beam":
            del given["length_penalty"]
        assert texts(**given) != texts(**plain), name
    with pytest.raises(ConfigError, match=r"search\.length_penalty is 0\.0, which has no effect, as search\.beam is 1"):
        SearchConfig(beam=1, length_penalty=0.0)


def validated(**options: Any) -> TextTraining:
    return TextTraining(validation=ValidationConfig(**options))


REFUSED: dict[str, Callable[[], Any]] = {
    "training.hardware.strategy": lambda: HardwareConfig(strategy="fsdp"),
    "dev_texts": lambda: GraphToTextConfig(DataConfig("a", "b"), dev_texts=3),
    "training.validation.metric": lambda: GraphToTextConfig(DataConfig("a"), training=validated(metric="bleu")),
    "training.validation.patience": lambda: GraphToTextConfig(DataConfig("a"), training=validated(patience=3)),
    "model.position_rate": lambda: PretrainedTextConfig(
        DataConfig("a", "b"), model=PretrainedConfig("x", position_rate=2.0)
    ),
    "models: b": lambda: StudyConfig({"a": {}}, {"a": {}, "b": {}}, {"none": []}, [["a", "none"]]),
    "positions: t5": lambda: StudyConfig({"a": {}}, {"a": {}}, {"none": [], "t5": "t5"}, [["a", "none"]]),
}


@pytest.mark.parametrize("key", REFUSED)
def test_what_cannot_act_in_a_run_or_study(key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key.strip()} .*has no effect, as"):
        REFUSED[key]()


def test_what_acts_is_taken() -> None:
    with pytest.raises(ConfigError, match=r"^sampling has fanouts and parts, .* leave one out$"):
        SamplingConfig([3], 3)
    assert SamplingConfig().whole
    assert not SamplingConfig(parts=3).whole
    assert not SamplingConfig(fanouts=[3]).whole
    assert HardwareConfig(strategy="fsdp", nodes=2).shards
    assert GraphToTextConfig(DataConfig("a", "b"), dev_texts=3, training=validated(metric="bleu")).greedy.beam == 1


def whole_graph(folder: Path, **training: Any) -> Any:
    given = to_dict(single(folder))
    given["data"] |= {"name": "minesweeper"}
    given["position"], given["model"]["message_passing"] = [], "gcn"
    given["training"] |= {"batch_size": 32, **training}
    return make(type(single(folder)), given)


@pytest.mark.parametrize(("key", "value"), [("batch_size", 8), ("order", "by-size")])
def test_a_step_of_the_whole_graph_has_no_batch(key: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"training.{key} is .*, which has no effect, as nothing is sampled"):
        train(whole_graph(tmp_path, **{key: value}))


TRAINING: dict[str, Any] = {
    "steps": 5,
    "batch_size": 12,
    "accumulate": 2,
    "order": "by-size",
    "seed": 7,
    "checkpoint_every": 1,
    "optimiser.name": "SGD",
    "optimiser.options": {"betas": [0.5, 0.6]},
    "optimiser.learning_rate": 0.002,
    "optimiser.warmup": 3,
    "optimiser.schedule": "constant",
    "optimiser.weight_decay": 0.5,
    "optimiser.clip": 0.01,
    "validation.every": 3,
    "validation.metric": "loss",
    "validation.patience": 1,
    "validation.average": 2,
    "hardware.precision": "bf16-mixed",
    "hardware.strategy": "fsdp",
    "logs.every": 1,
    "logs.loggers": [{"path": "lightning.pytorch.loggers.CSVLogger", "options": {"save_dir": "further"}}],
}
FEW = {"steps": 4, "validation": {"every": 1}, "checkpoint_every": 2, "logs": {"every": 2}}
ELSEWHERE = {f"hardware.{name}" for name in ("accelerator", "devices", "nodes", "workers", "jobs", "deterministic")}
"""They say where and how fast the same is computed; tests of devices, nodes, loaders and encodings look at them."""


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_each_option_of_a_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(TRAINING) | ELSEWHERE == set(keys_of(PredictionTraining))
    monkeypatch.chdir(tmp_path)
    plain, silent = _trained(tmp_path, "plain", monkeypatch), []
    for name, value in TRAINING.items():
        try:
            if _trained(tmp_path, name, monkeypatch, **nested(name, value)) == plain:
                silent.append(name)
        except ConfigError:
            continue
    assert not silent


def _trained(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, **changed: Any) -> Any:
    """Weights, logs, checkpoints, the result and which metric decided."""
    kept: list[str] = []
    prune = checkpoint.prune
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "prune", lambda where, keep: (kept.append(_newest(where)), prune(where, keep)))
        waits = "patience" in changed.get("validation", {})
        rate = {"optimiser": {"learning_rate": 1e-9 if waits else 0.01}}
        training = merged(PredictionTraining, FEW, rate, changed)
        config = single(folder, position=[], training=training, out=str(folder / name))
        result = train(config)
    out = folder / name
    made = {file.name for file in folder.rglob("*") if "further" in str(file)}
    metric = run_of(config).read().metric
    return (
        (out / "model.safetensors").read_bytes()[-2000:],
        (out / "metrics.csv").read_text(),
        kept,
        made,
        metric,
        result.training.steps,
    )


def _newest(folder: Path) -> str:
    return max(each.name for each in folder.iterdir())


CONFIGURATIONS = {
    "AttentionConfig": "as GraphModelConfig",
    "BenchmarkConfig": "tests/tasks/prediction/test_train.py: name, folder and options are checked against the loader",
    "DataConfig": "tests/tasks/graph_to_text/test_train.py",
    "GraphModelConfig": "here",
    "GraphToTextConfig": "here; positions and start in tests/tasks/graph_to_text",
    "HardwareConfig": "here; of several devices and machines in tests/tasks/training",
    "InjectConfig": "tests/tasks/graph_to_text/test_pretrained.py",
    "LoggerConfig": "tests/tasks/training/test_loggers.py",
    "LogsConfig": "here; tests/tasks/training/test_loggers.py",
    "OptimiserConfig": "tests/tasks/training/test_optimiser.py",
    "Plan": "tests/parsing",
    "PredictionConfig": "here; tests/tasks/prediction",
    "PredictionOptimiser": "here",
    "PredictionTraining": "here",
    "PredictionValidation": "here",
    "PrepareConfig": "here",
    "PretrainedConfig": "here; tests/tasks/graph_to_text/test_pretrained.py",
    "PretrainedTextConfig": "here; tests/tasks/graph_to_text/test_pretrained.py",
    "PretrainedOptimiser": "as OptimiserConfig",
    "PretrainedTraining": "as TextTraining",
    "Published": "tests/tasks/prediction/test_report.py",
    "SamplingConfig": "here; tests/tasks/prediction/test_nodes.py",
    "SearchConfig": "here",
    "StudyConfig": "here; tests/tasks/prediction",
    "TextsConfig": "tests/tasks/graph_to_text/test_pretrained.py",
    "TextTraining": "as PredictionTraining; smoothing in tests/nn/test_seq2seq.py and tests/tasks/graph_to_text",
    "TransformerConfig": "here",
    "ValidationConfig": "here",
}
"""Where the options of each configuration are looked at."""


def test_every_configuration_is_looked_at_somewhere() -> None:
    roots = (GraphToTextConfig, PretrainedTextConfig, PredictionConfig, StudyConfig, Plan)
    found = {cls.__name__ for root in roots for cls in _inside(root)}
    assert found == set(CONFIGURATIONS)


def _inside(cls: Any) -> Iterator[type]:
    if is_dataclass(cls) and isinstance(cls, type):
        yield cls
        hints = get_type_hints(cls)
        for each in fields(cls):
            yield from _inside(hints[each.name])
    for each in get_args(cls):
        yield from _inside(each)

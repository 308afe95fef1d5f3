"""The attention kernel of each layer of a model on a batch, and why others were not chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import nn

from structpe.attention import KernelChoice, watching
from structpe.errors import ConfigError
from structpe.nn.layer import Layer
from structpe.plain.yaml import from_yaml

__all__ = ["LayerKernel", "explain", "observed", "summary"]

MOST = 500
"""Number of items of the training split that are used for the vocabulary and the batch."""


@dataclass(frozen=True)
class LayerKernel:
    """The kernel of one layer on one bucket of the batch.

    Attributes:
        layer: name of the layer in the model, such as ``encoder.layers.0``.
        reads: ``itself``, or ``the source`` for cross-attention.
        choice: the kernel, and the costs or the reasons against the others.
    """

    layer: str
    reads: str
    choice: KernelChoice

    def lines(self) -> list[str]:
        """A description in words."""
        call, others = self.choice.call, self.choice.others
        b, h, n, m, d = call.shape
        size = f"{n} units" if n == m else f"{n} queries, {m} keys"
        costs = sorted((cost, name) for name, cost in others.items() if not isinstance(cost, str))
        about = ", ".join(f"{name} {cost / 1e6:.3g} ms" for cost, name in costs)
        fields = ", ".join(sorted(call.used)) or "none"
        reasons = [f"    {name} {why}" for name, why in sorted(others.items()) if isinstance(why, str)]
        return [
            f"  {b} of up to {size}, {h} heads of {d}, terms: {fields}",
            f"    {self.choice.kernel}; estimated for one core: {about}",
            *reasons,
        ]


def explain(path: str | Path, overrides: Sequence[str] = (), only: Sequence[str] = ()) -> dict[str, list[LayerKernel]]:
    """The kernels of each run, by its name, on a batch of its training data.

    Args:
        path: the configuration of a training, or a study.
        overrides: such as ``model.kernel=dense``.
        only: patterns of the runs of a study, of which the first seed is explained.

    Raises:
        ConfigError: the configuration is wrong, or patterns are given for one that is not a study.
    """
    from structpe.tasks.prediction.config import PredictionConfig
    from structpe.tasks.prediction.study import load_study
    from structpe.tasks.runs import load_config

    if not Path(path).is_file():
        raise ConfigError(f"there is no file {path}; give the YAML file of a training or of a study")
    plain = from_yaml(Path(path).read_text(encoding="utf-8"), str(path))
    if isinstance(plain, Mapping) and {"models", "positions"} & plain.keys():
        study = load_study(path, overrides)
        keys = [key for key in study.keys(only) if key.seed == study.seeds[0]]
        return {str(key): observed(*_of_benchmark(study.run(key))) for key in keys}
    if only:
        raise ConfigError(f"{path} is the configuration of one training, and {only[0]!r} chooses runs of a study")
    config = load_config(path, overrides)
    of = _of_benchmark if isinstance(config, PredictionConfig) else _of_texts
    return {config.name or str(path): observed(*of(config))}


def _of_texts(config: Any) -> tuple[nn.Module, Callable[[], Any]]:
    from structpe.tasks.graph_to_text.generator import read_split
    from structpe.tasks.runs import run_of
    from structpe.tasks.runs.text import GraphToTextRun, Splits

    run = run_of(config)
    if not isinstance(run, GraphToTextRun):
        raise ConfigError("a pretrained model has its own layers, which are not explained; give a model of structpe")
    run.check()
    items = read_split(config.data, "train")[:MOST]
    learned = run.learn(Splits(items, []))
    preparer, model = learned[0], run.model(learned)
    examples = preparer.examples(items, model.encoder.position.encodings, every_text=True)
    examples = sorted(examples, key=lambda example: example.cost)
    middle = max(0, len(examples) // 2 - config.training.batch_size // 2)
    chosen = examples[middle : middle + config.training.batch_size]
    batch = preparer.collate(chosen, grouping=model.encoder.grouping)
    return model, lambda: model(batch)


def _of_benchmark(config: Any) -> tuple[nn.Module, Callable[[], Any]]:
    from structpe.data.batch import Example, collate
    from structpe.datasets import load
    from structpe.positions.build import fitted
    from structpe.tasks.prediction.predictor import Signature
    from structpe.tasks.runs.prediction import LearnedPrediction, PredictionRun

    benchmark = load(config.data.name, config.data.folder, **config.data.options)
    graphs = benchmark.graphs[: config.training.batch_size]
    position = fitted(config.position, config.model.dims, lambda: list(graphs))
    model = PredictionRun(config).model(LearnedPrediction(position, Signature.of(benchmark)))
    encoded = {encoding: encoding.many(graphs) for encoding in model.position.encodings}
    examples = [Example.of(graph, {e: each[i] for e, each in encoded.items()}) for i, graph in enumerate(graphs)]
    batch = collate(examples, model.grouping)
    return model, lambda: model.hidden(batch)


def observed(model: nn.Module, run: Callable[[], Any]) -> list[LayerKernel]:
    """The kernels of each layer of a model while ``run`` runs it."""
    found: list[LayerKernel] = []
    with torch.no_grad(), watching() as noted:
        hooks, begun = [], [0]

        def end(name: str, layer: Layer) -> None:
            mine = noted[begun[0] :]
            begun[0] = len(noted)
            own = len(mine) - (layer.cross is not None)
            found.extend(LayerKernel(name, "itself" if i < own else "the source", each) for i, each in enumerate(mine))

        for name, module in model.eval().named_modules():
            if isinstance(module, Layer):
                hooks.append(module.register_forward_hook(lambda layer, *_, name=name: end(name, layer)))
        try:
            run()
        finally:
            for hook in hooks:
                hook.remove()
    return found


def summary(kernels: Sequence[LayerKernel]) -> list[str]:
    """Describe kernels in words, consecutive layers with the same ones together."""
    layers = [(name, list(each)) for name, each in groupby(kernels, key=lambda one: one.layer)]
    words = [(name, [(one.reads, tuple(one.lines())) for one in each]) for name, each in layers]
    lines = []
    if not kernels:
        lines.append("no layer asks for a kernel: the model has no attention, or its position model brings its own")
    for spoken, alike in groupby(words, key=lambda pair: pair[1]):
        names = [name for name, _ in alike]
        lines.append(names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}")
        for reads, each in spoken:
            lines += [f"  reads {reads}", *each]
    return lines

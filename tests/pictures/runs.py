"""Folders of runs as training leaves them, with weights at random: pictures do not ask how good a model is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from structpe.nn.graph_model import GraphModel
from structpe.positions.build import build
from structpe.tasks.config import save
from structpe.tasks.prediction.predictor import Signature
from structpe.tasks.runs.text import GraphToTextRun
from structpe.tasks.training.result import save_weights
from tests.tasks.graph_to_text.tiny import changed, tiny
from tests.tasks.prediction.tiny import single


def written(folder: Path, position: Any = "t5") -> Path:
    """A run of graph to text."""
    config = changed(tiny(folder), position=position)
    out = Path(config.out)
    out.mkdir()
    run = GraphToTextRun(config)
    learned = run.learn(run.read())
    run.begin(learned)
    save_weights(_random(run.model(learned)), out / "model.safetensors")
    return out


def predicted(folder: Path, position: Any = "t5", outputs: int = 3, **model: Any) -> Path:
    """A run of prediction, of a benchmark whose nodes and edges have categories; it predicts if it has one output."""
    from structpe.datasets import load

    config = single(folder, position=position, model=model)
    out = Path(config.out)
    out.mkdir()
    benchmark = load(config.data.name, config.data.folder)
    made = GraphModel(config.model, build(position, config.model.dims), benchmark.nodes, benchmark.edges, outputs)
    save(config, out / "config.yaml")
    (out / "position.json").write_text(json.dumps(position), encoding="utf-8")
    Signature.of(benchmark).save(out / "signature.json")
    save_weights(_random(made), out / "model.safetensors")
    return out


def _random(model: torch.nn.Module) -> torch.nn.Module:
    """It, the weights of its position model drawn, as many begin at 0."""
    generator = torch.Generator().manual_seed(0)
    for name, parameter in model.named_parameters():
        if "position" in name:
            parameter.data = torch.randn(parameter.shape, generator=generator)
    return model

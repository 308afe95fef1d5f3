"""Benchmarks of a few dozen graphs in the layouts of published files, and studies of them that take seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from structpe.nn.graph_model import GraphModelConfig
from structpe.tasks.config import make, merged
from structpe.tasks.prediction.config import PredictionConfig, PredictionTraining
from structpe.tasks.prediction.study import StudyConfig, load_study

TRAINING = {
    "steps": 12,
    "batch_size": 8,
    "optimiser": {"learning_rate": 0.01, "warmup": 2},
    "validation": {"every": 4},
    "checkpoint_every": 3,
    "logs": {"every": 2},
    "hardware": {"accelerator": "cpu"},
}
MODEL = {"width": 16, "layers": 2, "heads": 2, "feedforward": 16, "dropout": 0.1}
CLASSIC = {**{key: MODEL[key] for key in MODEL if key != "heads"}, "attention": None, "message_passing": "gcn"}
RWSE = {"name": "rwse", "encoding": {"name": "random-walk", "steps": 6, "undirected": True}}


def molecules(folder: Path, train: int = 40, others: int = 12) -> Path:
    """Rings with a tail in the layout of ZINC's files; the target is the length of the tail."""
    random = np.random.default_rng(0)
    for name, count in (("zinc_altpool23k", train), ("zinc12k_val", others), ("zinc12k_test", others)):
        np.savez(folder / f"{name}.npz", **packed([molecule(random) for _ in range(count)]))
    return folder


def molecule(random: np.random.Generator) -> dict[str, Any]:
    ring, tail = int(random.integers(3, 7)), int(random.integers(0, 6))
    ends = [(i, (i + 1) % ring) for i in range(ring)] + [(ring + i - 1 if i else 0, ring + i) for i in range(tail)]
    both = np.array([*ends, *((b, a) for a, b in ends)])
    kinds = random.integers(1, 4, len(ends))
    return {"x": random.integers(0, 28, ring + tail), "edges": both, "kinds": np.tile(kinds, 2), "y": float(tail)}


def packed(made: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "x": np.concatenate([each["x"] for each in made]),
        "edge_index": np.concatenate([each["edges"] for each in made]).T,
        "edge_attr": np.concatenate([each["kinds"] for each in made]),
        "y": np.array([each["y"] for each in made], dtype=np.float32),
        "n_nodes": np.array([len(each["x"]) for each in made]),
        "n_edges": np.array([len(each["edges"]) for each in made]),
    }


def grid(folder: Path, side: int = 8, splits: int = 3) -> Path:
    """Cells of a grid in the layout of minesweeper's file; those of the left half are mines, as a feature hints."""
    random = np.random.default_rng(0)
    cells = np.arange(side * side).reshape(side, side)
    across, down = (
        np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ((cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:]))
    )
    labels = (cells % side < side // 2).ravel().astype(np.int64)
    hint = labels + random.normal(size=len(labels))
    parts = np.stack([random.permutation(len(labels)) % 3 for _ in range(splits)])
    np.savez(
        folder / "minesweeper.npz",
        node_features=np.stack([hint, random.normal(size=len(labels))], axis=1).astype(np.float32),
        node_labels=labels,
        edges=np.concatenate([across, down]),
        train_masks=parts == 0,
        val_masks=parts == 1,
        test_masks=parts == 2,
    )
    return folder


def single(folder: Path, **changed: Any) -> PredictionConfig:
    """A run on the molecules in ``folder/data``; the run lies in ``folder/run``."""
    parts = {
        "model": merged(GraphModelConfig, MODEL, changed.pop("model", {})),
        "training": merged(PredictionTraining, TRAINING, changed.pop("training", {})),
    }
    data = {"name": "zinc-stand-in", "folder": str(data_in(folder))}
    given = {"data": data, "position": RWSE, "out": str(folder / "run"), **parts, **changed}
    return make(PredictionConfig, that_act(given))


def that_act(given: dict[str, Any]) -> dict[str, Any]:
    """The same without what cannot act: heads without attention, a batch of one whole graph."""
    model, training = dict(given["model"]), dict(given["training"])
    if model.get("attention", MODEL) is None:
        model.pop("heads", None)
    if given["data"]["name"] == "minesweeper" and not given.get("sampling"):
        training.pop("batch_size", None)
    return {**given, "model": model, "training": training}


def data_in(folder: Path) -> Path:
    made = folder / "data"
    if not made.exists():
        made.mkdir(parents=True)
        grid(molecules(made))
    return made


def study_file(folder: Path, **changed: Any) -> Path:
    """Two models, two positions and two seeds on the molecules; the study lies in ``folder/study``."""
    given: dict[str, Any] = {
        "data": {"rings": {"name": "zinc-stand-in", "folder": "data"}},
        "models": {"gps": MODEL, "gcn": CLASSIC},
        "positions": {"none": [], "rwse": RWSE},
        "seeds": [0, 1],
        "training": TRAINING,
        "root": str(folder),
        "out": str(folder / "study"),
        **changed,
    }
    data_in(folder)
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(given, sort_keys=False), encoding="utf-8")
    return path


def study(folder: Path, **changed: Any) -> StudyConfig:
    return load_study(study_file(folder, **changed))

"""The smallest training that has everything: 20 graphs, some with two texts, width 16."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from structpe.tasks.config import make, to_dict
from structpe.tasks.graph_to_text.config import GraphToTextConfig
from structpe.tasks.runs import train
from tests.datasets import SAMPLES
from tests.tasks.changes import with_training

AMR = SAMPLES / "amr_sample"


def split(folder: Path, name: str, count: int) -> str:
    """The first graphs of a split of the sample, in a file."""
    graphs = (AMR / f"{name}.txt").read_text(encoding="utf-8").strip().split("\n\n")
    path = folder / f"{name}.txt"
    path.write_text("\n\n".join(graphs[:count]) + "\n", encoding="utf-8")
    return str(path)


def tiny(folder: Path, **training: Any) -> GraphToTextConfig:
    """A configuration whose data and run lie in the folder, with some keys of its training changed."""
    config = make(
        GraphToTextConfig,
        {
            "data": {"train": split(folder, "train", 20), "dev": split(folder, "dev", 6), "reader": "amr"},
            "prepare": {"vocabulary": 300},
            "model": {"width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feedforward": 32},
            "position": "t5",
            "training": {
                "steps": 14,
                "batch_size": 6,
                "optimiser": {"learning_rate": 0.01, "warmup": 4},
                "validation": {"every": 5},
                "checkpoint_every": 3,
                "logs": {"every": 2},
                "hardware": {"accelerator": "cpu"},
            },
            "search": {"beam": 2, "longest": 12},
            "out": str(folder / "run"),
        },
    )
    return with_training(config, **training)


def changed(config: GraphToTextConfig, **keys: Any) -> GraphToTextConfig:
    """The configuration with other values of some keys at its top."""
    assert make(GraphToTextConfig, to_dict(config)) == config
    return replace(config, **keys)


def resumed(config: GraphToTextConfig) -> tuple[bytes, bytes]:
    """The weights of a run of four steps, and those of the same that went on from its second step."""
    run, found = Path(config.out), []
    for _ in range(2):
        assert train(config).steps == 4
        found.append((run / "model.safetensors").read_bytes())
        if len(found) == 1:
            for name in ("model.safetensors", "result.json"):
                (run / name).unlink()
            shutil.rmtree(run / "checkpoints" / "step-00000004")
    return found[0], found[1]

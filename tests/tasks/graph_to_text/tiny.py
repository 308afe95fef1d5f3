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

AMR = SAMPLES / "amr_sample"


def split(folder: Path, name: str, count: int) -> str:
    """The first graphs of a split of the sample, in a file."""
    graphs = (AMR / f"{name}.txt").read_text(encoding="utf-8").strip().split("\n\n")
    path = folder / f"{name}.txt"
    path.write_text("\n\n".join(graphs[:count]) + "\n", encoding="utf-8")
    return str(path)


def tiny(folder: Path, **training: Any) -> GraphToTextConfig:
    """A configuration whose data and run lie in the folder."""
    return make(
        GraphToTextConfig,
        {
            "data": {"train": split(folder, "train", 20), "dev": split(folder, "dev", 6), "reader": "amr"},
            "prepare": {"vocabulary": 300},
            "model": {"width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feedforward": 32},
            "encoder_position": "t5",
            "training": {
                "steps": 14,
                "batch_size": 6,
                "learning_rate": 0.01,
                "warmup": 4,
                "validate_every": 5,
                "checkpoint_every": 3,
                "log_every": 2,
                "accelerator": "cpu",
                **training,
            },
            "search": {"beam": 2, "longest": 12},
            "out": str(folder / "run"),
        },
    )


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

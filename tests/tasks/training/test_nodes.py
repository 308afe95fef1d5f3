"""Two processes that act as two machines do what one process with two devices does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from structpe.errors import ConfigError
from structpe.plain.options import recorded
from structpe.tasks.config import save
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.run_all import run_all
from structpe.tasks.runs import train
from structpe.tasks.training.config import HardwareConfig
from structpe.tasks.training.folder import number
from tests.modules import ROOT
from tests.tasks.prediction.tiny import single, study

TRAIN = (
    "import sys; from structpe.tasks.config import load; from structpe.tasks.runs import train; "
    "from structpe.tasks.prediction.config import PredictionConfig; "
    "print(train(load(PredictionConfig, sys.argv[1])).test)"
)
POSITION = {"name": "t5", "encoding": "undirected-distance"}


def config(folder: Path, **training: Any) -> PredictionConfig:
    return single(folder, model={"norm": "layer", "dropout": 0.0}, position=POSITION, training=training)


def started(config: PredictionConfig, folder: Path, ranks: Sequence[int]) -> list[tuple[int, str, str]]:
    """What the processes of some machines end with: their exit status and what they print."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    save(config, folder / "asked.yaml")
    meeting = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [sys.executable, "-c", TRAIN, str(folder / "asked.yaml")]
    machines = [
        subprocess.Popen(command, cwd=ROOT, env={**meeting, "NODE_RANK": str(rank)}, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for rank in ranks
    ]  # fmt: skip
    said = [machine.communicate(timeout=240) for machine in machines]
    return [(machine.returncode, *each) for machine, each in zip(machines, said, strict=True)]


@pytest.mark.slow
@pytest.mark.timeout(280)
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_machines_learn_what_one_does(tmp_path: Path, strategy: str) -> None:
    asked = config(tmp_path / "two", hardware={"nodes": 2, "strategy": strategy})
    second, first = started(asked, tmp_path, [1, 0])
    assert (first[0], second[0]) == (0, 0), first[2] + second[2]
    assert first[1] == second[1]  # both know the result
    alone = train(config(tmp_path / "one"))
    assert float(first[1]) == pytest.approx(alone.test, rel=1e-3)
    theirs, mine = (load_file(tmp_path / name / "run" / "model.safetensors") for name in ("two", "one"))
    for name in mine:
        if "key_value.bias" not in name:  # which moves all scores of a query alike, so that it is rounding error
            assert theirs[name].numpy() == pytest.approx(mine[name].numpy(), rel=1e-3, abs=1e-4), name
    assert list((tmp_path / "two" / "encodings").glob("undirected-distance-*/index.json"))  # one store for both

    (again,) = started(asked, tmp_path, [1])  # a finished run is not trained again, and waits for nobody
    assert (*again[:2], "this run is finished" in again[2]) == (0, first[1], True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {},
            "training.hardware.nodes is 2, and MASTER_ADDR is not set; start one process on each machine, with",
        ),
        ({"MASTER_ADDR": "a"}, "MASTER_PORT is not set"),
        ({"MASTER_ADDR": "a", "MASTER_PORT": "1"}, "NODE_RANK is not set"),
        ({"MASTER_ADDR": "a", "MASTER_PORT": "1", "SLURM_NODEID": "2"}, "SLURM_NODEID is '2'; .*from 0 to 1 in NODE"),
        ({"MASTER_ADDR": "a", "MASTER_PORT": "1", "NODE_RANK": "x"}, "NODE_RANK is 'x'"),
    ],
)
def test_who_does_not_say_which_machine_it_is(
    given: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "GROUP_RANK", "SLURM_NODEID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=message):
        train(config(tmp_path, hardware={"nodes": 2}))
    assert not (tmp_path / "run").exists()
    assert number(HardwareConfig()) == 0


def test_the_number_of_a_machine_comes_from_whoever_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    two = HardwareConfig(nodes=2, devices=3, strategy="fsdp")
    with recorded():  # of a run that an earlier structpe began
        alone = HardwareConfig(strategy="fsdp")
    assert (two.processes, two.shards, alone.shards) == (6, True, False)
    for name, value in (("MASTER_ADDR", "a"), ("MASTER_PORT", "1"), ("SLURM_NODEID", "1")):
        monkeypatch.setenv(name, value)
    assert number(two) == 1
    monkeypatch.setenv("NODE_RANK", "0")
    assert number(two) == 0


def test_a_study_trains_on_one_machine(tmp_path: Path) -> None:
    asked = study(tmp_path, training={"hardware": {"nodes": 2}})
    with pytest.raises(ConfigError, match=r"training.hardware.nodes is 2; studies train on one machine"):
        run_all(asked, asked.keys())

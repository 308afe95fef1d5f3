"""What is measured of a training: whole steps, this process, all processes that worked on it."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from structpe.tasks.training import reporting as reporting_module
from structpe.tasks.training.reporting import Cost, peak_memory


class Clock:
    """Time that passes when it is told to."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        patch.setattr(reporting_module.time, "perf_counter", lambda: self.now)


def trained(measured: Cost, clock: Clock, seconds: list[float], accumulate: int = 1) -> None:
    """Batches that take so long, with a pause between two."""
    trainer: Any = SimpleNamespace(global_step=0, accumulate_grad_batches=accumulate)
    module: Any = SimpleNamespace(device=torch.device("cpu"))
    measured.on_train_start(trainer, module)
    for number, taken in enumerate(seconds):
        clock.now += 100  # a batch is made, a validation is done
        measured.on_train_batch_start(trainer, module, None, number)
        clock.now += taken
        trainer.global_step += (number + 1) % accumulate == 0
        measured.on_train_batch_end(trainer, module, None, None, number)


def test_the_median_step_after_the_first_few(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Cost()
    trained(measured, Clock(monkeypatch), [50.0] * 5 + [1.0, 2.0, 9.0])
    assert measured.state_dict()["step_seconds"] == pytest.approx(2.0)


def test_a_step_of_several_batches_is_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Cost()
    trained(measured, Clock(monkeypatch), [50.0] * 10 + [1.0, 3.0], accumulate=2)
    assert measured.state_dict()["step_seconds"] == pytest.approx(4.0)


def test_a_process_that_ends_soon_does_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Cost()
    measured.load_state_dict({"step_seconds": 0.5, "seconds": 60.0, "cpu_seconds": 90.0, "peak_bytes": 1 << 50})
    trained(measured, Clock(monkeypatch), [50.0] * 3)
    state = measured.state_dict()
    assert (state["step_seconds"], state["peak_bytes"]) == (0.5, 1 << 50)
    assert state["seconds"] == pytest.approx(60.0, abs=30.0)


def test_time_of_the_cpu_is_added_up_over_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    measured, used = Cost(), 1000.0
    monkeypatch.setattr(reporting_module.time, "process_time", lambda: used)
    measured.load_state_dict({"step_seconds": 0.5, "seconds": 60.0, "cpu_seconds": 90.0, "peak_bytes": 0})
    trained(measured, Clock(monkeypatch), [1.0])
    used += 7.0
    assert measured.state_dict()["cpu_seconds"] == pytest.approx(97.0)


def test_the_memory_of_a_process_is_its_own() -> None:
    """Also where the process that started it had more."""
    held = np.ones(50_000_000)  # 400 MB
    code = "import re; print(re.findall(r'VmHWM:\\s*(\\d+) kB', open('/proc/self/status').read())[0])"
    if not reporting_module.PROCESS.exists():
        pytest.skip("only Linux says so")
    alone = 1024 * int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert alone < held.nbytes < peak_memory()

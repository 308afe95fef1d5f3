"""Threads that wait sleep, ``OMP_NUM_THREADS`` is heeded, and a machine that is too busy is told of."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection
from typing import Any

import pytest

from structpe.cli.main import main
from structpe.errors import ConfigError
from structpe.system import processes
from structpe.tasks.prediction.run_all import ProcessPool, run_all
from structpe.tasks.prediction.study import Key, StudyConfig

NAMES = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("said", "number"), [("", None), ("3", 3), (" 2 ", 2), ("4,2,1", 4)])
def test_the_environment_is_heeded(said: str, number: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert processes.requested() == number


@pytest.mark.parametrize("said", ["0", "-1", "many", "1.5", "²", ",2"])
def test_no_number_of_threads_is_refused(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    with pytest.raises(ConfigError, match=r"OMP_NUM_THREADS is .*; set it to 1 or more, or unset it"):
        processes.requested()


def test_every_command_lets_waiting_threads_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["cite", "t5"]) == 0
    assert [os.environ.get(name) for name in NAMES] == [None, "PASSIVE", "0"]
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    assert main(["cite", "t5"]) == 0
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"


def tell_environment(tell: Connection) -> None:
    """For a process of its own."""
    tell.send(("done", " ".join(str(os.environ.get(name)) for name in NAMES)))


@pytest.mark.slow
def test_a_process_of_a_study_has_it_before_it_loads_anything() -> None:
    told: list[Any] = []
    key = Key("data", "model", "position", 0)
    with ProcessPool(1, told.append, lambda running: None) as pool, processes.waiting(3):
        pool.start(key, tell_environment, ())
        pool.wait_for_all()
    assert told[0].message == "3 PASSIVE 0"
    assert [os.environ.get(name) for name in NAMES] == [None] * 3


@pytest.mark.parametrize(("said", "given", "each"), [(None, None, 1), ("2", None, 2), ("2", 3, 3)])
def test_a_study_takes_one_thread_for_each_run_by_default(
    said: str | None, given: int | None, each: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if said is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    study = StudyConfig(data={"a": {}}, models={"b": {}})
    run_all(study, [], jobs=2, threads=given)
    assert f"0 runs, 0 of them finished; 2 at a time, {each} threads each" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("load", "wanted", "told"),
    [
        (1.9, 2, ""),
        (2.0, 1, ""),
        (2.1, 1, "the machine is busy, its load is 2.1 on 2 cores: steps take longer, and times say little"),
        (0.0, 3, "3 threads share 2 cores: take fewer jobs or threads, or steps take longer"),
    ],
)
def test_a_busy_machine_is_told_of(load: float, wanted: int, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "cores", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    assert processes.busy(wanted) == told


def test_cores_are_those_that_this_process_may_use() -> None:
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(mine)})
    try:
        assert processes.cores() == 1
    finally:
        os.sched_setaffinity(0, mine)

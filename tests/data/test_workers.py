"""Several processes encode, and the store is the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from structpe.data import chunks
from structpe.data.forecast import Forecast, forecast
from structpe.data.store import write
from structpe.encodings import Depth, Distance, Encoding, Order, RandomWalk
from structpe.errors import ConfigError, EncodingError
from structpe.structure import Structure, path
from structpe.system.workers import Workers, in_order, workers
from tests.modules import ROOT

PATHS = [path(["x"] * (1 + i % 7), name=f"s:{i}") for i in range(50)]
ENCODED_BY: tuple[Encoding, ...] = (Distance(), Order(), RandomWalk(steps=3))


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def squared(number: int) -> int:
    return number * number


def killed(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_two_processes_write_the_same_bytes_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "STRUCTURES", 8)
    write(tmp_path / "one", PATHS, ENCODED_BY)
    done: list[int] = []
    with workers(2) as executor:
        write(tmp_path / "two", PATHS, ENCODED_BY, done.append, executor=executor)
        assert list(in_order(squared, ((i,) for i in range(40)), executor, ahead=3)) == [i * i for i in range(40)]
        rootless = [*PATHS[:20], Structure(("a",), []), *PATHS]
        with pytest.raises(EncodingError, match="encoding 'depth': the structure has no root"):
            write(tmp_path / "three", rootless, [Depth()], executor=executor)
    assert done == [8, 16, 24, 32, 40, 48, 50]
    assert bytes_of(tmp_path / "two") == bytes_of(tmp_path / "one")
    assert not (tmp_path / "three").exists()


def test_processes_that_encode_load_no_pytorch() -> None:
    """It takes two seconds, in each of them."""
    told = (
        "import sys, structpe.data.store, structpe.formats.smiles; from structpe.encodings import Laplacian, Distance, "
    )
    told += "RandomWalk, LabelPath, SPRRelative; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", told], cwd=ROOT, check=False).returncode == 0


def test_a_killed_process_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match="a worker process was killed, perhaps because memory was short; complete"),
        workers(2) as executor,
    ):
        list(in_order(killed, ((i,) for i in range(8)), executor))


def test_tasks_are_read_as_results_come() -> None:
    read: list[int] = []

    def tasks() -> Iterator[tuple[int]]:
        for i in range(100):
            read.append(i)
            yield (i,)

    with ThreadPoolExecutor(2) as executor:
        results = in_order(squared, tasks(), executor, ahead=5)
        assert [next(results) for _ in range(3)] == [0, 1, 4]
        assert len(read) == 7  # two more than were given out before the first came


@pytest.mark.parametrize(("count", "ahead"), [(2, 16), (40, 80)])
def test_every_worker_has_a_task_and_the_next(count: int, ahead: int) -> None:
    read: list[int] = []
    with ThreadPoolExecutor(2) as executor:
        results = in_order(squared, ((i,) for i in range(1000) if read.append(i) is None), Workers(executor, count))
        assert next(results) == 0
    assert len(read) == ahead


@pytest.mark.parametrize("jobs", [0, -2])
def test_jobs_are_one_or_more(jobs: int) -> None:
    with pytest.raises(ConfigError, match=f"jobs is {jobs}; give 1 or more processes"), workers(jobs):
        pass


def test_the_forecast_of_bytes_is_what_is_written(tmp_path: Path) -> None:
    many = PATHS * 20
    store = write(tmp_path / "store", many, ENCODED_BY)
    written = sum(file.stat().st_size for file in tmp_path.glob("store/*.safetensors"))
    assert 0.5 < forecast(many, ENCODED_BY).size / written < 2
    assert len(store) == 1000


@pytest.mark.parametrize(
    ("seconds", "size", "jobs", "text"),
    [
        (3, 100, 1, "about 3 s and 100 bytes"),
        (600, 5 << 20, 2, "about 5 min and 5 MiB"),
        (36000, 3 << 29, 1, "about 10.0 h and 1.5 GiB"),
    ],
)
def test_a_forecast_is_read_by_people(seconds: float, size: int, jobs: int, text: str) -> None:
    assert Forecast(seconds, size).text(jobs) == text


@pytest.mark.slow
def test_a_cluster_writes_the_same_and_loses_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    monkeypatch.setattr(chunks, "STRUCTURES", 1)
    write(tmp_path / "one", PATHS, ENCODED_BY)
    patient = {f"distributed.comm.timeouts.{what}": "200s" for what in ("connect", "tcp")}  # on a busy machine
    with (
        dask.config.set(patient),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
    ):
        first = next(iter(cluster.workers.values()))

        def progress(done: int) -> None:
            if done == 5:
                os.kill(first.pid, signal.SIGKILL)

        with workers(scheduler=cluster.scheduler_address) as executor:
            write(tmp_path / "two", PATHS, ENCODED_BY, progress, executor=executor)
    assert bytes_of(tmp_path / "two") == bytes_of(tmp_path / "one")

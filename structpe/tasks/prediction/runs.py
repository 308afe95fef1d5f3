"""The runs of a study, several at a time, each in a process of its own: one that fails leaves the others alone."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

from structpe.errors import StructPEError
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.study import Key, StudyConfig
from structpe.tasks.prediction.train import Outcome, check, train
from structpe.tasks.training.progress import say

__all__ = ["Failed", "run_all"]

LOG = "log.txt"
ERROR = "error.txt"


@dataclass(frozen=True)
class Failed:
    """A run that ended in an error, and its text."""

    key: Key
    message: str


def run_all(
    study: StudyConfig, keys: Sequence[Key], jobs: int = 1, threads: int | None = None, fresh: bool = False
) -> list[Failed]:
    """Train whatever of these runs is not finished.

    Each run is in a process of its own, so that the memory measured is its own. What it says goes to ``log.txt`` in its
    folder. Another process may work on the same study meanwhile: runs that it trains are passed over.

    Args:
        study: what is compared.
        keys: the runs, in order.
        jobs: how many at a time.
        threads: of each; by default the cores of the machine shared among the jobs.
        fresh: train again what is finished.

    Raises:
        ConfigError, PositionError: a run's configuration makes no sense; none is started then.
    """
    configs = {key: study.run(key) for key in keys}
    for config in configs.values():
        check(config)
    threads = threads or max(1, (os.cpu_count() or 1) // jobs)
    left = [key for key in keys if fresh or Outcome.load(study.folder(key)) is None]
    say(f"{len(keys)} runs, {len(keys) - len(left)} of them finished; {jobs} at a time, {threads} threads each")
    failed: list[Failed] = []
    with _Crew(jobs) as crew:
        for done, key in enumerate(left):
            crew.wait_for_room()
            say(f"[{done + 1}/{len(left)}] {key}")
            crew.start(key, study.folder(key), (configs[key], fresh, threads, Path(study.out) / "encodings"))
            failed += crew.failed()
        crew.wait_for_all()
        failed += crew.failed()
    return failed


class _Crew:
    """Processes that train."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._running: dict[Key, tuple[BaseProcess, Path]] = {}
        self._failed: list[Failed] = []

    def __enter__(self) -> _Crew:
        return self

    def __exit__(self, *error: object) -> None:
        for process, _ in self._running.values():
            process.terminate()
            process.join()

    def start(self, key: Key, folder: Path, given: tuple[PredictionConfig, bool, int, Path]) -> None:
        process = get_context("spawn").Process(target=_run, args=(folder, *given))
        process.start()
        self._running[key] = process, folder

    def failed(self) -> list[Failed]:
        """Those that have failed since the last call."""
        failed, self._failed = self._failed, []
        return failed

    def wait_for_room(self) -> None:
        self._wait(lambda: len(self._running) < self.jobs)

    def wait_for_all(self) -> None:
        self._wait(lambda: not self._running)

    def _wait(self, enough: Callable[[], bool]) -> None:
        self._collect()
        while not enough():
            time.sleep(0.1)
            self._collect()

    def _collect(self) -> None:
        for key, (process, folder) in list(self._running.items()):
            if process.is_alive():
                continue
            process.join()
            del self._running[key]
            outcome = Outcome.load(folder) if process.exitcode == 0 else None
            if outcome is not None:
                say(f"{key}: {outcome}")
            else:
                self._failed.append(Failed(key, _reason(folder, process.exitcode)))
                say(f"{key}: failed: {self._failed[-1].message}")


def _reason(folder: Path, code: int | None) -> str:
    if (folder / ERROR).exists():
        return (folder / ERROR).read_text(encoding="utf-8").strip()
    return f"its process ended with code {code}; a negative one is the signal that killed it, -9 often want of memory"


def _run(folder: Path, config: PredictionConfig, fresh: bool, threads: int, encodings: Path) -> None:
    torch.set_num_threads(threads)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ERROR).unlink(missing_ok=True)
    with _into(folder / LOG):
        try:
            train(config, fresh, encodings)
        except StructPEError as error:
            (folder / ERROR).write_text(f"{error}\n", encoding="utf-8")
            sys.exit(1)


@contextlib.contextmanager
def _into(log: Path) -> Iterator[None]:
    """What is printed goes to a file; of what libraries print too."""
    with log.open("a", encoding="utf-8", buffering=1) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        yield

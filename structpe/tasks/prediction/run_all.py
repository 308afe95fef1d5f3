"""The runs of a study, several at a time, each in its own process, so that a failure does not affect the others."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from structpe.errors import ConfigError, StructPEError, explained
from structpe.system.printing import escaping, on_terminal, printable, say
from structpe.system.processes import busy, ending, requested, waiting
from structpe.system.workers import ends_with_its_parent
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.report import Outcome, claim
from structpe.tasks.prediction.study import Key, StudyConfig, by_row
from structpe.tasks.runs.prediction import PredictionRun, readable
from structpe.tasks.training.folder import InUse, check_free, learned
from structpe.tasks.training.folder import claim as claim_folder

__all__ = [
    "LOG",
    "Failed",
    "ProcessPool",
    "RunEnd",
    "leads_its_group",
    "reporting",
    "run_all",
    "steps_done",
    "study_progress",
    "unchanged",
]


TAIL = 400
"""Bytes at the end of a log in which the last line surely begins."""


@contextmanager
def study_progress(configs: Mapping[Key, PredictionConfig]) -> Iterator[Callable[[list[Key]], None]]:
    """A progress bar for each run: a function that takes the runs in progress; it does nothing without a terminal."""
    if not on_terminal():
        yield lambda running: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        shown: dict[Key, TaskID] = {}

        def look(running: list[Key]) -> None:
            for key in set(shown) - set(running):
                progress.remove_task(shown.pop(key))
            for key in running:
                if key not in shown:
                    shown[key] = progress.add_task(printable(str(key)), total=configs[key].training.steps)
                progress.update(shown[key], completed=steps_done(Path(configs[key].out)))

        yield look


def steps_done(folder: Path) -> int:
    """Steps that the log of a run tells of; 0 before its first line."""
    try:
        with (folder / "metrics.csv").open("rb") as file:
            file.seek(-min(TAIL, file.seek(0, os.SEEK_END)), os.SEEK_END)
            lines = file.read().decode("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return 0
    step = lines[-1].partition(",")[0] if lines else ""
    return int(step) if step.isdigit() else 0


LOG = "log.txt"
"""The file, in the folder of a run, that holds what its process says."""
TICK = 0.5
"""Seconds between two looks at how far runs are."""
GRACE = 20
"""Seconds that trainings have for their last step and its checkpoint when they are asked to end."""


@dataclass(frozen=True)
class RunEnd:
    """How a process ended.

    Attributes:
        key: which run it was.
        kind: ``done``, ``busy`` where another process trains that run, or ``failed``.
        message: of the error.
    """

    key: Key
    kind: str
    message: str = ""


class ProcessPool:
    """Starts processes, and tells how they end; leaving it asks those that still run to end, and soon ends them.

    A training that is asked ends with a checkpoint. Little is lost where it has no time for that: what it leaves on
    disk is whole at any moment.

    Args:
        jobs: how many processes at a time.
        ended: called for each process that has ended.
        look: called regularly with the runs in progress.
    """

    def __init__(self, jobs: int, ended: Callable[[RunEnd], None], look: Callable[[list[Key]], None]) -> None:
        self.jobs, self.ended, self.look = jobs, ended, look
        self._running: dict[Key, tuple[BaseProcess, Connection]] = {}

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *error: object) -> None:
        if self._running:
            say(f"{len(self._running)} runs are interrupted; the same command goes on with them")
        running = [process for process, _ in self._running.values()]
        try:
            for process in running:
                process.terminate()  # not the processes that it has started: it still needs these
            end = time.monotonic() + GRACE
            while (alive := [p.sentinel for p in running if p.is_alive()]) and time.monotonic() < end:
                wait(alive, TICK)
        finally:  # also at a second signal
            for process in running:
                _kill(process)

    def start(self, key: Key, target: Callable[..., None], given: tuple[Any, ...]) -> None:
        """Start ``target(*given, connection)`` in a process; see :func:`reporting`."""
        receive, send = get_context("spawn").Pipe(duplex=False)
        process = get_context("spawn").Process(target=target, args=(*given, send))
        with _uninterrupted():
            process.start()
        send.close()
        self._running[key] = process, receive

    def wait_for_room(self) -> None:
        """Until another process may start."""
        self._wait(self.jobs - 1)

    def wait_for_all(self) -> None:
        """Until all have ended."""
        self._wait(0)

    def _wait(self, most: int) -> None:
        while len(self._running) > most:
            wait([process.sentinel for process, _ in self._running.values()], TICK)
            for key, (process, receive) in list(self._running.items()):
                if not process.is_alive():
                    _kill(process)  # what a killed one may have left behind
                    del self._running[key]
                    self.ended(_ended(key, process.exitcode, receive))
            self.look(list(self._running))


def _ended(key: Key, code: int | None, receive: Connection) -> RunEnd:
    with contextlib.suppress(EOFError, OSError), receive:
        return RunEnd(key, *receive.recv())
    why = f"its process ended with code {code}"
    if code is not None and code < 0:
        why = f"its process was killed by signal {-code}" + (", often for want of memory" if code == -9 else "")
    return RunEnd(key, "failed", f"{why}; start the same command again to go on")


def _kill(process: BaseProcess) -> None:
    """End a process and its children; it leads its own process group."""
    assert process.pid is not None, "it was started"
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()  # where it does not lead one yet
    process.join()


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """A process started meanwhile does not hear Ctrl-C: who started it does, and ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def leads_its_group() -> None:
    """Let this process, and all that it will start, end when the one that started it does, however that ends."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # its child processes may use this signal to end it
    ends_with_its_parent(lambda: os.killpg(0, signal.SIGKILL))


@contextlib.contextmanager
def reporting(folder: Path, tell: Connection) -> Iterator[None]:
    """Write what is printed into the log of a folder; the outcome is sent to the :class:`ProcessPool`.

    Args:
        folder: of the run; it is made.
        tell: where the crew listens.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LOG).open("a", encoding="utf-8", buffering=1) as file:
            os.dup2(file.fileno(), 1)  # of what libraries print too
            os.dup2(file.fileno(), 2)
            with escaping(everything=True):
                yield
        tell.send(("done", ""))
    except InUse as error:
        tell.send(("busy", str(error)))
    except Exception as error:
        text = explained(error, f"{folder / LOG} says where it arose")
        tell.send(("failed", text))
        if isinstance(error, StructPEError):
            say(text)
        else:
            say(traceback.format_exc())
        sys.exit(1)


@dataclass(frozen=True)
class Failed:
    """A run that ended in an error, and its text."""

    key: Key
    message: str


def run_all(
    study: StudyConfig, keys: Sequence[Key], jobs: int = 1, threads: int | None = None, fresh: bool = False
) -> list[Failed]:
    """Train the runs that are not finished.

    Each run has its own process, so that its memory can be measured. What it says goes to ``log.txt`` in its
    folder. Another process may work on the same study meanwhile: runs that it trains are passed over. When this process
    ends, however it does, so do those that it has started; the same call goes on with their runs.

    Args:
        study: what is compared.
        keys: the runs, in order.
        jobs: how many at a time, and how many processes encode graphs.
        threads: of each; by default what the environment variable ``OMP_NUM_THREADS`` says, or one.
        fresh: train again what is finished.

    Raises:
        ConfigError, PositionError: a run's configuration makes no sense, or its folder, or that of the study, holds a
            run of another one or files that would be replaced; none is started then.
        ReadError: data of one of several sets are missing or damaged; none is started then.
    """
    configs = {key: study.run(key) for key in keys} if fresh else unchanged(study, keys)
    if wide := [key for key, config in configs.items() if config.training.nodes > 1]:
        raise ConfigError(
            f"{wide[0]}: training.nodes is {configs[wide[0]].training.nodes}; studies train on one machine"
        )
    for seeds in by_row(keys).values():
        PredictionRun(configs[seeds[0]]).check()
    threads = threads or requested() or 1
    left = [key for key in keys if fresh or not PredictionRun(configs[key]).finished()]
    for key in left:
        _check_free(PredictionRun(configs[key]))
    if len({key.data for key in left}) > 1:  # the first run of one set tells at once
        readable([configs[key] for key in left])
    claim(study, keys)
    say(f"{len(keys)} runs, {len(keys) - len(left)} of them finished; {jobs} at a time, {threads} threads each")
    if warning := busy(jobs * threads):
        say(warning)
    report = _Report(study, len(left), jobs)
    with ending(), study_progress(configs) as look, ProcessPool(jobs, report.ended, look) as crew:
        for number, key in enumerate(left, 1):
            crew.wait_for_room()
            if not fresh and PredictionRun(configs[key]).finished():
                report.ended(RunEnd(key, "elsewhere"))
                continue
            say(f"[{number}/{len(left)}] {key}")
            run = PredictionRun(configs[key])
            claim_folder(run.folder, run.writes(), run.owned())  # before the log is begun
            with waiting(threads):
                config = _encoded_by(configs[key], jobs)
                crew.start(key, _run, (study.folder(key), config, fresh, threads, Path(study.out) / "encodings"))
        crew.wait_for_all()
    return report.failed


def unchanged(study: StudyConfig, keys: Sequence[Key]) -> Mapping[Key, PredictionConfig]:
    """The configurations of these runs, of which each is that of the run in its folder, if there is one.

    Raises:
        ConfigError: a key is unknown, a value of another type, or a folder holds a run of another configuration.
    """
    configs = {key: study.run(key) for key in keys}
    for key, config in configs.items():
        if learned(study.folder(key)):
            PredictionRun(config).same()
    return configs


def _encoded_by(config: PredictionConfig, jobs: int) -> PredictionConfig:
    """The same run, whose graphs are encoded by as many processes as the study has, or by more if it says so."""
    return replace(config, training=replace(config.training, jobs=max(jobs, config.training.jobs)))


def _check_free(run: PredictionRun) -> None:
    """The log comes into the folder of a run before anything else; in one that runs have written, it is theirs."""
    owned = run.owned()
    check_free(run.folder, (*run.writes(), LOG), (*owned, LOG) if owned else ())


class _Report:
    """Messages about runs that end, and the list of failed ones."""

    def __init__(self, study: StudyConfig, count: int, jobs: int) -> None:
        self.study, self.left, self.jobs = study, count, jobs
        self.failed: list[Failed] = []
        self._began, self._trained = time.monotonic(), 0

    def ended(self, run: RunEnd) -> None:
        """One has ended."""
        self.left -= 1
        if run.kind == "busy":
            say(f"{run.key}: passed over, another process trains it")
        elif run.kind == "elsewhere":
            say(f"{run.key}: passed over, another process has finished it")
        elif run.kind == "done":
            self._trained += 1
            say(f"{run.key}: {Outcome.load(self.study.folder(run.key))}{self._rest()}")
        else:
            self.failed.append(Failed(run.key, run.message))
            say(f"{run.key}: failed: {run.message}")

    def _rest(self) -> str:
        """How long it may take to the end, if the runs that are left take as long as those before."""
        if not self.left:
            return ""
        minutes = (time.monotonic() - self._began) / 60 / self._trained * self.left
        return f"; {self.left} runs left, about {max(1, round(minutes))} min"


def _run(folder: Path, config: PredictionConfig, fresh: bool, threads: int, encodings: Path, tell: Connection) -> None:
    leads_its_group()
    with reporting(folder, tell), ending():
        torch.set_num_threads(threads)
        PredictionRun(config, encodings=encodings).train(fresh)

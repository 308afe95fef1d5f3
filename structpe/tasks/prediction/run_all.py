"""The runs of a study, several at a time, each in its own process: a failure does not affect the others."""

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

from structpe.errors import ConfigError, PositionError, StructPEError, explained, listed
from structpe.registry import own_code
from structpe.system.printing import escaping, on_terminal, say
from structpe.system.processes import busy, ending, requested, waiting
from structpe.system.progress import ProgressBars, duration
from structpe.system.workers import ends_with_its_parent
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.report import Outcome, claim
from structpe.tasks.prediction.study import Key, StudyConfig, by_row
from structpe.tasks.runs.prediction import PredictionRun, failures
from structpe.tasks.training.folder import InUse, check_free, learned
from structpe.tasks.training.folder import claim as claim_folder

__all__ = ["LOG", "ProcessPool", "RunEnd", "leads_its_group", "matching_configs", "run_all"]


TAIL = 400
"""Number of bytes at the end of a log that surely contain its last line."""


@contextmanager
def _study_progress(configs: Mapping[Key, PredictionConfig]) -> Iterator[Callable[[list[Key]], None]]:
    """A progress bar for each run, as a function of the runs in progress; without a terminal it does nothing."""
    if not on_terminal():
        yield lambda running: None
        return
    with ProgressBars() as bars:

        def show(running: list[Key]) -> None:
            for name in bars.names - set(map(str, running)):
                bars.remove(name)
            for key in running:
                bars.show(str(key), _steps_done(Path(configs[key].out)), configs[key].training.steps)

        yield show


def _steps_done(folder: Path) -> int:
    """The step of the last line in the log of a run; 0 before its first line."""
    try:
        with (folder / "metrics.csv").open("rb") as file:
            file.seek(-min(TAIL, file.seek(0, os.SEEK_END)), os.SEEK_END)
            lines = file.read().decode("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return 0
    step = lines[-1].partition(",")[0] if lines else ""
    return int(step) if step.isdigit() else 0


LOG = "log.txt"
"""The file with the output of the process of a run, in its folder."""
TICK = 0.5
"""Seconds between two updates of the progress."""
GRACE = 20
"""Seconds for the last step of a training and its checkpoint, before its process is killed."""


@dataclass(frozen=True)
class RunEnd:
    """The end of a run.

    Attributes:
        key: the run.
        kind: ``done``; ``failed``; ``busy`` if another process trains it; or ``elsewhere`` if another has finished it.
        message: the text of the error.
    """

    key: Key
    kind: str
    message: str = ""


class ProcessPool:
    """Run up to ``jobs`` processes; on exit, terminate those still running, and kill them after a while.

    A training that is terminated writes a checkpoint first. If it is killed, its files are still consistent.

    Args:
        jobs: the largest number of processes at a time.
        ended: called for each run that has ended.
        progress: called regularly with the runs in progress.
    """

    def __init__(self, jobs: int, ended: Callable[[RunEnd], None], progress: Callable[[list[Key]], None]) -> None:
        self.jobs, self.ended, self.progress = jobs, ended, progress
        self._running: dict[Key, tuple[BaseProcess, Connection]] = {}

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *error: object) -> None:
        if self._running:
            say(f"{len(self._running)} runs are interrupted; the same command goes on with them")
        running = [process for process, _ in self._running.values()]
        try:
            for process in running:
                process.terminate()  # but not its child processes, which it still needs
            end = time.monotonic() + GRACE
            while (alive := [p.sentinel for p in running if p.is_alive()]) and time.monotonic() < end:
                wait(alive, TICK)
        finally:  # also at a second signal
            for process in running:
                _kill(process)

    def start(self, key: Key, target: Callable[..., None], given: tuple[Any, ...]) -> None:
        """Start ``target(*given, connection)`` in a process; see :func:`_logged`."""
        receive, send = get_context("spawn").Pipe(duplex=False)
        process = get_context("spawn").Process(target=target, args=(*given, send))
        with _uninterrupted():
            process.start()
        send.close()
        self._running[key] = process, receive

    def wait_for_room(self) -> None:
        """Wait until another process may start."""
        self._wait(self.jobs - 1)

    def wait_for_all(self) -> None:
        """Wait until all processes have ended."""
        self._wait(0)

    def _wait(self, most: int) -> None:
        while len(self._running) > most:
            wait([process.sentinel for process, _ in self._running.values()], TICK)
            for key, (process, receive) in list(self._running.items()):
                if not process.is_alive():
                    _kill(process)  # its children, if it was killed
                    del self._running[key]
                    self.ended(_ended(key, process.exitcode, receive))
            self.progress(list(self._running))


def _ended(key: Key, code: int | None, receive: Connection) -> RunEnd:
    with contextlib.suppress(EOFError, OSError), receive:
        return RunEnd(key, *receive.recv())
    why = f"its process ended with code {code}"
    if code is not None and code < 0:
        why = f"its process was killed by signal {-code}" + (", often for want of memory" if code == -9 else "")
    return RunEnd(key, "failed", f"{why}; start the same command again to go on")


def _kill(process: BaseProcess) -> None:
    """Kill a process and its children, which are in its process group."""
    assert process.pid is not None, "it was started"
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()  # if it has no process group yet
    process.join()


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """A context in which started processes ignore Ctrl-C; this process ends them instead."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def leads_its_group() -> None:
    """End this process and all its children when the parent process ends, however it ends."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # child processes may end this one by this signal
    ends_with_its_parent(lambda: os.killpg(0, signal.SIGKILL))


@contextlib.contextmanager
def _logged(folder: Path, tell: Connection) -> Iterator[None]:
    """Redirect output into the log of a folder, and send the end of the run to the :class:`ProcessPool`.

    Args:
        folder: the folder of the run, which is made.
        tell: the connection to the pool.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LOG).open("a", encoding="utf-8", buffering=1) as file:
            os.dup2(file.fileno(), 1)  # also the output of libraries in C
            os.dup2(file.fileno(), 2)
            with escaping(everything=True):
                yield
        tell.send(("done", ""))
    except InUse as error:
        tell.send(("busy", str(error)))
    except Exception as error:
        text = explained(error, f"{folder / LOG} has the traceback", own_code(error))
        tell.send(("failed", text))
        if isinstance(error, StructPEError):
            say(text)
        else:
            say(traceback.format_exc())
        sys.exit(1)


def run_all(
    study: StudyConfig, keys: Sequence[Key], jobs: int = 1, threads: int | None = None, fresh: bool = False
) -> list[RunEnd]:
    """Train the runs that are not finished.

    Each run has its own process, whose memory is measured, and writes its output to ``log.txt`` in its folder. Runs
    that another process trains at the same time are skipped. When this process ends, however it ends, its child
    processes end too; the same call then resumes their runs.

    Args:
        study: the study.
        keys: the runs, in order.
        jobs: number of runs at a time, and of processes that encode graphs.
        threads: threads per run; by default the environment variable ``OMP_NUM_THREADS``, or one.
        fresh: whether to repeat finished runs.

    Returns:
        The runs that failed.

    Raises:
        ConfigError: a folder holds a run of another configuration, or files that would be replaced; no run is started.
        StructPEError: the configuration of a row is invalid, or its data are missing, damaged, or do not suit it; no
            run is started. The error names every such row.
    """
    configs = {key: study.run(key) for key in keys} if fresh else matching_configs(study, keys)
    if wide := [key for key, config in configs.items() if config.training.hardware.nodes > 1]:
        nodes = configs[wide[0]].training.hardware.nodes
        raise ConfigError(f"{wide[0]}: training.hardware.nodes is {nodes}; studies train on one machine")
    rows = {"/".join(row): [configs[key] for key in seeds] for row, seeds in by_row(keys).items()}
    _refuse(_invalid(rows), len(rows))
    threads = threads or requested() or 1
    left = [key for key in keys if fresh or not PredictionRun(configs[key]).finished()]
    for key in left:
        _check_free(PredictionRun(configs[key]))
    asked = {"/".join(row): [configs[key] for key in seeds] for row, seeds in by_row(left).items()}
    claim(study, keys)
    with waiting(threads):
        _refuse(failures(asked, Path(study.out) / "encodings", jobs), len(rows))
    say(f"{len(keys)} runs, {len(keys) - len(left)} of them finished; {jobs} at a time, {threads} threads each")
    if warning := busy(jobs * threads):
        say(warning)
    report = _Report(study, len(left), jobs)
    with ending(), _study_progress(configs) as progress, ProcessPool(jobs, report.ended, progress) as pool:
        for number, key in enumerate(left, 1):
            pool.wait_for_room()
            if not fresh and PredictionRun(configs[key]).finished():
                report.ended(RunEnd(key, "elsewhere"))
                continue
            say(f"[{number}/{len(left)}] {key}")
            run = PredictionRun(configs[key])
            claim_folder(run.folder, run.writes(), run.owned())  # before the log is written
            with waiting(threads):
                training, hardware = configs[key].training, configs[key].training.hardware
                hardware = replace(hardware, jobs=max(jobs, hardware.jobs))
                config = replace(configs[key], training=replace(training, hardware=hardware))
                pool.start(key, _run, (study.folder(key), config, fresh, threads, Path(study.out) / "encodings"))
        pool.wait_for_all()
    return report.failed


def _invalid(rows: Mapping[str, Sequence[PredictionConfig]]) -> dict[str, StructPEError]:
    """The rows whose configurations are invalid, and why."""
    wrong: dict[str, StructPEError] = {}
    for row, (first, *_) in rows.items():
        try:
            PredictionRun(first).check()
        except StructPEError as error:
            wrong[row] = error
    return wrong


def _refuse(wrong: Mapping[str, StructPEError], count: int) -> None:
    """Raise one error that names all rows that cannot run, with the reason of each.

    Args:
        wrong: the errors by row.
        count: number of all rows.
    """
    if not wrong:
        return
    (row, first), *others = wrong.items()
    if not others:
        raise first if first.places and first.places[0].startswith(row) else first.at(row)
    causes: dict[str, list[str]] = {}
    for row, error in wrong.items():
        inner = error.places[1:] if error.places and error.places[0].startswith(row) else error.places
        causes.setdefault(": ".join((*inner, error.message)), []).append(row)
    told = "; ".join(f"{listed(rows)}: {cause}" for cause, rows in causes.items())
    mistakes = all(isinstance(error, (ConfigError, PositionError)) for error in wrong.values())
    raise (ConfigError if mistakes else StructPEError)(
        f"{len(wrong)} of {count} rows cannot run, so nothing is trained: {told}. Correct these rows, or choose others "
        f"(only)"
    )


def matching_configs(study: StudyConfig, keys: Sequence[Key]) -> Mapping[Key, PredictionConfig]:
    """The configurations of runs, after checking that each matches the run in its folder, if there is one.

    Raises:
        ConfigError: a key is unknown, a value has the wrong type, or a folder holds a run of another configuration.
    """
    configs = {key: study.run(key) for key in keys}
    for key, config in configs.items():
        if learned(study.folder(key)):
            PredictionRun(config).check_same()
    return configs


def _check_free(run: PredictionRun) -> None:
    """Check the folder of a run, including its log; in a folder that a run has written, the log is that of the run."""
    owned = run.owned()
    check_free(run.folder, (*run.writes(), LOG), (*owned, LOG) if owned else ())


class _Report:
    """Messages about runs that end, and the list of failed ones."""

    def __init__(self, study: StudyConfig, count: int, jobs: int) -> None:
        self.study, self.left, self.jobs = study, count, jobs
        self.failed: list[RunEnd] = []
        self._began, self._trained = time.monotonic(), 0

    def ended(self, run: RunEnd) -> None:
        """Report the end of a run."""
        self.left -= 1
        if run.kind == "busy":
            say(f"{run.key}: passed over, another process trains it")
        elif run.kind == "elsewhere":
            say(f"{run.key}: passed over, another process has finished it")
        elif run.kind == "done":
            self._trained += 1
            say(f"{run.key}: {Outcome.load(self.study.folder(run.key))}{self._rest()}")
        else:
            self.failed.append(run)
            say(f"{run.key}: failed: {run.message}")

    def _rest(self) -> str:
        """The number of runs left, and an estimate of their time from the runs so far."""
        if not self.left:
            return ""
        left = duration((time.monotonic() - self._began) / self._trained * self.left)
        return f"; {self.left} runs left, about {left}"


def _run(folder: Path, config: PredictionConfig, fresh: bool, threads: int, encodings: Path, tell: Connection) -> None:
    leads_its_group()
    with _logged(folder, tell), ending():
        torch.set_num_threads(threads)
        PredictionRun(config, encodings=encodings).train(fresh)

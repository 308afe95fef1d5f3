"""The runs of a study, several at a time, each in its own process, so that a failure does not affect the others."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from structpe.errors import ConfigError
from structpe.signals import ending
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.crew import LOG, Crew, Ended, leads_its_group, reporting
from structpe.tasks.prediction.live import bars
from structpe.tasks.prediction.outcome import Outcome
from structpe.tasks.prediction.report import claim
from structpe.tasks.prediction.study import Key, StudyConfig, by_row
from structpe.tasks.runs.prediction import PredictionRun, readable
from structpe.tasks.training.folder import check_free, learned
from structpe.tasks.training.folder import claim as claim_folder
from structpe.tasks.training.progress import say
from structpe.threads import busy, requested, waiting

__all__ = ["Failed", "run_all", "unchanged"]


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
    with ending(), bars(configs) as look, Crew(jobs, report.ended, look) as crew:
        for number, key in enumerate(left, 1):
            crew.wait_for_room()
            if not fresh and PredictionRun(configs[key]).finished():
                report.ended(Ended(key, "elsewhere"))
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

    def ended(self, run: Ended) -> None:
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

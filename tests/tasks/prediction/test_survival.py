"""A run or a study that is interrupted, in whatever way, ends as if it had not been, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch

from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.report import Outcome
from structpe.tasks.prediction.run_all import run_all
from structpe.tasks.prediction.study import load_study
from structpe.tasks.runs import train
from structpe.tasks.training import checkpoint
from structpe.tasks.training.folder import lock
from tests.cli.running import FORKS
from tests.forking import Forked, forked
from tests.processes import alive, descendants, until
from tests.tasks.prediction.tiny import MODEL, RWSE, TRAINING, single, study, study_file

pytestmark = pytest.mark.early


def same_results(mine: Path, theirs: Path) -> None:
    for file in ("model.safetensors", "metrics.csv"):
        assert (mine / file).read_bytes() == (theirs / file).read_bytes(), file
    one, other = Outcome.load(mine), Outcome.load(theirs)
    assert one is not None
    assert other is not None
    assert (one.valid, one.test, one.parameters) == (other.valid, other.test, other.parameters)
    assert one.training.best == other.training.best
    assert not (mine / "checkpoints").exists()


def killed_at_its_second_checkpoint(config: PredictionConfig) -> None:
    """For a process of its own: the checkpoint is written, but has not got its name, when the process is killed."""
    torch.set_num_threads(1)  # threads do not survive a fork, and waiting for them would never end
    write, count = checkpoint.atomic_write_folder, 0

    def told(path: Path, fill: object) -> None:
        def filled(hidden: Path) -> None:
            nonlocal count
            fill(hidden)  # type: ignore[operator]
            count += 1
            if count == 2:
                os.kill(os.getpid(), signal.SIGKILL)

        write(path, filled)

    checkpoint.atomic_write_folder = told  # type: ignore[assignment]
    train(config)


@pytest.mark.timeout(900)
def test_a_killed_run_ends_with_the_same_bits(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = single(tmp_path)
    train(replace(config, out=str(tmp_path / "never")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # no thread of this process holds anything
        process = get_context("fork").Process(target=killed_at_its_second_checkpoint, args=(config,))
        process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    folder = Path(config.out)
    assert sorted(path.name for path in (folder / "checkpoints").glob("step-*")) == ["step-00000003"]
    assert Outcome.load(folder) is None
    train(config)
    assert "going on after step 3" in capfd.readouterr().err
    same_results(folder, tmp_path / "never")


def started(file: Path, only: str, before: str = "") -> Forked:
    words = ("study", str(file), "--jobs", "2", "--threads", "1", "--only", only)
    return forked(file.parent, "structpe", *words, before=before)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_study_that_is_ended_in_three_ways_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    """While the processes of its runs begin, which for these is as any other moment; then amid a run, a fork."""
    training = {**TRAINING, "steps": 60, "validation": {"every": 20}, "checkpoint_every": 5}
    file = study_file(tmp_path, models={"gps": MODEL}, positions={"rwse": RWSE}, training=training)
    config = load_study(file)
    keys = config.keys()
    folders = [config.folder(key) for key in keys]
    for way, code, runs in ((signal.SIGINT, 130, 1), (signal.SIGTERM, 143, 1), (signal.SIGKILL, -9, 2)):
        logs = [folder / "log.txt" for folder in folders[:runs]]
        for log in logs:
            log.unlink(missing_ok=True)
        process = started(file, "*/seed-0" if runs == 1 else "*")
        told = ended(process, way, code, lambda logs=logs: all(log.exists() for log in logs))
        assert way == signal.SIGKILL or "1 runs are interrupted; the same command goes on with them" in told
    (folder, _), (key, _) = folders, keys
    ended(started(file, "*/seed-0", FORKS), signal.SIGKILL, -9, lambda: bool(list(folder.glob("checkpoints/step-*"))))
    code, out, err = started(file, "*/seed-0", FORKS).ended(800)
    assert code == 0, err
    assert "| gps | rwse | 1 |" in out
    assert "going on after step" in (folder / "log.txt").read_text()
    never = replace(config.run(key), out=str(tmp_path / "never"))  # the file of weights names the run that they are of
    train(never)
    same_results(folder, Path(never.out))


def ended(study: Forked, way: signal.Signals, code: int, ready: Callable[[], bool]) -> str:
    """What a study says that is sent a signal when it is ready; none of the processes that it started is left."""
    until(ready)
    mine = descendants(study.pid)
    assert mine
    began = time.monotonic()
    os.kill(study.pid, way)
    ending, out, err = study.ended()
    assert time.monotonic() - began < 60
    assert (ending, out) == (code, "")
    assert "Traceback" not in err
    until(lambda: not any(map(alive, mine)))
    return err


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_studies_in_one_folder_share_the_work(tmp_path: Path) -> None:
    """Their runs are forks, which begin at once."""
    file = study_file(tmp_path, models={"gps": MODEL}, positions={"rwse": RWSE})
    config, studies = load_study(file), []
    keys = config.keys()
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        words = ("study", str(file), "--jobs", "1", "--threads", "1")
        studies.append(forked(tmp_path / name, "structpe", *words, before=FORKS))
    for each in studies:
        code, _, err = each.ended(800)
        assert code == 0, err
    for key in keys:
        told = (config.folder(key) / "log.txt").read_text()
        assert told.count(f"{key}: finished: mae") == 1
        assert Outcome.load(config.folder(key)) is not None
    assert len(list((Path(config.out) / "encodings").glob("rwse-*.seconds.json"))) <= 1


@pytest.mark.slow
def test_a_run_that_another_process_trains_is_passed_over(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = study(tmp_path, models={"gps": MODEL}, positions={"none": []}, seeds=[0])
    (key,) = config.keys()
    with lock(config.folder(key)):
        assert run_all(config, [key], threads=1) == []
    assert f"{key}: passed over, another process trains it" in capfd.readouterr().err
    assert Outcome.load(config.folder(key)) is None

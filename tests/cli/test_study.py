"""``structpe study``: what goes wrong is said in one line, before anything is trained where that can be known."""

from __future__ import annotations

import os
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from structpe.cli.main import main
from structpe.tasks.prediction import run_all
from structpe.tasks.prediction.report import Outcome
from structpe.tasks.prediction.study import load_study
from structpe.tasks.runs import train
from tests.cli.running import complaint
from tests.tasks.prediction.test_report import finished
from tests.tasks.prediction.tiny import CLASSIC, MODEL, RWSE, TRAINING, study_file

FORK = "ignore:This process .* is multi-threaded, use of fork:DeprecationWarning"


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs in forks, which begin at once. The tests of survival begin them as users do."""
    monkeypatch.setattr(run_all, "get_context", lambda how: get_context("fork"))


ONE: dict[str, Any] = {"models": {"gps": MODEL}, "positions": {"none": []}, "seeds": [0]}
RINGS = {"name": "zinc-stand-in", "folder": "data"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seeds": ["a"]}, "seeds[0] takes a whole number; given is 'a'"),
        ({"seeds": []}, "seeds is empty; a study needs one at least"),
        ({"seeds": [0, 0]}, "seeds: 0 stands there twice; keep one"),
        ({"seeds": [-1]}, "rings/gps/none/seed--1: training.seed is -1; it must be 0 or more"),
        ({"rows": [["gsp", "none"]]}, "rows[0]: there is no model named 'gsp'. Did you mean 'gps'? Known: gps"),
        ({"rows": [["gps", "noen"]]}, "rows[0]: there is no position named 'noen'. Did you mean 'none'? Known: none"),
        ({"rows": [["gps"]]}, "rows[0] is ['gps']; a pair [model, position] is needed"),
        ({"models": {"a b": MODEL}}, "models: 'a b' names a folder; leave out blanks, slashes, *?[] and dots in front"),
        ({"models": {"gps": {"widht": 3}}}, "there is no key named 'model.widht'. Did you mean 'model.width'?"),
        (
            {"models": {"gps": {"width": "wide"}}},
            "rings/gps/none/seed-0: model.width takes a whole number; given is 'wide'",
        ),
        ({"models": {"gps": {**MODEL, "message_passing": "gni"}}}, "there is no convolution named 'gni'"),
        ({"models": {"gps": {**MODEL, "training": 3}}}, "training takes a mapping; given is 3"),
        ({"models": {"gps": None}}, "models"),
        ({"training": {**TRAINING, "stesp": 3}}, "no key named 'training.stesp'. Did you mean 'training.steps'?"),
        ({"training": {**TRAINING, "steps": 0}}, "training.steps is 0; it must be 1 or more"),
        ({"positions": {"none": "rswe"}}, "position: there is no position model named 'rswe'. Did you mean 'rwse'?"),
        ({"positions": {"none": {"name": "rwse", "step": 3}}}, "position model 'rwse' has no option named 'step'"),
        (
            {"models": {"gps": CLASSIC}, "positions": {"none": "t5"}},
            "this model has none; choose",
        ),
        ({"data": {"rings": {"name": "zink", "folder": "data"}}}, "data: there is no benchmark named 'zink'"),
        (
            {"data": {"rings": {**RINGS, "options": {"trian": 3}}}},
            "benchmark 'zinc-stand-in' has no option named 'trian'. Did you mean 'train'?",
        ),
        ({"data": {"rings": {**RINGS, "options": {"train": "many"}}}}, "takes a whole number; given is 'many'"),
        ({"data": {"rings": {"folder": "data"}}}, "data: benchmark 'graphs' needs the option 'file'; it takes text"),
        ({"published": [{"data": "rnigs", "name": "a", "value": 1.0, "source": "b"}]}, "Did you mean 'rings'?"),
        ({"jobs": 2}, "there is no key named 'jobs'"),
    ],
)
def test_a_wrong_study_is_refused_before_anything_runs(changed: Any, message: str, tmp_path: Path) -> None:
    assert message in complaint("study", study_file(tmp_path, **{**ONE, **changed}))
    assert not (tmp_path / "study").exists()


def test_a_wrong_command_line(tmp_path: Path) -> None:
    file = study_file(tmp_path, **ONE)
    assert complaint("study", file, "--jobs", "-1") == "--jobs is -1; give 1 or more"
    assert complaint("study", file, "--threads", "0") == "--threads is 0; give 1 or more"
    assert complaint("study", file, "--only", "rinsg/*").startswith(
        "no run matches rinsg/*; runs are called such as rings/gps"
    )
    assert "there is no configuration file" in complaint("study", tmp_path / "absent.yaml")


def test_missing_data_are_noticed_before_anything_runs(tmp_path: Path) -> None:
    data = {"rings": RINGS, "more": {"name": "minesweeper", "folder": "absent"}}
    told = complaint("study", study_file(tmp_path, **{**ONE, "data": data}), code=1)
    assert told == (
        f"more/gps/none/seed-0: data: benchmark 'minesweeper': there is no folder {tmp_path}/absent; "
        "give the one that holds its files"
    )
    assert not (tmp_path / "study").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir(mode=0o500)
    assert "Permission denied; check its permissions" in complaint("study", study_file(tmp_path, **ONE), code=1)


def test_a_finished_study_is_not_run_again_and_not_taken_for_another(tmp_path: Path, capsys: Any) -> None:
    file = study_file(tmp_path, **ONE)
    study = load_study(file)
    (key,) = study.keys()
    train(study.run(key))
    before = (study.folder(key) / "result.json").stat().st_mtime_ns
    assert main(["study", str(file)]) == 0
    told = capsys.readouterr()
    assert "1 runs, 1 of them finished" in told.err
    assert "| gps | none | 1 |" in told.out
    assert (study.folder(key) / "result.json").stat().st_mtime_ns == before
    for more in ([], ["--table"]):
        told = complaint("study", file, "--training", "{steps: 5, hardware: {accelerator: cpu}}", *more)
        assert f"{key} holds a run of another configuration; they differ in training.steps, training.batch_size" in told


@pytest.mark.slow
@pytest.mark.timeout(280)
@pytest.mark.filterwarnings(FORK)
@pytest.mark.usefixtures("forks")
def test_runs_that_fail_are_told_of_and_leave_the_others_alone(tmp_path: Path, capfd: Any) -> None:
    """Two models learn so fast that their weights are no numbers any more."""
    hot = {**MODEL, "training": {"optimiser": {"learning_rate": 1e30, "clip": 0.0}}}
    models = {"gps": MODEL, "hot": hot, "hotter": {**hot, "layers": 1}}
    file = study_file(tmp_path, models=models, positions={"rwse": RWSE}, seeds=[0])
    assert main(["study", str(file), "--jobs", "2", "--threads", "1"]) == 1
    told = capfd.readouterr()
    assert "Traceback" not in told.err
    last = told.err.splitlines()[-1]
    assert last.startswith("structpe: 2 of 3 runs failed: ")
    assert "rings/hot/rwse/seed-0: " in last
    assert "rings/hotter/rwse/seed-0: " in last
    assert "| gps | rwse | 1 |" in told.out
    study = load_study(file)
    assert Outcome.load(study.folder(study.keys(["rings/gps/rwse/*"])[0])) is not None


def test_two_rows_are_compared_by_the_seeds_that_both_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = study_file(tmp_path, **{**ONE, "positions": {"none": [], "rwse": RWSE}, "seeds": [0, 1]})
    config = load_study(file)
    for each in list(config.keys()):  # 0.1 and 0.2 without, 0.3 and 0.6 with
        test = 0.1 * (1 + each.seed) * (1 if each.position == "none" else 3)
        finished(config, each, test)
    main(["study", str(file), "--compare", "rings/gps/none", "rings/gps/rwse"])
    told = capsys.readouterr().out
    assert told == (
        "rings/gps/none is better than rings/gps/rwse by 0.3 MAE (± 0.14 over 2 seeds; paired t test, p = 0.2)\n"
    )
    assert "there is no finished run of rings/gps/x" in complaint(
        "study", file, "--compare", "rings/gps/none", "rings/gps/x"
    )

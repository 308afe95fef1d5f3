"""A run replaces and removes nothing but what its manifest says is its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from structpe.errors import ConfigError, StoreError
from structpe.system.files import sealed
from structpe.tasks.prediction.report import report
from structpe.tasks.prediction.run_all import run_all
from structpe.tasks.runs import RUNS, train
from structpe.tasks.runs.base import Run
from structpe.tasks.runs.prediction import LearnedPrediction, PredictionRun
from structpe.tasks.training.folder import MANIFEST, claim, manifest_files
from tests.foreign import FOREIGN, FOREIGN_IDS, contents
from tests.killing import every_moment
from tests.tasks.prediction.tiny import single, study

NAMES = [(kind, name) for kind in RUNS for name in dict.fromkeys(n.partition("/")[0] for n in RUNS[kind].writes())]


def begun(folder: Path) -> tuple[PredictionRun, LearnedPrediction]:
    """A run that has written what it writes before training."""
    run = PredictionRun(single(folder))
    learned = run.learn(run.read())
    run.begin(learned)
    return run, learned


@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_every_kind_of_run_refuses_a_folder_with_files_of_its_names(kind: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    run: Run[Any, Any, Any, Any] = RUNS[kind](None, tmp_path)
    with pytest.raises(
        ConfigError, match=rf"holds {name}, which structpe would replace but has not written, .*\(out\)"
    ):
        claim(run.folder, run.writes(), run.owned())
    assert contents(tmp_path) == {name: "mine"}


@pytest.mark.parametrize("make", FOREIGN, ids=FOREIGN_IDS)
@pytest.mark.parametrize("fresh", [True, False])
def test_a_training_refuses_before_it_reads_or_writes(
    make: Callable[[Path], None], fresh: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = single(tmp_path)
    folder = Path(config.out)
    folder.mkdir()
    make(folder / "tensorboard")
    before = contents(folder)
    monkeypatch.setattr(PredictionRun, "read", lambda self: pytest.fail("data were read"))
    with pytest.raises(ConfigError, match=r"holds tensorboard, which structpe would replace"):
        train(config, fresh=fresh)
    assert contents(folder) == before


def test_a_fresh_run_removes_the_run_before_and_nothing_else(tmp_path: Path) -> None:
    run, learned = begun(tmp_path)
    mine = ("checkpoints/my_best.pt", "checkpoints/steps/a", "tensorboard/notes.txt", "notes.txt", "tokenizer.json")
    its = ("checkpoints/step-00000002/state.json", "tensorboard/events.out.tfevents.1.a", "metrics.csv", "result.json")
    for name in (*mine, *its):
        (run.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (run.folder / name).write_text("text")
    run.begin(learned)
    left = {name for name, text in contents(run.folder).items() if text != "folder"}
    assert left == {*mine, "config.yaml", *run.learned_files, "SHA256SUMS", MANIFEST}


def test_a_finished_run_keeps_what_is_the_users_among_its_checkpoints(tmp_path: Path) -> None:
    run, _ = begun(tmp_path)
    for name in ("step-00000002", "mine"):
        (run.folder / "checkpoints" / name).mkdir(parents=True)
    run._remove_checkpoints()
    assert [each.name for each in (run.folder / "checkpoints").iterdir()] == ["mine"]
    (run.folder / "checkpoints" / "mine").rmdir()
    run._remove_checkpoints()
    assert not (run.folder / "checkpoints").exists()


def test_no_link_in_a_run_is_followed(tmp_path: Path) -> None:
    run, learned = begun(tmp_path)
    for name in ("checkpoints", "tensorboard"):
        (tmp_path / name).mkdir()
        (run.folder / name).symlink_to(tmp_path / name)
    (tmp_path / "checkpoints" / "step-00000002").mkdir()
    (tmp_path / "tensorboard" / "events.out.tfevents.1").write_text("mine")
    (tmp_path / "scores").write_text("mine")
    (run.folder / "metrics.csv").symlink_to(tmp_path / "scores")
    run.begin(learned)
    run._remove_checkpoints()
    assert (tmp_path / "checkpoints" / "step-00000002").is_dir()
    assert (tmp_path / "tensorboard" / "events.out.tfevents.1").read_text() == (tmp_path / "scores").read_text()


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"name": "an app", "icons": []}',
        sealed({"format": "structpe manifest", "files": ["../data"]}),
        sealed({"format": "structpe manifest", "files": ["/data"]}),
        sealed({"format": "another", "files": []}),
    ],
)
def test_a_manifest_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    config = single(tmp_path)
    Path(config.out).mkdir()
    (Path(config.out) / MANIFEST).write_text(text)
    with pytest.raises(
        StoreError, match=r"structpe\.json: the file is damaged .*; move it and what is yours elsewhere"
    ):
        train(config)
    assert contents(Path(config.out)) == {MANIFEST: text}


def test_a_run_of_an_older_structpe_is_known_by_its_checksums(tmp_path: Path) -> None:
    run, learned = begun(tmp_path)
    (run.folder / MANIFEST).unlink()
    run.begin(learned)
    assert manifest_files(run.folder) == run.writes()
    for name in (MANIFEST, "SHA256SUMS"):
        (run.folder / name).unlink()
    with pytest.raises(ConfigError, match=r"holds config\.yaml, position\.json, signature\.json, which structpe would"):
        run.begin(learned)


@pytest.mark.slow
def test_killed_at_any_moment_a_run_begins_again(tmp_path: Path) -> None:
    run, learned = begun(tmp_path)
    expected = contents(run.folder)
    for _ in every_moment(lambda: run.begin(learned), step=7):
        run.begin(learned)
        assert contents(run.folder) == expected


def test_a_study_replaces_no_table_and_no_log_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of, out = study(tmp_path, seeds=[0]), tmp_path / "study"
    keys = of.keys()
    out.mkdir()
    for name in ("table.csv", "curves-rings.svg", f"{keys[0]}/log.txt"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("mine")
        before = contents(out)
        with pytest.raises(ConfigError, match=rf"holds {Path(name).name}, which structpe would replace"):
            run_all(of, keys)
        if "/" not in name:
            with pytest.raises(ConfigError, match=rf"holds {name}, which structpe would replace"):
                report(of, keys)
        assert contents(out) == before
        (out / name).unlink()
    report(of, keys)
    report(of, keys)
    (out / MANIFEST).unlink()
    with pytest.raises(ConfigError, match=r"holds scores\.csv, table\.csv, table\.md, which structpe would replace"):
        report(of, keys)
    (of.folder(keys[0]) / "checkpoints").mkdir(parents=True)
    report(of, keys)  # of an older structpe, as its runs say
    assert manifest_files(out) is not None

"""Costs that are measured apart from trainings, and how they come into the published tables."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from structpe.tasks.prediction.report import Score, markdown, read_scores, write_rows
from structpe.tasks.prediction.study import load_study
from tests.experiments.script import script
from tests.modules import ROOT
from tests.tasks.prediction.tiny import MODEL, RWSE, study
from tests.together import together

STUDIES = ROOT / "experiments" / "benchmarks"
TABLES = sorted((STUDIES / "results").glob("*/table.csv"))


@pytest.fixture(scope="module")
def tables() -> Iterator[ModuleType]:
    sys.path.insert(0, str(STUDIES))
    try:
        yield script("benchmarks/costs_tables.py")
    finally:
        sys.path.remove(str(STUDIES))


@together("file", TABLES)
def test_published_tables_are_those_of_their_rows(file: Path, tables: ModuleType) -> None:
    found = markdown(tables.published(file), load_study(STUDIES / f"{file.parent.name}.yaml").published)
    told = (file.parent / "table.md").read_text(encoding="utf-8")
    assert told.startswith(found)
    assert told.removeprefix(found).startswith("The columns of costs") == (file.parent / "costs.json").exists()


def test_only_costs_change(tables: ModuleType, tmp_path: Path) -> None:
    shutil.copytree(STUDIES / "results" / "zinc", tmp_path / "zinc")
    folder, study_of = tmp_path / "zinc", STUDIES / "zinc.yaml"
    (folder / "costs.json").unlink(missing_ok=True)
    before = tables.published(folder / "table.csv")
    found = {"encoding_seconds": 0.5, "step_ms": 12.34, "minutes": 3.0, "peak_mib": 600.4, "steps": 40}
    found |= {"day": "2026-11-23", "commit": "abc"}
    known = {"zinc-stand-in/hybrid/rwse": found, "zinc-stand-in/gine/rwse": {**found, "steps": 90, "step_ms": 9.0}}
    (folder / "costs.json").write_text(json.dumps(known))
    for _ in range(2):  # twice is as once
        tables.write(study_of, folder)
        after = tables.published(folder / "table.csv")
        text = (folder / "table.md").read_text()
        (row,) = [line for line in text.splitlines() if line.startswith("| hybrid | rwse |")]
        assert "| 0.5 | 12.3 | 3.0 |" in row
        assert "| 600 |" in row
        assert (
            text.count(f"The columns of costs of 2 of {len(before)} rows (encoding, step, minutes, peak) were measured")
            == 1
        )
        assert "on 2026-11-23, commit abc: one thread, nothing else running, 40 to 90 steps of each row" in text
        changed = [new for old, new in zip(before, after, strict=True) if new != old]
        assert [(row.model, row.position, row.step_ms) for row in changed] == [
            ("hybrid", "rwse", 12.34),
            ("gine", "rwse", 9.0),
        ]
        assert [(row.test, row.commit) for row in before] == [(row.test, row.commit) for row in after]


def test_what_was_run_again_replaces_its_rows(tables: ModuleType, tmp_path: Path) -> None:
    keep = script("benchmarks/keep.py").keep
    results, made, study_of = tmp_path / "kept", tmp_path / "minesweeper", STUDIES / "minesweeper.yaml"
    shutil.copytree(STUDIES / "results" / "minesweeper", results)
    again, other = "minesweeper/hybrid/none", "minesweeper/other/none"
    named = {"encoding_seconds": 0.0, "step_ms": 7.0, "minutes": 1.0, "peak_mib": 9.0}
    costs = {
        name: {**named, "steps": 3, "day": "2026-11-22", "commit": "abc"} for name in (again, "minesweeper/gcn/none")
    }
    (results / "costs.json").write_text(json.dumps(costs))
    old, before = tables.published(results / "table.csv"), read_scores(results / "scores.csv")
    rows = {f"{row.data}/{row.model}/{row.position}": row for row in old}
    new = replace(rows[again], test=0.5, seeds=2, planned=2, commit="def")
    unfinished = replace(rows["minesweeper/gcn/none"], seeds=0, test=None, deviation=None)
    made.mkdir()
    tables.as_csv([new, unfinished, replace(new, model="other", test=0.6)], made / "table.csv")
    scores = [Score(row, seed, "rocauc", 0.5 + seed / 10, 0.4) for row in (again, other) for seed in (0, 1)]
    write_rows(scores, Score, made / "scores.csv")
    for _ in range(2):  # twice is as once
        assert keep(made, study_of, results) == [again, other]
        found = tables.published(results / "table.csv")
        untouched = [(row.model, row.position, row.test) for row in found if row.commit != "def"]
        assert untouched == [(row.model, row.position, row.test) for row in old if row != rows[again]]
        assert [row.test for row in found if row.commit == "def"] == [0.5, 0.6]
        assert read_scores(results / "scores.csv") == [each for each in before if each.row != again] + scores
        assert set(json.loads((results / "costs.json").read_text())) == {"minesweeper/gcn/none"}
        text = (results / "table.md").read_text()
        assert "| other | none | 2 | 0.6 ±" in text
        assert "The columns of costs of 1 of " in text


def test_seeds_are_added_to_a_row(tables: ModuleType, tmp_path: Path) -> None:
    keep = script("benchmarks/keep.py").keep
    results, made, study_of = tmp_path / "kept", tmp_path / "zinc", STUDIES / "zinc.yaml"
    shutil.copytree(STUDIES / "results" / "zinc", results)
    old, before = tables.published(results / "table.csv"), read_scores(results / "scores.csv")
    name = "zinc-stand-in/gatedgcn/rwse"
    (row,) = [each for each in old if each.model == "gatedgcn"]
    made.mkdir()
    more = replace(row, seeds=1, planned=1, test=0.9, deviation=None, commit="0123456789ab")
    tables.as_csv([more], made / "table.csv")
    write_rows([Score(name, 7, "mae", 0.9, 0.8)], Score, made / "scores.csv")
    assert keep(made, study_of, results, add=True) == [name]
    tests = [each.test for each in before if each.row == name] + [0.9]
    (found,) = [each for each in tables.published(results / "table.csv") if each.model == "gatedgcn"]
    assert found.test == pytest.approx(statistics.mean(tests))
    assert found.deviation == pytest.approx(statistics.stdev(tests))
    assert found.valid == pytest.approx((len(tests) - 1) / len(tests) * row.valid + 0.8 / len(tests))
    assert (found.seeds, found.step_ms, found.device) == (len(tests), row.step_ms, row.device)
    assert found.commit == f"{row.commit} and 0123456789ab"
    assert f"| {row.commit[:7]}, 0123456 |" in (results / "table.md").read_text()
    others = [each for each in read_scores(results / "scores.csv") if each != Score(name, 7, "mae", 0.9, 0.8)]
    assert sorted(map(str, others)) == sorted(map(str, before))
    assert (found.planned, found.others) == (len(tests), "")
    with pytest.raises(ValueError, match=r"gatedgcn/rwse has seeds \[0, 1, 2, 7, 7\], some twice; leave out --add"):
        keep(made, study_of, results, add=True)
    tables.as_csv([replace(more, commit=row.commit)], made / "table.csv")
    write_rows([Score(name, 8, "mae", 0.9, 0.8)], Score, made / "scores.csv")
    keep(made, study_of, results, add=True)
    (found,) = [each for each in tables.published(results / "table.csv") if each.model == "gatedgcn"]
    assert found.commit == f"{row.commit} and 0123456789ab"
    (results / "scores.csv").unlink()
    write_rows([Score(name, 9, "mae", 0.9, 0.8)], Score, made / "scores.csv")
    with pytest.raises(ValueError, match=r"gatedgcn/rwse has 5 seeds, and scores.csv not the score of each; leave out"):
        keep(made, study_of, results, add=True)


def test_a_study_that_is_kept_for_the_first_time(tables: ModuleType, tmp_path: Path) -> None:
    del tables
    keep, results = script("benchmarks/keep.py").keep, tmp_path / "new"
    names = keep(STUDIES / "results" / "esol", STUDIES / "esol.yaml", results)
    assert names == ["esol/hybrid/none", "esol/hybrid/rwse"]
    for file in ("table.csv", "table.md", "scores.csv", "curves-esol.png"):
        assert (results / file).read_bytes() == (STUDIES / "results" / "esol" / file).read_bytes()


@pytest.mark.slow
def test_a_row_is_measured(tables: ModuleType, tmp_path: Path) -> None:
    del tables  # which puts the folder of the scripts where imports look
    measured = script("benchmarks/costs_row.py").measured
    small = study(tmp_path, models={"gps": MODEL}, positions={"rwse": RWSE}, seeds=[0])
    found = measured(small, small.keys()[0], 0.0, tmp_path / "scratch")
    assert found["steps"] == 12
    assert found["encoding_seconds"] > 0
    assert found["peak_mib"] > 100
    steps, validations = 12, 3
    least = (steps * found["step_ms"] / 1e3 + validations * found["validation_seconds"]) / 60
    assert 0.3 * least < found["minutes"]

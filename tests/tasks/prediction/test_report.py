"""The table and the curves of a study, against numbers worked out by hand."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpe.errors import MissingExtra
from structpe.tasks.prediction import report as reports
from structpe.tasks.prediction.report import Outcome, curve, draw, limits, lines, report
from structpe.tasks.prediction.study import Key, StudyConfig
from structpe.tasks.training.result import Result

HEAD = "| model | position | seeds | test | valid | parameters | epochs | encoding s | step ms | minutes | CPU minutes "
HEAD += "| peak MiB | commit |"
VERSIONS = {
    "structpe": "0.1.0", "commit": "abc", "torch": "2.13", "lightning": "2.6", "python": "3.11",
    "device": "CPU, 2 cores", "threads": "1", "day": "2026-01-01",
}  # fmt: skip


def study(folder: Path, **changed: Any) -> StudyConfig:
    given = {"data": {"rings": {}, "cells": {}}, "models": {"a": {}, "b": {}}, "seeds": [0, 1, 2], "out": str(folder)}
    return StudyConfig(**{**given, **changed})


def finished(
    config: StudyConfig, key: Key, test: float, valid: float | None = 0.5, metric: str = "mae", **more: Any
) -> None:
    called: dict[str, Any] = {"data": "Rings (made)", "note": "made for a test", "others": {}}
    called |= {name: more.pop(name) for name in tuple(more) if name in called}
    folder = config.folder(key)
    folder.mkdir(parents=True, exist_ok=True)
    minutes = key.seed + 1
    costs = {"seconds": 60.0 * minutes, "cpu_seconds": 45.0 * minutes, "peak_bytes": 2**28, "epochs": 7.2}
    training = Result(10, 5, {}, False, step_seconds=0.02 + key.seed / 100, **costs)  # type: ignore[arg-type]
    outcome = Outcome(metric, valid, test, 1234, 0.25, training, {**VERSIONS, **more}, **called)
    outcome.save(folder)


def key(text: str) -> Key:
    data, model, position, seed = text.split("/")
    return Key(data, model, position, int(seed))


def logged(config: StudyConfig, which: Key, values: list[float], metric: str = "dev_mae", every: int = 10) -> None:
    folder = config.folder(which)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "metrics.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("step", "metric", "value"))
        for number, value in enumerate(values, 1):
            writer.writerows([(number * every, "loss", 9.0), (number * every, metric, value)])


def test_the_table_says_what_the_runs_came_to_and_nothing_else(tmp_path: Path) -> None:
    published = [{"data": "rings", "name": "Theirs", "value": 0.07, "source": "Somebody 2022", "deviation": 0.004}]
    published.append({**published[0], "name": "The same", "seeds": 4, "row": ["a", "none"]})
    from structpe.tasks.config import make, to_dict

    config = make(StudyConfig, {**to_dict(study(tmp_path)), "published": published})
    for seed, test in enumerate((0.1, 0.2, 0.6)):  # mean 0.3, sample deviation sqrt((0.04 + 0.01 + 0.09) / 2) = 0.2646
        finished(config, key(f"rings/a/none/{seed}"), test, valid=test + 0.1)
    finished(config, key("rings/b/none/1"), 0.25, valid=None, commit="def", day="2026-01-02", threads="2")
    finished(config, key("cells/b/none/0"), 0.8, metric="rocauc", data="cells", note="")
    finished(config, key("cells/a/none/0"), 0.7, metric="rocauc", data="cells", note="")
    text = report(config, config.keys())
    assert text.splitlines() == [
        "### rings (Rings (made))",
        "",
        "MAE, less is better; ± sample deviation over seeds. Rows of one seed are not ranked.",
        "Note: made for a test.",
        "",
        HEAD,
        "|---|---|" + "---:|" * 11,
        "| a | none | 3 | 0.3 ± 0.26 | 0.4 | 1,234 | 7 | 0.2 | 30.0 | 2.0 | 1.5 | 256 | abc |",
        "| b | none | 1 of 3 | 0.25 (one seed) | - | 1,234 | 7 | 0.2 | 30.0 | 2.0 | 1.5 | 256 | def |",
        "| Theirs | Somebody 2022 (published) | | 0.07 ± 0.004 | | | | | | | | | |",
        # 0.23 / sqrt(0.07 / 3 + 0.004^2 / 4)
        "| The same | Somebody 2022 (published; a, none: z = +1.51) | 4 | 0.07 ± 0.004 | | | | | | | | | |",
        "",
        "Measured with commit abc, 2026-01-01; structpe 0.1.0, torch 2.13, python 3.11; CPU, 2 cores, 1 thread.",
        "Measured with commit def, 2026-01-02; structpe 0.1.0, torch 2.13, python 3.11; CPU, 2 cores, 2 threads.",
        "",
        "### cells",
        "",
        "ROC-AUC, more is better; ± sample deviation over seeds. Rows of one seed are not ranked.",
        "",
        HEAD,
        "|---|---|" + "---:|" * 11,
        "| a | none | 1 of 3 | 0.7 (one seed) | 0.5 | 1,234 | 7 | 0.2 | 20.0 | 1.0 | 0.8 | 256 | abc |",
        "| b | none | 1 of 3 | 0.8 (one seed) | 0.5 | 1,234 | 7 | 0.2 | 20.0 | 1.0 | 0.8 | 256 | abc |",
        "",
        "Measured with commit abc, 2026-01-01; structpe 0.1.0, torch 2.13, python 3.11; CPU, 2 cores, 1 thread.",
    ]
    assert (tmp_path / "table.md").read_text() == text
    with (tmp_path / "table.csv").open() as file:
        first, second, *_ = csv.DictReader(file)
    assert (first["data"], first["model"], first["position"], first["seeds"], first["planned"]) == (
        "rings",
        "a",
        "none",
        "3",
        "3",
    )
    assert float(first["test"]) == pytest.approx(0.3)
    assert float(first["deviation"]) == pytest.approx(0.2645751)
    assert (second["seeds"], second["deviation"], second["valid"], second["commit"]) == ("1", "", "", "def")


def test_a_row_names_every_commit_and_day_of_its_runs(tmp_path: Path) -> None:
    config = study(tmp_path)
    made = [("abc", "2026-01-01"), ("", "2026-01-02"), ("abc", "2026-01-03")]
    for seed, (commit, day) in enumerate(made):
        finished(config, key(f"rings/a/none/{seed}"), 0.1, commit=commit, day=day)
    text = report(config, config.keys())
    assert "| 256 | abc, unknown |" in text
    assert "Measured with commit abc and unknown, 2026-01-01 and 2026-01-02 and 2026-01-03; structpe 0.1.0" in text


def test_rows_of_several_seeds_are_ranked_and_those_of_one_stand_below_in_the_order_of_the_study(
    tmp_path: Path,
) -> None:
    config = study(tmp_path, data={"rings": {}}, models={name: {} for name in "abcde"}, seeds=[0, 1])
    for row, seeds, test in (("a", 1, 0.1), ("b", 2, 0.5), ("d", 2, 0.3), ("e", 1, 0.05)):
        for seed in range(seeds):
            finished(config, key(f"rings/{row}/none/{seed}"), test)
    told = report(config, config.keys())
    rows = [line[2] for line in told.splitlines() if line.startswith("|") and line[2] in "abcde"]
    assert rows == ["d", "b", "a", "e", "c"]
    assert "| c | none | 0 of 2 | - |" in told


def test_further_metrics_are_told_below_the_table(tmp_path: Path) -> None:
    config = study(tmp_path, data={"rings": {}}, models={"a": {}}, seeds=[0, 1])
    for seed, hits in enumerate((0.2, 0.4)):
        finished(config, key(f"rings/a/none/{seed}"), 0.5, metric="mrr", others={"hits@1": hits, "hits@10": 0.9})
    assert "\n\na, none, on the test split too: Hits@1 0.3, Hits@10 0.9.\nMeasured" in report(config, config.keys())


def test_a_study_of_which_nothing_is_finished(tmp_path: Path) -> None:
    config = study(tmp_path, data={"rings": {}})
    text = report(config, config.keys())
    assert text.startswith("### rings: no run is finished yet\n")
    assert "| a | none | 0 of 3 | - | - | - | - | - | - | - | - | - | - |" in text
    assert not list(tmp_path.glob("curves-*"))


@pytest.mark.slow
def test_curves(tmp_path: Path) -> None:
    config = study(tmp_path, data={"rings": {}}, seeds=[0, 1])
    logged(config, key("rings/a/none/0"), [100.0, *[1.0] * 9, 0.5])
    logged(config, key("rings/a/none/1"), [200.0, *[3.0] * 9])  # not as far
    logged(config, key("rings/b/none/0"), [50.0] + [0.2] * 10)
    first, second = lines(config, config.keys())
    assert (first.name, second.name) == ("b, none", "a, none"), "the best first"
    assert second.steps.tolist() == [10.0 * step for step in range(1, 11)]
    assert second.values.tolist() == [[100.0] + [1.0] * 9, [200.0] + [3.0] * 9]
    assert second.metric.name == "MAE"
    made = draw(config, config.keys())
    assert [path.name for path in made] == ["curves-rings.svg", "curves-rings.png"]
    svg = made[0].read_text()
    assert all(text in svg for text in ("<svg", "</svg>"))
    assert made[1].read_bytes().startswith(b"\x89PNG")
    draw(config, config.keys())
    assert made[0].read_text() == svg, "the same curves give the same file"


def test_the_curve_is_that_of_the_official_metric_where_several_are_reported(tmp_path: Path) -> None:
    text = "step,metric,value\n" + "".join(
        f"{step},dev_loss,9.0\n{step},dev_hits@3,{step / 10}\n{step},dev_mrr,7.0\n" for step in (1, 2)
    )
    (tmp_path / "metrics.csv").write_text(text, encoding="utf-8")
    found = curve(tmp_path)
    assert found is not None
    metric, steps, values = found
    assert (metric.name, steps.tolist(), values.tolist()) == ("Hits@3", [1.0, 2.0], [0.1, 0.2])


def test_the_axis_shows_what_follows_the_beginning(tmp_path: Path) -> None:
    config = study(tmp_path, data={"rings": {}}, models={"a": {}}, seeds=[0])
    logged(config, key("rings/a/none/0"), [1000.0, 900.0] + [2.0 - step / 20 for step in range(8)])
    assert limits(lines(config, config.keys())) == pytest.approx((1.65 - 0.0175, 2.0 + 0.0175))
    logged(config, key("rings/a/none/0"), [0.5] * 3)
    low, high = limits(lines(config, config.keys()))
    assert low < 0.5 < high
    assert np.isfinite([low, high]).all()


def test_without_matplotlib_there_is_the_table_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(*given: Any) -> None:
        raise MissingExtra("matplotlib", "viz")

    monkeypatch.setattr(reports, "draw", missing)
    config = study(tmp_path)
    assert report(config, config.keys()) == (tmp_path / "table.md").read_text()
    assert (
        "no learning curves are drawn: 'matplotlib' is needed for this and is not installed" in capsys.readouterr().err
    )

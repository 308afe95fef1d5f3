"""Tables on pages are those of the results; a figure that was changed by hand is found."""

from __future__ import annotations

import csv
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from structpe.positions import MODELS
from tests.experiments.script import script
from tests.modules import ROOT
from tests.together import together

PAGES = script("pages.py")
PARTS = {part.name: part for part in PAGES.PARTS}


@together("name", PARTS)
def test_every_figure_is_that_of_its_results(name: str) -> None:
    lines = PAGES.differing(PARTS[name])
    assert not lines, "run 'python experiments/pages.py':\n" + "\n".join(lines[:10])


@together("name", PARTS)
def test_there_are_figures(name: str) -> None:
    rows = [line for line in PARTS[name].make().splitlines() if line.startswith("|")]
    assert len(rows) > 4
    assert len({line.count("|") for line in rows}) <= 2  # comparison and studies have one form each


def test_no_figure_of_speed_is_written_by_hand() -> None:
    text = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    made = re.compile(r"<!-- made by experiments/pages\.py: .*? -->.*?" + re.escape(PAGES.END), re.DOTALL)
    assert len(made.findall(text)) == sum(part.page == "docs/speed.md" for part in PAGES.PARTS)
    assert [line for line in made.sub("", text).splitlines() if line.startswith("|")] == []


@together("name", PAGES.SPEED)
def test_a_result_of_speed_says_how_it_was_made(name: str) -> None:
    head = PARTS[f"speed: {name}"].make().partition("\n")[0]
    assert re.match(r"`python experiments/speed/\w+(\.py)?( [^`/]+)?`, \d{4}-\d\d-\d\d", head), head
    assert re.search(r"core.*Python [\d.]+, ", head), head


def kept(file: Path, *rows: str) -> None:
    """A result: columns and cells, with commas between."""
    lines = [f"| {' | '.join(row.split(', '))} |" for row in rows]
    dashes = "|---" * lines[0].count(" | ") + "|---|"
    file.write_text("\n".join(["how it was made\n", lines[0], dashes, *lines[1:]]), encoding="utf-8")


def test_what_is_drawn_from_results_of_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = script("speed/told.py")
    monkeypatch.setattr(told, "RESULTS", tmp_path)
    columns = "encoding, graphs, peer, peer / padded, peer / flat, peer / without numba"
    kept(tmp_path / "encodings.md", columns, "a, x, p, 2, 3, 1.1", "b, x, p, 0.9, 3, 2", "b, x, q, 1,000, 3, 0.5")
    assert told.slower().splitlines()[2:] == ["| b | x | p | 0.9 | 2 |", "| b | x | q | 1,000 | 0.5 |"]
    rows = ("grit, trees, 5, 3.5, 20", "t5, trees, 9, 2.9, 9", "cai, trees, 1,000, -, -")
    kept(tmp_path / "every-model.md", "model, on, 24 / none, 128 / none, 512 / none", *rows)
    cai, grit = (line.strip("| ").split(" | ") for line in told.heavy().splitlines()[2:])
    assert (cai[:4], grit[:4]) == (["cai", "1,000", "-", "-"], ["grit", "5", "3.5", "20"])
    assert grit[4] == told.WHY["grit"]
    kept(tmp_path / "models.md", "model, ms, / none, products / none, four times the pairs", "grit, 9, 3.5, 2.2, 4")
    cai, grit = (line.strip("| ").split(" | ") for line in told.heavy().splitlines()[2:])
    assert (cai[4], grit[4]) == ("-", "2.2")


def test_reasons_are_of_position_models() -> None:
    assert set(script("speed/told.py").WHY) <= set(MODELS)


def test_every_study_with_results_is_on_the_page() -> None:
    results = ROOT / "experiments" / "benchmarks" / "results"
    assert {file.parent.name for file in results.glob("*/table.md")} == set(PAGES.STUDIES)


def test_rows_of_results_have_a_field_for_each_column() -> None:
    """A comma that was written by hand would move what comes after it."""
    for file in (ROOT / "experiments" / "benchmarks" / "results").glob("*/*.csv"):
        with file.open(encoding="utf-8", newline="") as lines:
            header, *rows = csv.reader(lines)
        assert rows
        assert {len(row) for row in rows} == {len(header)}, file


def test_one_seed_is_marked_and_no_deviation_stands_beside_it() -> None:
    text = PARTS["studies"].make()
    ones = re.findall(r"^\| [^|]+ \| [^|]+ \| 1(?: of \d+)? \| ([^|]+) \|", text, re.MULTILINE)
    assert ones
    assert all(cell.endswith("(one seed)") and "±" not in cell for cell in ones)
    assert "**" not in PARTS["comparison"].make()


def test_a_changed_figure_is_found_and_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = replace(PARTS["graph to text"], page="page.md")
    page = tmp_path / "page.md"
    good = f"above\n{part.begin}\n\n{part.make().strip()}\n\n{PAGES.END}\nbelow\n"
    number = next(re.finditer(r"\d+\.\d\d", good)).group()
    monkeypatch.setattr(PAGES, "HERE", tmp_path / "experiments")
    monkeypatch.setattr(PAGES, "PARTS", [replace(part, make=lambda made=part.make(): made)])
    page.write_text(good.replace(number, "99.99", 1), encoding="utf-8")

    def run(*words: str) -> Any:
        monkeypatch.setattr(sys, "argv", ["pages.py", *words])
        return PAGES.main(), capsys.readouterr().out

    code, told = run("--check")
    assert code == 1
    assert "page.md, graph to text: 2 lines differ" in told
    assert "99.99" in told
    assert "99.99" in page.read_text(encoding="utf-8")
    assert run()[0] == 0
    assert page.read_text(encoding="utf-8") == good
    assert run("--check") == (0, "page.md, graph to text: as its results\n")
    page.write_text("nothing")
    with pytest.raises(ValueError, match=r"page\.md needs a line '<!-- made by .*: graph to text -->'"):
        run()


def test_results_of_texts_are_kept_in_the_order_of_models_and_seeds(tmp_path: Path) -> None:
    texts = script("graph_to_text/run.py")
    for model, seed in (("zhu-cnn", 1), ("linearised", 2), ("linearised", 1)):
        texts.keep("webnlg", {"model": model, "seed": seed}, tmp_path)
    found = [(run["model"], run["seed"]) for run in texts.kept("webnlg", tmp_path)]
    assert found == [("linearised", 1), ("linearised", 2), ("zhu-cnn", 1)]
    assert texts.kept("little_prince", tmp_path) == []


def test_models_of_texts_are_compared_by_seed(tmp_path: Path) -> None:
    texts = script("graph_to_text/run.py")
    scores = {"linearised": (59.0, 60.0, 58.0), "graformer": (60.0, 60.5, 59.5), "zhu-cnn": (61.0, 62.5, 60.0)}
    for model, each in scores.items():
        for seed, score in enumerate(each):
            texts.keep("webnlg-gpu", {"model": model, "seed": seed, "scores": {"simplified_bleu": score}}, tmp_path)
    texts.keep("webnlg-gpu", {"model": "zhu-cnn", "seed": 7, "scores": {"simplified_bleu": 0.0}}, tmp_path)  # no pair
    for model, each in {"linearised": (4.0, 5.0), "zhu-cnn": (4.5, 5.0)}.items():
        for seed, score in enumerate(each):
            run = {"model": model, "seed": seed, "scores": {"bleu": score, "simplified_bleu": 0.0}}
            texts.keep("little_prince-finetuning-small", run, tmp_path)
    graformer, paths, both, prince = texts.rows_of_gain(tmp_path).splitlines()
    assert graformer.endswith("| webnlg-gpu | +1.00 | 0.50 | BLEU | 3 | 0.07 |")
    assert paths.endswith("| webnlg-gpu | +2.17 | 0.29 | BLEU | 3 | 0.006 |")
    assert both.startswith("| label paths in place of distances in the Levi graph, text | webnlg-gpu | +1.17 |")
    assert prince.endswith("| little_prince-finetuning-small | +0.25 | 0.35 | BLEU | 2 | 0.5 |")

"""The gallery, short programs whose pictures say something, in words too; and the way through the course."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

from tests.modules import ROOT
from tests.together import together

GALLERY = ROOT / "docs" / "gallery"
EXAMPLES = sorted(GALLERY.rglob("*.py"))
LESSONS = sorted((ROOT / "docs" / "course").glob("*.md"))


def test_there_are_thirty_examples_in_sections() -> None:
    assert len(EXAMPLES) >= 30
    assert {example.parent for example in EXAMPLES} == {page.parent for page in GALLERY.glob("*/README.rst")}


@together("example", EXAMPLES)
def test_an_example_is_short_and_its_title_says_what_is_seen(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, rule, *_ = (ast.get_docstring(tree) or "").splitlines()
    assert rule == "=" * len(title)
    assert len(title.split()) > 4, "a sentence, not the name of a thing"
    assert 16 <= text.count("\n") <= 75
    labels = [call.args[0] for call in ast.walk(tree) if isinstance(call, ast.Call) and named(call) == "set_label"]
    assert labels, "say what is seen, for those who do not see it: FIGURE.set_label(...)"
    for said in labels:
        assert len(ast.literal_eval(said)) > 40


def named(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs_and_labels_its_figures(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rdkit", reason="some draw molecules")
    plt, figures = pytest.importorskip("matplotlib.pyplot"), pytest.importorskip("matplotlib.figure")
    monkeypatch.setenv("MPLBACKEND", "agg")
    plt.switch_backend("agg")
    try:
        made = [value for value in runpy.run_path(str(example)).values() if isinstance(value, figures.Figure)]
    finally:
        plt.close("all")
    assert made
    assert all(figure.get_label() for figure in made)


@together("lesson", LESSONS)
def test_a_lesson_says_how_long_it_takes_and_leads_back_and_on(lesson: Path) -> None:
    lines = lesson.read_text(encoding="utf-8").splitlines()
    place = LESSONS.index(lesson)
    way = r"Back: \[[^\]]+\]\((\S+)\)\. Next: \[[^\]]+\]\((\S+)\)\."
    head = re.fullmatch(r"\*About \d+ minutes, and \d+ for the exercises\.\* " + way, lines[5])
    foot = re.fullmatch(way, lines[-1])
    assert head is not None, lines[5]
    assert foot is not None, lines[-1]
    assert head.groups() == foot.groups()
    before = LESSONS[place - 1].name if place else "../index.md"
    around = [before, *(each.name for each in LESSONS[place + 1 : place + 2])]
    assert [*head.groups()][: len(around)] == around

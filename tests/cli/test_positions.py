"""``structpe positions`` and ``structpe cite``."""

from __future__ import annotations

import json

import pytest

from structpe.cli.positions import Row
from structpe.encodings import ENCODINGS
from structpe.positions import MODELS, Cells, Dims, Spec
from tests.cli.running import complaint, output


def test_models_as_json() -> None:
    rows = {row["name"]: row for row in json.loads(output("positions", "--width", "32", "--heads", "4", "--json"))}
    assert set(rows) == set(MODELS)
    assert rows["learned"]["parameters"] == 512 * 32
    assert rows["sinusoidal"]["parameters"] == 0
    assert rows["t5"]["table1"]["params"] == "(2*t-1)*h"


def test_models_as_a_table() -> None:
    shown = output("positions", "--width", "32", "--heads", "4", "--layers", "3", "--notes")
    lines = shown.splitlines()
    header = lines[0]
    assert header.split()[:7] == ["structure", "model", "Ref", "Inj", "L", "Rec", "U"]
    assert "d=32 h=4 l=3" in header
    learned = next(line for line in lines if line.split()[1:2] == ["learned"])
    assert learned.split()[2:] == ["A", "APE", "y", "n", "n", "t*d,", "t=512", "16,384", "t*d", "=", "16,384"]
    assert learned.index("A ") == header.index("Ref"), "columns are aligned"
    assert "\x1b" not in shown, "no colours in a pipe"
    for name, model in MODELS.items():
        assert not model.spec.note or f"\n{name}: {model.spec.note}" in shown


def test_what_differs_from_the_survey_stands_in_brackets() -> None:
    ours = Cells("B", "MAM", learnable=True, recurring=True, unbound=False, params="R*h")
    survey = Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="2*(D_max+1)*h")
    row = Row("own", Spec("key", "graph", ours, survey), Dims(512, 8, 6), {"R": 1234}, 9872)
    marks = ["B (R)", "MAM", "y", "y", "n (y)"]
    assert row.cells() == ["graph", "own", *marks, "R*h, R=1234", "9,872", "2*(D_max+1)*h = 144"]


def test_every_formula_of_the_survey_comes_to_a_number() -> None:
    rows = json.loads(output("positions", "--json"))
    assert all((row["survey_parameters"] is None) == (row["table1"] is None) for row in rows)


def test_a_model_that_the_sizes_do_not_fit_is_explained() -> None:
    row = Row("own", next(iter(MODELS.values())).spec, Dims(512, 8, 6), {}, None, "needs an even width")
    assert row.cells()[8] == "-"
    assert complaint("positions", "--width", "7") == (
        "8 heads do not divide the width 7; the next that they divide is 8"
    )


def test_encodings() -> None:
    rows = {row["encoding"]: row for row in json.loads(output("positions", "--encodings", "--json"))}
    assert set(rows) == set(ENCODINGS)
    assert rows["distance"]["per"] == "pair"
    assert rows["distance"]["options"] == ["limit"]
    assert not [row for row in rows.values() if not row["about"] or ":class:" in row["about"]]


def test_cite() -> None:
    entries = output("cite", "t5", "shaw", "shaw-keys")
    assert entries.count("@") == 2
    assert "@article{raffel2020," in entries


@pytest.mark.parametrize(("given", "near"), [("t6", ""), ("rotry", " Did you mean 'rotary'?")])
def test_cite_of_an_unknown_model(given: str, near: str) -> None:
    message = complaint("cite", given)
    assert message.startswith(f"there is no position model named {given!r}.{near} Nearest of {len(MODELS)}: ")

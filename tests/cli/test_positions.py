"""``structpe positions``, ``structpe encodings`` and ``structpe cite``."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import Any

import pytest
import torch
from torch import nn

from structpe.cli.base import print_table
from structpe.cli.main import main
from structpe.cli.rows import EncodingRow, ModelRow
from structpe.encodings import ENCODINGS
from structpe.errors import EncodingError
from structpe.formats import tree
from structpe.positions import MODELS, Cells, Dims, PositionModel, Spec, build, describe
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from structpe.transforms import grid
from tests.cli.running import complaint, output
from tests.together import together

SMALL = ("--width", "16", "--heads", "2", "--layers", "2")
"""All models are built for each list, so that small ones are wanted."""
SMALLEST = {
    "sequence": path("pqr"),
    "tree": tree(["p", "q", "r"], heads=[2, 0, 2], labels=["u", "root", "v"]),
    "graph": Structure(("p", "q", "r"), [[0, 1], [1, 2], [2, 0]], ("u", "v", "u"), directed=False),
    "grid": grid((2, 2)),
}


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
    assert learned.split()[2:] == ["A", "APE", "y", "n", "n", "2019", "16,384", "t*d,", "t=512", "t*d", "=", "16,384"]
    assert learned.index("A ") == header.index("Ref"), "columns are aligned"
    assert "\x1b" not in shown, "no colours in a pipe"
    for name, model in MODELS.items():
        assert not model.spec.note or f"\n{name}: {model.spec.note}" in shown


def test_what_differs_from_the_survey_stands_in_brackets() -> None:
    ours = Cells("B", "MAM", learnable=True, recurring=True, unbound=False, params="R*h")
    survey = Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="2*(D_max+1)*h")
    row = ModelRow("own", Spec("key", "graph", ours, survey), {"R": 1234}, 9872, survey=144.0, year=2020)
    marks = ["B (R)", "MAM", "y", "y", "n (y)"]
    assert row.cells() == ["graph", "own", *marks, "2020", "9,872", "R*h, R=1234", "2*(D_max+1)*h = 144"]


@pytest.mark.slow
def test_every_formula_of_the_survey_comes_to_a_number() -> None:
    rows = json.loads(output("positions", "--json"))
    assert all((row["survey_parameters"] is None) == (row["table1"] is None) for row in rows)


def test_a_model_that_the_sizes_do_not_fit_is_explained() -> None:
    row = ModelRow("own", next(iter(MODELS.values())).spec, {}, None, "needs an even width")
    assert row.cells()[8] == "-"
    assert complaint("positions", "--width", "7") == (
        "8 heads do not divide the width 7; the next that they divide is 8"
    )


@pytest.mark.usefixtures("encodings_once")
def test_encodings() -> None:
    rows = {row["encoding"]: row for row in json.loads(output("encodings", "--json"))}
    assert set(rows) == set(ENCODINGS)
    assert [rows[each]["per"] for each in ("depth", "window", "distance")] == ["unit", "listed pair", "pair"]
    assert rows["distance"]["options"] == ["max_distance"]
    assert not [row for row in rows.values() if not row["about"] or ":class:" in row["about"]]


def test_cite() -> None:
    entries = output("cite", "t5", "shaw", "shaw-keys")
    assert entries.count("@") == 2
    assert "@article{raffel2020," in entries


@pytest.mark.parametrize(("given", "near"), [("t6", ""), ("rotry", " Did you mean 'rotary'?")])
def test_cite_of_an_unknown_model(given: str, near: str) -> None:
    message = complaint("cite", given)
    assert message.startswith(f"there is no position model named {given!r}.{near} Nearest of {len(MODELS)}: ")


@pytest.fixture(scope="module")
def every() -> list[dict[str, Any]]:
    """All rows as JSON, by which what is filtered is judged."""
    return list(json.loads(output("positions", "--json", *SMALL)))


def names(*words: str, capsys: pytest.CaptureFixture[str]) -> set[str]:
    assert main(["positions", *words, "--json", *SMALL]) == 0
    return {row["name"] for row in json.loads(capsys.readouterr().out)}


@pytest.mark.usefixtures("listed_once")
@together(
    "words, keeps",
    [
        ("--structure tree", lambda row: row["structure"] == "tree"),
        ("--structure tree --structure grid", lambda row: row["structure"] in ("tree", "grid")),
        ("--injection APE", lambda row: row["cells"]["injection"] == "APE"),
        ("--injection none", lambda row: row["cells"]["injection"] == "-"),
        ("--reference B", lambda row: row["cells"]["reference"] == "B"),
        ("--learnable --no-recurring", lambda row: row["cells"]["learnable"] and not row["cells"]["recurring"]),
        ("--unbound --structure graph", lambda row: row["cells"]["unbound"] and row["structure"] == "graph"),
        ("--decodes", lambda row: row["decodes"]),
        ("--no-decodes --structure sequence", lambda row: not row["decodes"] and row["structure"] == "sequence"),
        (
            "ROTARY --no-learnable",
            lambda row: "rotary" in f"{row['name']} {row['about']}".lower() and not row["cells"]["learnable"],
        ),
        ("raffel", lambda row: row["cite"] == "raffel2020"),
        ("nosuchthing", lambda row: False),
        ("*rope*", lambda row: "rope" in row["name"]),
        ("T?", lambda row: row["name"] == "t5"),
        ("[ab]l?bi tree", lambda row: False),
        ("--structure text", lambda row: row["structure"] == "sequence"),
        ("--structure image --structure tree", lambda row: row["structure"] in ("grid", "tree")),
    ],
)
def test_filters_keep_what_they_say(
    words: str, keeps: Callable[[dict[str, Any]], bool], every: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert names(*words.split(), capsys=capsys) == {row["name"] for row in every if keeps(row)}


def test_json_says_what_a_model_computes_and_which_options_it_takes(every: list[dict[str, Any]]) -> None:
    rows = {row["name"]: row for row in every}
    assert rows["t5"]["about"] == "T5's relative bias in logarithmic buckets (Raffel et al. 2020)"
    assert rows["t5"]["formula"].startswith("s_ij += b[bucket(r_ij)], one scalar per head and bucket; the table is")
    assert rows["t5"]["options"] == {
        "encoding": {"name": "offset"}, "num_buckets": 32, "max_distance": 128, "sharing": "layer-wise"
    }  # fmt: skip
    assert all("\n" not in row["formula"] and row["formula"] for row in every)


def test_what_is_built_from_the_options_in_json_is_the_same_model(every: list[dict[str, Any]]) -> None:
    dims = Dims(16, 2, 2)
    for row in every:
        if not row["problem"]:
            made = build({"name": row["name"], **row["options"]}, dims)
            assert json.loads(json.dumps(describe(made))) == {"name": row["name"], **row["options"]}
            assert row["parameters"] == sum(each.numel() for each in made.parameters())
            assert row["decodes"] == made.causal


def test_what_decodes_is_what_a_decoder_takes(every: list[dict[str, Any]]) -> None:
    decodes = {row["name"]: row["decodes"] for row in every}
    assert (decodes["graformer"], decodes["graformer-survey"], decodes["rotary"]) == (False, True, True)


@pytest.mark.usefixtures("listed_once")
def test_a_filtered_table_says_how_many_there_are() -> None:
    shown = output("positions", "--structure", "tree", *SMALL)
    assert re.search(rf"^(\d+) of {len(MODELS)} position models\.$", shown, re.MULTILINE)
    assert "position models." not in output("positions", *SMALL)


@pytest.mark.usefixtures("listed_once")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["rotry"], 1, "no position model has 'rotry'. Did you mean 'rotary'? Leave out a word or a filter"),
        (
            ["--structure", "grid", "--injection", "none", "--decodes"],
            1,
            "no position model has --structure grid --injection none --decodes. Leave out",
        ),
        (["--structure", "trees"], 2, "argument --structure: invalid choice: 'trees' (choose from 'sequence', "),
    ],
)
def test_filters_that_nothing_passes_are_explained(words: list[str], code: int, message: str) -> None:
    assert message in complaint("positions", *words, *SMALL, code=code)


@pytest.mark.usefixtures("encodings_once")
def test_no_such_encoding_is_explained() -> None:
    told = complaint("encodings", "nosuch", "word", "--per", "pair", "--structure", "text", code=1)
    assert "no encoding has 'nosuch' and 'word' and --structure text and --per pair" in told


@pytest.mark.usefixtures("listed_once")
@pytest.mark.parametrize("sort", ["structure", "name", "year", "cost"])
def test_rows_are_sorted(sort: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["positions", "--sort", sort, "--json", *SMALL]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in rows} == set(MODELS)
    if sort == "structure":
        assert list(dict.fromkeys(row["structure"] for row in rows)) == ["sequence", "grid", "tree", "graph"]
    elif sort == "name":
        assert [row["name"] for row in rows] == sorted(MODELS)
    else:
        by = [row["parameters" if sort == "cost" else "year"] for row in rows]
        known = [each for each in by if each is not None]
        assert known == sorted(known)
        assert by[: len(known)] == known
        assert len(known) > 160
        assert sort == "cost" or (min(known), known[-1] <= 2026) == (2017, True)


def asked_of_encodings(*words: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert main(["encodings", *words, "--json"]) == 0
    return list(json.loads(capsys.readouterr().out))


@pytest.fixture
def encodings_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of encodings, made once."""
    monkeypatch.setattr("structpe.cli.rows.encodings", lambda: _encodings())


@cache
def _encodings() -> list[EncodingRow]:
    return [EncodingRow.of(name, each) for name, each in ENCODINGS.items()]


@pytest.mark.usefixtures("encodings_once")
def test_encodings_are_chosen_and_sorted(capsys: pytest.CaptureFixture[str]) -> None:
    every = asked_of_encodings("--sort", "cost", capsys=capsys)
    per = [row["per"] for row in every]
    assert per == sorted(per, key=["unit", "listed pair", "pair"].index)
    for kind, structure in SMALLEST.items():
        taken = {row["encoding"] for row in every if kind in row["takes"]}
        found = asked_of_encodings("--structure", {"sequence": "text"}.get(kind, kind), capsys=capsys)
        assert {row["encoding"] for row in found} == taken
        for name, encoding in ENCODINGS.items():
            with nullcontext() if name in taken else pytest.raises(EncodingError):
                encode([structure], [encoding().fit([structure])])
    distances = asked_of_encodings("*distance", "--per", "pair", capsys=capsys)
    assert {row["encoding"] for row in distances} == {
        name for name in ENCODINGS if name.endswith("distance") and ENCODINGS[name].arity == 2
    }


class Terminal(io.StringIO):
    """Takes what is printed, as a terminal does."""

    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("listed_once", "encodings_once")
@pytest.mark.parametrize("width", [20, 40, 80, 130, 175, 400])
@pytest.mark.parametrize("words", [("positions", "--notes"), ("encodings",)])
def test_a_table_fits_the_terminal_and_loses_no_row(
    width: int, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys, "stdout", shown := Terminal())
    assert main(list(words)) == 0
    text = re.sub(r"\x1b\[\d*m", "", shown.getvalue())
    assert max(map(len, text.splitlines())) <= width
    assert width < 80 or (ENCODINGS if words == ("encodings",) else MODELS).keys() <= set(text.split())
    assert ("Not shown:" in text) == (width < 175)


def test_a_narrow_table_is_folded_at_spaces_and_then_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "22")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stdout", shown := Terminal())
    rows = [["a", "one two three four five", "12"], ["a", "Haltestellenschild", "3"], ["b", "日本語日本語日本", "4"]]
    assert print_table(["", "", "n"], rows, ["n"], [""]) == []
    monkeypatch.setenv("COLUMNS", "12")
    assert print_table(["", "x", "n", "y"], [[*row, "long"] for row in rows[:2]], optional=["y", "x"]) == ["y", "x"]
    assert shown.getvalue().splitlines() == [
        "                     n",
        "──────────────────────",
        "a  one two three    12",
        "   four five",
        "a  Haltestellensch   3",
        "   ild",
        "b  日本語日本語日    4",
        "   本",
        *("   n", "─────", "a  12", "a  3"),
    ]


@pytest.mark.usefixtures("encodings_once")
def test_encodings_are_searched_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encodings", "random", "walk", "--json"]) == 0
    found = {row["encoding"] for row in json.loads(capsys.readouterr().out)}
    assert "random-walk" in found
    assert found < set(ENCODINGS)


def test_a_model_without_a_spec_is_shown_with_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    class Bare(PositionModel, name="bare-of-a-test"):
        def __init__(self, dims: Dims) -> None:
            super().__init__(dims, [])
            self.one = nn.Parameter(torch.zeros(3))

    try:
        row = ModelRow.measured("bare-of-a-test", Dims(8, 2, 1))
        assert row.cells() == ["-", "bare-of-a-test", "-", "-", "-", "-", "-", "-", "3", "-", ""]
        assert main(["positions", "bare-of-a-test", *SMALL]) == 0
        assert "bare-of-a-test: its class has no Spec" in capsys.readouterr().out
        assert main(["positions", "bare-of-a-test", "--json", *SMALL]) == 0
        assert json.loads(capsys.readouterr().out)[0]["parameters"] == 3
        assert "Bare has no Spec, its row of Table 1, which is needed here" in complaint("cite", "bare-of-a-test")
    finally:
        MODELS.forget("bare-of-a-test")

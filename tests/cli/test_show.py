"""``structpe show``, ``structpe figure`` and ``structpe app``: from a file to a picture."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from structpe.cli import COMMANDS
from structpe.cli.main import main
from tests.cli.running import SAMPLE, complaint, output
from tests.datasets import SAMPLES
from tests.pictures.runs import predicted, written

TREES, MOLECULES = SAMPLES / "trees_sample" / "sample.conllu", SAMPLES / "molecules_sample" / "molecules.csv"


def test_a_picture_of_a_parse_and_a_model(tmp_path: Path) -> None:
    out = tmp_path / "tree.png"
    words: list[str | Path] = ["--index", "2", "--position", "graformer", "--encoding", "depth", "--out", out]
    assert output("show", TREES, *words) == f"{out}: sample.conllu:island-3\n"
    assert out.read_bytes().startswith(b"\x89PNG")


def test_a_page_of_a_molecule(tmp_path: Path) -> None:
    out = tmp_path / "molecule.html"
    position = "{name: t5, encoding: distance}"
    output(
        "show", MOLECULES, "--index", "30", "--encoding", "random-walk:steps=8", "--position", position, "--out", out
    )
    text = out.read_text(encoding="utf-8")
    assert "t5 at initialisation, seed 0: bias added to scores" in text
    assert "random-walk, steps 8" in text


@pytest.mark.slow
def test_a_trained_model(tmp_path: Path) -> None:
    run, out = written(tmp_path), tmp_path / "learned.svg"
    words: list[str | Path] = [
        "--reader",
        "amr",
        "--checkpoint",
        run,
        "--quantity",
        "attention",
        "--content",
        "own",
        "--out",
        out,
    ]
    run_here("show", SAMPLE / "test.txt", *words)
    assert out.read_text(encoding="utf-8").startswith("<?xml")
    run_here("figure", "rank", "--checkpoint", run, "--file", SAMPLE / "test.txt", "--reader", "amr", "--out", out)


def run_here(*words: str | Path) -> None:
    """A run that must succeed, in this process."""
    assert main([str(word) for word in words]) == 0


@pytest.mark.slow
def test_figures(tmp_path: Path) -> None:
    out = tmp_path / "figure.png"
    small: list[str | Path] = ["--width", "24", "--heads", "3", "--length", "24", "--out", out]
    shown = output("figure", "rank", "--position", "learned", "--position", "t5", *small)
    assert shown == f"{out}: rank of learned, t5\n"
    run_here("figure", "segments", "--position", "[diet-rel, segment-bias]", *small)
    assert out.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--index", "40"], 2, f"--index is 40, but {TREES} has 40 structures, 0..39"),
        (["--index", "-1"], 2, "--index is -1; structures are counted from 0"),
        (["--out", "picture.gif"], 2, "--out picture.gif has no known suffix; give a name that ends in .png"),
        (["--position", "graformr"], 2, "there is no position model named 'graformr'. Did you mean 'graformer'?"),
        (["--position", "[t5"], 2, "--position '[t5' cannot be read: it is not YAML: "),
        (["--position", "{name: t5, bukets: 3}"], 2, "position model 't5' has no option named 'bukets'"),
        (["--position", "t5", "--checkpoint", "run"], 2, "--position and --checkpoint both name a position model"),
        (["--checkpoint", "no-run"], 1, "no-run holds no config.yaml; give the folder of a run"),
        (["--quantity", "bias"], 2, "--quantity bias needs a position model; give --position or --checkpoint"),
        (["--position", "rotary", "--quantity", "bias"], 1, "the position model adds no bias to scores"),
        (["--position", "t5", "--content", "own"], 2, "--content own needs a trained model"),
        (["--encoding", "distanc"], 2, "there is no encoding named 'distanc'. Did you mean 'distance'?"),
        (["--encoding", "distance", "--slice", "1"], 1, "the slice is 1, but each pair has 1 numbers"),
        (
            ["--position", "{name: diet-rel, max_length: 2}", "--index", "2"],
            2,
            "island-3: position model 'diet-rel' has rows",
        ),
        (["--reader", "arm"], 1, "there is no reader named 'arm'"),
        (["--position", "t5", "--heads", "3"], 2, "3 heads do not divide the width 64"),
    ],
)
def test_mistakes_are_explained(
    words: list[str], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in complaint("show", TREES, *words, code=code)
    assert not list(tmp_path.iterdir())


def test_a_model_that_does_not_fit_the_structure(tmp_path: Path) -> None:
    told = complaint("show", MOLECULES, "--position", "t5", "--out", tmp_path / "a.png", code=1)
    assert told.startswith("molecules.csv:1: encoding 'offset': the structure has no reading order; give")


def test_a_checkpoint_of_another_task(tmp_path: Path) -> None:
    run = predicted(tmp_path, "rwse")
    words: list[str | Path] = ["--checkpoint", run, "--content", "own", "--out", tmp_path / "a.png"]
    told = complaint("show", MOLECULES, *words, code=1)
    assert told.startswith(f"{run} holds a run of prediction, which has learned the features of its benchmark")
    for name in ("position.json", "signature.json"):
        (run / name).unlink()
    told = complaint("show", MOLECULES, "--checkpoint", run, code=1)
    assert told.startswith(f"{run} holds no files of a run of graph-to-text")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rank"], "give a model: either --position, once or more, or --checkpoint"),
        (["rank", "--position", "t5", "--out", "a.html"], "--out a.html has no known suffix"),
        (["rank", "--position", "t5", "--length", "1"], "--length is 1; give 2 to 1000"),
        (["rank", "--checkpoint", "run"], "a trained model reads a structure: give --file"),
        (["pattern", "--position", "t5", "--position", "alibi"], "the figure 'pattern' is of one position model"),
        (["segments", "--position", "t5", "--file", "x"], "the figure 'segments' is of a sequence of two segments"),
        (["ranks", "--position", "t5"], "argument figure: invalid choice: 'ranks'"),
    ],
)
def test_mistakes_with_figures_are_explained(words: list[str], message: str) -> None:
    assert message in complaint("figure", *words)


def test_figures_of_models_without_one() -> None:
    assert "adds nothing to the input" in complaint("figure", "similarity", "--position", "t5", code=1)
    assert "no softmax over all pairs: mask" in complaint("figure", "rank", "--position", "alibi-causal", code=1)


def test_the_app_without_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert (
        complaint("app", tmp_path / "none.conllu")
        == f"{tmp_path / 'none.conllu'}: there is no such file or folder; check the path"
    )
    assert complaint("app", "--port", "0") == "--port is 0; give one of 1..65535"
    monkeypatch.setitem(sys.modules, "starlette", None)
    told = complaint("app", code=1)
    assert told == "'starlette' is needed for this and is not installed: pip install 'structpe[app]'"


def test_a_picture_is_whole_or_absent(tmp_path: Path) -> None:
    told = complaint("show", TREES, "--out", tmp_path / "no" / "picture.png", code=1)
    assert "No such file or directory; check the path, and that its folder exists" in told


@pytest.mark.parametrize("name", ["show", "figure", "app"])
def test_help_has_examples(name: str) -> None:
    assert COMMANDS[name].example.partition("\n")[0].removesuffix("\\").strip() in output(name, "--help")

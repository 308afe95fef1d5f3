"""Every example in the help of every command runs, one after another in one folder."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from tokenizers import Tokenizer, models, pre_tokenizers

from structpe.cli import COMMANDS
from structpe.cli.main import main
from structpe.datasets import Corpus, card
from structpe.parsing import Plan
from structpe.parsing.gold import gold_items
from structpe.tasks.config import make, save
from structpe.tasks.prediction import run_all
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.study import Key, StudyConfig
from structpe.tasks.runs import load_config, run_of
from tests.datasets import SAMPLES
from tests.modules import ROOT
from tests.parsing.conftest import parser  # noqa: F401, a fixture
from tests.representatives import only
from tests.tasks.prediction.test_report import finished
from tests.tasks.prediction.tiny import MODEL, TRAINING

FEW = {"--steps": "1", "--training.steps": "1", "--training.hardware.jobs": "1", "--jobs": "1", "--beam": "2"}
"""Values of options that only take more time; other tests are of them."""
TRAINED = {
    "steps": 2,
    "batch_size": 4,
    "optimiser": {"warmup": 1},
    "validation": {"every": 2},
    "checkpoint_every": 2,
    "hardware": {"accelerator": "cpu"},
}
SMALL: dict[str, Any] = {
    "model": {"width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feedforward": 16},
    "prepare": {"graph": "levi", "vocabulary": 300},
    "training": TRAINED,
    "search": {"beam": 2, "longest": 4},
}


def commands(example: str) -> list[list[str]]:
    """The words of each command line, without what the shell does with comments and ``>``."""
    lines = (shlex.split(line, comments=True) for line in example.replace("\\\n", " ").splitlines())
    return [words[1 : words.index(">")] if ">" in words else words[1:] for words in lines]


def few(words: list[str]) -> list[str]:
    for option, value in FEW.items():
        if option in words:
            words[words.index(option) + 1] = value
    takes = words[0] == "demo" or "--train" in words
    return [*words, "--steps", "1"] if takes and "--steps" not in words else words


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the examples read: the samples, small configurations, and files of one's own."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "examples").mkdir()
    shutil.copytree(SAMPLES, folder / "datasets", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("amr", "kg", "facts"):
        plain = yaml.safe_load((ROOT / "examples" / f"{name}.yaml").read_text(encoding="utf-8")) | SMALL
        plain["data"]["train"] = plain["data"]["dev"]
        (folder / "examples" / f"{name}.yaml").write_text(yaml.safe_dump(plain), encoding="utf-8")
    study = yaml.safe_load((ROOT / "examples" / "study.yaml").read_text(encoding="utf-8"))
    (folder / "examples" / "study.yaml").write_text(yaml.safe_dump(study | {"training": TRAINED}), encoding="utf-8")
    trees = SAMPLES / "trees_sample" / "sample.conllu"
    (folder / "treebank").mkdir()
    for name in ("train", "dev", "test", "treebank/a"):
        blocks = trees.read_text(encoding="utf-8").strip().split("\n\n")
        (folder / f"{name}.conllu").write_text("".join(f"{enhanced(each)}\n\n" for each in blocks), encoding="utf-8")
    shutil.copy(SAMPLES / "kg_sample" / "test.xml", folder / "facts.xml")
    (folder / "mine.tsv").write_text("id\ts\tp\to\tSentence\n1\tOsk\tteacher\tIda\tIda taught Osk.\n", encoding="utf-8")
    (folder / "trees.txt").write_text("( (S (NP-1 (-NONE- *)) (NP (NNP Mira)) (VP (VBD slept))) )\n", encoding="utf-8")
    (folder / "text.txt").write_text("The keeper slept.\n", encoding="utf-8")
    (folder / "new.csv").write_text("name,smiles\nwater,O\nethane,CC\n", encoding="utf-8")
    (folder / "new.smi").write_text("O water\nCC ethane\n", encoding="utf-8")
    bytes_ = Tokenizer(models.BPE({each: n for n, each in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    bytes_.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_.save(str(folder / "tokenizer.json"))
    (folder / "release").mkdir()
    return folder


def enhanced(block: str) -> str:
    """A sentence whose enhanced graph is its tree."""
    rows = [line.split("\t") for line in block.split("\n")]
    for row in rows:
        if len(row) == 10 and row[0].isdigit():
            row[8] = f"{row[6]}:{row[7]}"
    return "\n".join("\t".join(row) for row in rows)


@pytest.fixture
def place(world: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In that folder, without a browser and the network, and with the parser of the examples as the default."""
    monkeypatch.chdir(world)
    monkeypatch.setattr(run_all, "get_context", lambda how: get_context("fork"))
    monkeypatch.setattr("structpe.cli.app.webbrowser.open", lambda address: True)
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: None)
    monkeypatch.setattr("structpe.datasets.get", lambda name, to, *rest: Corpus(card(name), Path(to or "release")))
    monkeypatch.setattr("structpe.datasets.verify", lambda corpus, *rest: SimpleNamespace(
        files=[SimpleNamespace(word="ok", name="a", detail="", there=True, good=True)], splits=[], good=True
    ))  # fmt: skip
    monkeypatch.setattr("structpe.parsing.models.DEFAULT", "parser")
    return world


def _needed(name: str, world: Path, request: pytest.FixtureRequest) -> None:
    """Make what the examples of a command need of the others, once."""
    if name == "evaluate" and not (world / "parser").exists():
        shutil.copytree(request.getfixturevalue("parser"), world / "parser")
    if name in ("evaluate", "predict", "serve") and not (world / "runs" / "solubility").exists():
        table = world / "table"
        table.mkdir()
        rows = "".join(f"{'C' * n}O,{n}.0\n" for n in range(1, 21))
        (table / "table.csv").write_text(f"smiles,soluble\n{rows}", encoding="utf-8")
        options = {"file": "table.csv", "targets": ["soluble"]}
        plain = {"data": {"name": "smiles", "folder": "table", "options": options}, "position": "rwse", "model": MODEL}
        trained = {"training": {**TRAINING, "steps": 4}, "out": "runs/solubility"}
        run_of(make(PredictionConfig, plain | trained)).train()
    if name == "serve":
        (world / "token.txt").write_text("0123456789abcdef", encoding="utf-8")
    if name in ("app", "evaluate", "generate", "serve", "show") and not (world / "runs" / "kg").exists():
        for of in ("kg", "amr"):
            run_of(load_config(f"examples/{of}.yaml")).train()


@pytest.fixture
def quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings check what they are given and make nothing new; that they train, the slow test and others see."""

    def checked(config: Any, fresh: bool) -> None:
        run_of(config).check()
        assert run_of(config).read()

    def made(study: StudyConfig, keys: Sequence[Key], *rest: object) -> list[object]:
        for key in keys:
            finished(study, key, 0.1 * key.seed)
            save(study.run(key), study.folder(key) / "config.yaml")
        return []

    def copied(plan: Plan, out: Path, report: object) -> None:
        assert list(gold_items([*plan.files, *plan.dev]))
        shutil.copytree(request.getfixturevalue("parser"), out)  # which takes its time to be trained

    monkeypatch.setattr("structpe.tasks.runs.train", checked)
    monkeypatch.setattr("structpe.tasks.prediction.run_all.run_all", made)
    monkeypatch.setattr("structpe.parsing.train", copied)
    monkeypatch.setattr("structpe.tasks.demo.error_after", lambda position, steps: 1.0)
    monkeypatch.setattr("structpe.tasks.demo.written", lambda steps, out: ([], 0))


LONGER = ("app", "evaluate", "explain", "figure", "parse", "predict", "serve", "show")
"""Those for which something is trained or drawn; the tests of these commands do so too."""


@pytest.mark.usefixtures("place", "quick", "listed_once")
@pytest.mark.parametrize("name", only(COMMANDS, *(name for name in COMMANDS if name not in LONGER)))
def test_the_examples_run(
    name: str, world: Path, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]
) -> None:
    _needed(name, world, request)
    _run(name, capfd)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("name", ["train", "study", "parse", "demo"])
def test_the_examples_train(name: str, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for made in ("runs", "parser"):
        shutil.rmtree(place / made, ignore_errors=True)
    _run(name, capfd)


def _run(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    for words in sorted(commands(COMMANDS[name].example), key=lambda words: "--train" not in words):  # others need it
        try:
            code = main(few(words))
        except SystemExit as end:  # of what only lists
            code = end.code
        assert code == 0, f"structpe {shlex.join(words)}\n{capfd.readouterr().err}"

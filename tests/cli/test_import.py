"""Models, encodings and readers in a file of the user's own, on the command line and in configurations."""

from __future__ import annotations

from pathlib import Path

import pytest

import structpe
from structpe.data.store import load
from structpe.errors import ConfigError, StoreError
from structpe.registry import IMPORTS, check_imported, import_code
from structpe.tasks.runs import load_config
from tests.cli.running import complaint, new_process, output
from tests.cli.running import structpe as command

OWN = '''
from dataclasses import dataclass

import numpy as np
import torch

import structpe
from structpe.encodings import Encoded, Encoding, UndirectedDistance
from structpe.formats import Item, reader


@dataclass(frozen=True)
class Parity(Encoding, name="own-parity"):
    """Whether the number of a unit is odd."""

    arity = 1

    def one(self, structure):
        return Encoded(np.arange(structure.unit_count, dtype=np.int64) % 2)


class Slope(structpe.PositionModel, name="own-slope"):
    """A learned slope per head."""

    def __init__(self, dims: structpe.Dims) -> None:
        super().__init__(dims, [UndirectedDistance()])
        self.slope = torch.nn.Parameter(torch.ones(dims.heads))

    def terms(self, prepared, site):
        return structpe.Terms(bias=(prepared[self.encodings[0]].map(lambda d: -d[:, None].clamp(max=9) * self.slope),))


@reader("own-words", suffixes=".words")
def words(path):
    """A sequence in each line."""
    for number, line in enumerate(path.read_text().splitlines()):
        yield Item(structpe.path(line.split()), id=str(number))
'''

STUDY = """
imports: [own.py]
data: {family: {name: knowledge-graph, folder: family}}
models: {small: {width: 8, layers: 1, heads: 2, attention: {}, message_passing: gine, readout: complex}}
positions: {own: own-slope}
training: {steps: 2, batch_size: 16, optimiser: {warmup: 1}, hardware: {accelerator: cpu}}
out: study
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(IMPORTS, "")  # what was not there is removed afterwards, whatever a test imports
    return tmp_path


def test_what_a_file_adds_is_there_by_name(folder: Path) -> None:
    (folder / "a.words").write_text("a b c\nd e\n", encoding="utf-8")
    output("encode", "a.words", "--encoding", "own-parity", "--out", "stored", "--import", "own.py")
    with pytest.raises(
        StoreError, match=r"'own-parity', .*; import its code \(structpe\.import_code\), or encode again"
    ):
        load("stored")
    assert "own-parity" in output("encodings", "own", "--import", "own.py")
    assert "no encoding has 'own-parity'" in complaint("encodings", "own-parity", code=1)


@pytest.mark.slow
def test_processes_that_are_started_have_it_too(folder: Path) -> None:
    """Spawned workers encode with a class of the file, and processes of a study build its model."""
    (folder / "a.words").write_text("a b c\nd e\n" * 20, encoding="utf-8")
    for jobs in ("1", "2"):
        words = ("encode", "a.words", "--encoding", "own-parity", "--import", "own.py", "--jobs", jobs, "--out")
        done = new_process(*words, f"stored-{jobs}", folder=folder)
        assert done.returncode == 0, done.stderr
    one, two = (sorted((folder / f"stored-{jobs}").glob("*.safetensors")) for jobs in "12")
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in two] != []
    (folder / "family").mkdir()
    for place, part in enumerate(("valid", "test", "train")):
        facts = "".join(f"p{i}\tparent\tp{i + 1}\n" for i in range(36) if min(i * 7 % 12, 2) == place)
        (folder / "family" / f"{part}.txt").write_text(facts, encoding="utf-8")
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    done = new_process("study", "study.yaml", "--jobs", "2", "--seeds", "[0, 1]", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "| small | own | 2 |" in done.stdout


@pytest.mark.slow
def test_a_run_says_which_code_it_needs_and_does_not_run_it(folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"graph": "(a / b :ARG0 (c / d))", "text": "b d"}\n' * 8, encoding="utf-8")
    sample = Path(structpe.sample("amr_sample/dev.txt")).resolve()
    few = ["--prepare.vocabulary", "300", "--model.width", "8", "--model.heads", "2", "--training.steps", "1"]
    few += ["--model.encoder_layers", "1", "--model.decoder_layers", "1", "--training.optimiser.warmup", "1"]
    (folder / "a.yaml").write_text(f"data: {{train: {sample}}}\nposition: own-slope\n", encoding="utf-8")
    output("train", "a.yaml", *few, "--out", "run", "--import", "own.py")
    assert "imports:\n- own.py\n" in (folder / "run" / "config.yaml").read_text(encoding="utf-8")
    needs = "it needs the code of own.py, which is not imported; if you trust it, give --import own.py, or call "
    done = command("generate", "run", sample)
    assert (done.returncode, done.stderr.startswith(f"structpe: run/config.yaml: {needs}")) == (2, True), done.stderr
    assert output("generate", "run", sample, "--beam", "1", "--import", "own.py")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("absent.py", None, r"there is no file .*absent\.py to import; check the path"),
        ("broken.py", "1 / 0", r"broken\.py cannot be imported \(ZeroDivisionError: division by zero\); correct it"),
        ("json.py", "", r"json\.py has the name of another module, 'json'; give the file another name"),
        (
            "taken.py",
            "import structpe\nclass Own(structpe.PositionModel, name='alibi'): pass\n",
            r"taken\.py: two position models are named 'alibi'",
        ),
        ("no.such.module", None, r"no\.such\.module cannot be imported \(ModuleNotFoundError: No module named 'no'\)"),
    ],
)
def test_what_cannot_be_imported(folder: Path, name: str, text: str | None, message: str) -> None:
    if text is not None:
        (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(structpe.StructPEError, match=message):
        import_code(str(folder / name) if name.endswith(".py") else name)
    if name == "no.such.module":
        assert name in complaint("positions", "t5", "--import", name)


def test_a_module_that_is_imported_is_enough(folder: Path) -> None:
    check_imported(["json", "some/where/json.py", "structpe"])
    with pytest.raises(ConfigError, match=r"the code of own\.py, .*structpe\.import_code\('own\.py'\) first: either"):
        check_imported(["own.py"])
    with pytest.raises(ConfigError, match=r"there is no file gone\.py to import"):
        load_config({"imports": ["gone.py"], "data": {"train": "a.txt"}})
    with pytest.raises(ConfigError, match="imports"):
        load_config({"imports": "json", "data": {"train": "a.txt"}})
    assert load_config({"imports": ["json"], "data": {"train": "a.txt"}}).imports == ["json"]


def refused(name: str, code: str, *words: str, status: int = 1) -> str:
    """What a command says with code of one's own, in a fork, which leaves nothing in the registries of this process."""
    Path(f"{name}.py").write_text(code.replace("own-", f"{name}-"), encoding="utf-8")
    Path("a.txt").write_text("(a / b)\n", encoding="utf-8")
    got = command("encode", "a.txt", *words, "--out", "stored", "--import", f"{name}.py")
    assert (got.returncode, got.stdout) == (status, ""), got.stderr
    return got.stderr.removeprefix("structpe: ").rstrip("\n")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_error_in_code_of_ones_own_names_its_line(folder: Path, jobs: str) -> None:
    broken = OWN.replace("structure.unit_count", "cuont")
    line = 1 + broken[: broken.index("cuont")].count("\n")
    assert refused("wrong", broken, "--reader", "amr", "--encoding", "wrong-parity", "--jobs", jobs) == (
        f"{folder / 'wrong.py'}, line {line}, in one of 'wrong-parity': NameError: name 'cuont' is not defined; this "
        f"is in your code, correct it; add --debug to see the traceback"
    )


def test_an_error_in_a_reader_of_ones_own_names_its_line(folder: Path) -> None:
    broken = OWN.replace("path.read_text", "path.raed_text")
    told = refused("unread", broken, "--reader", "unread-words", "--encoding", "order")
    line = 1 + broken[: broken.index("raed")].count("\n")
    assert told.startswith(f"{folder / 'unread.py'}, line {line}, in words: AttributeError: ")


def test_an_encoding_without_arity_is_told_when_its_class_is_defined(folder: Path) -> None:
    told = refused("lacking", OWN.replace("    arity = 1\n", ""), "--encoding", "lacking-parity")
    assert told == (
        f"{folder / 'lacking.py'}: encoding 'lacking-parity' does not say whether it is of units or of pairs; add to "
        f"the class arity = 1, or arity = 2"
    )


def test_code_that_fails_when_it_is_imported_names_its_line(folder: Path) -> None:
    told = refused("failing", "import structpe\n\nundefined\n", "--encoding", "order", status=2)
    file = folder / "failing.py"
    assert told == (
        f"{file}, line 3: {file} cannot be imported (NameError: name 'undefined' is not defined); correct it"
    )


def test_code_that_is_not_python_is_quoted(folder: Path) -> None:
    told = refused("unfinished", "import structpe\n\nx = (3\n", "--encoding", "order", status=2)
    assert told.endswith("(SyntaxError: '(' was never closed (unfinished.py, line 3): x = (3); correct it")


def test_a_class_without_a_name_is_told_where_its_name_is_not_known(folder: Path) -> None:
    without = OWN.replace(', name="own-parity"', "").replace(', name="own-slope"', "")
    told = refused("nameless", without, "--encoding", "parity", status=2)
    file = folder / "nameless.py"
    assert told.endswith(
        f'; {file} defines Parity(Encoding) without a name: write class Parity(Encoding, name="parity")'
    )
    assert told.count(" defines ") == 1, "the position model is of another registry"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["encode", "a.txt", "--reader", "amr", "--out", "stored", "--encoding", "distanc"], 2),
        (["encode", "a.txt", "--reader", "arm", "--out", "stored", "--encoding", "distance"], 1),
        (["cite", "own-shaw"], 2),
    ],
)
def test_an_unknown_name_says_how_ones_own_is_imported(folder: Path, words: list[str], code: int) -> None:
    (folder / "a.txt").write_text("(a / b)\n", encoding="utf-8")
    told = complaint(*words, code=code)
    assert told.endswith("; one of your own is imported by --import FILE (imports: in a configuration)")
    assert told.count("of your own") == 1
    assert "Did you mean" in told


def test_a_command_is_not_imported() -> None:
    assert "of your own" not in complaint("pasre", code=2)

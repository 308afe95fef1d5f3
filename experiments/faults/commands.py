"""The commands that faults are tried on: their tiny inputs, what they give, and how that is read again."""

from __future__ import annotations

import atexit
import csv
import json
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import penman  # noqa: F401  --what commands load is loaded once, before they are forked
import threadpoolctl  # noqa: F401
import yaml
from processes import Process
from safetensors.torch import load_file

from structpe.cli.main import main
from structpe.data import chunks, store
from structpe.datasets import catalogue
from structpe.errors import StructPEError, explained
from structpe.system.processes import ending
from structpe.tasks.prediction import run_all
from structpe.tasks.prediction.report import Outcome
from structpe.tasks.runs import load_config, train
from structpe.tasks.runs.text import GraphToTextRun
from structpe.tasks.training.result import load_weights

SAMPLES = Path(__file__).parents[2] / "datasets"
SHARD = 20
"""Structures of a shard, so that a store of the sample has several."""


class Command(NamedTuple):
    """A command that is run in a folder of its own.

    Attributes:
        name: in tables.
        lay: puts the inputs into the folder.
        run: does it, in a process whose current folder that is; the exit code.
        made: what it makes there, by patterns; removing these begins afresh.
        guarded: of these the files in which a changed bit must be noticed.
        use: reads what was made, and raises a StructPEError where it is damaged.
        within: folders into which files of a user are put that have names as of temporary files.
    """

    name: str
    lay: Callable[[Path], None]
    run: Callable[[], int]
    made: tuple[str, ...]
    guarded: tuple[str, ...] = ()
    use: Callable[[Path], object] | None = None
    within: tuple[str, ...] = (".",)

    def afresh(self, folder: Path) -> None:
        """Remove what was made."""
        for pattern in self.made:
            for path in list(folder.glob(pattern)):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        self.lay_foreign(folder)

    def lay_foreign(self, folder: Path) -> None:
        """Put files of a user beside what is to be made: they must be there, unchanged, at the end."""
        (folder / "precious").mkdir(exist_ok=True)
        (folder / "precious" / "thesis.txt").write_text("years", encoding="utf-8")
        for each in self.within:
            place = folder / each
            (place / ".notes.tmp").mkdir(parents=True, exist_ok=True)
            (place / ".notes.tmp" / "mine").write_text("mine", encoding="utf-8")
            if not (place / ".linked.tmp").is_symlink():
                (place / ".linked.tmp").symlink_to(os.path.relpath(folder / "precious", place))

    def result(self, folder: Path) -> dict[str, Any]:
        """All files but the inputs, by name, without what the clock decides."""
        inputs = {"inputs"}
        found: dict[str, Any] = {}
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.is_file() and name.split("/")[0] not in inputs and "/tensorboard/" not in name:
                found[name] = content_of(path)
        return of_newest_checkpoint(found)


def content_of(path: Path) -> Any:
    """What must be the same in each run; None where only that the file is there must be."""
    if path.name == "result.json":
        return timeless(json.loads(path.read_text(encoding="utf-8")))
    if path.name == "table.csv":
        rows = list(csv.DictReader(path.open(encoding="utf-8")))
        return [[row[key] for key in ("data", "model", "position", "seeds", "test", "valid")] for row in rows]
    if path.name in TIMED or path.suffix == ".png" or path.name.endswith(".seconds.json"):
        return None
    if "/checkpoints/" in path.as_posix():
        return None if path.name != "tensors.safetensors" else digest(load_file(path))
    return path.read_bytes()


TIMED = ("log.txt", "table.md", "state.json", "SHA256SUMS", ".structpe.json")


def digest(tensors: dict[str, Any]) -> str:
    """All tensors but those of costs, which the clock decides."""
    return str({name: (t.shape, t.double().sum().item()) for name, t in sorted(tensors.items()) if "Cost" not in name})


def timeless(value: Any) -> Any:
    """A result without times, memory and checksums."""
    if isinstance(value, dict):
        clock = ("step_seconds", "seconds", "cpu_seconds", "peak_bytes", "sha256", "encoding_seconds", "versions")
        return {key: timeless(each) for key, each in value.items() if key not in clock}
    return value


def of_newest_checkpoint(found: dict[str, Any]) -> dict[str, Any]:
    """Which checkpoints came before the last depends on when a signal came."""
    steps = sorted({step for name in found for step in re.findall(r"checkpoints/(step-\d+)/", name)})
    return {name: each for name, each in found.items() if not any(f"/{step}/" in name for step in steps[:-1])}


def _text(folder: Path) -> None:
    for split, count in (("train", 16), ("dev", 4)):
        graphs = (SAMPLES / "amr_sample" / f"{split}.txt").read_text(encoding="utf-8").strip().split("\n\n")
        (folder / "inputs").mkdir(exist_ok=True)
        (folder / "inputs" / f"{split}.txt").write_text("\n\n".join(graphs[:count]) + "\n", encoding="utf-8")
    config = {
        "data": {"train": "inputs/train.txt", "dev": "inputs/dev.txt", "reader": "amr"},
        "prepare": {"vocabulary": 300},
        "model": {"width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feedforward": 32},
        "position": "t5",
        "training": {**TRAINING, "batch_size": 6},
        "search": {"beam": 1, "longest": 8},
        "out": "run",
    }
    (folder / "inputs" / "text.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


TRAINING = {
    "steps": 8,
    "optimiser": {"warmup": 2},
    "validation": {"every": 3},
    "checkpoint_every": 2,
    "logs": {"every": 1},
    "hardware": {"accelerator": "cpu"},
}
MODEL = {"width": 8, "layers": 1, "heads": 2, "feedforward": 16}


def _molecules(folder: Path) -> None:
    (folder / "inputs").mkdir()
    lines = (SAMPLES / "diameters_sample" / "molecules.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "inputs" / "molecules.csv").write_text("".join(lines[:60]), encoding="utf-8")
    data = {"name": "smiles", "folder": "inputs", "options": {"file": "molecules.csv", "targets": ["diameter"]}}
    single = {"data": data, "model": MODEL, "position": "rwse", "training": TRAINING, "out": "runs/one"}
    study = {
        "data": {"diameters": data},
        "models": {"gps": MODEL},
        "positions": {"walks": "rwse"},
        "training": TRAINING,
        "out": "runs",
    }
    for name, config in (("one", single), ("study", study)):
        (folder / "inputs" / f"{name}.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def _predict() -> int:
    try:
        with ending():
            train(load_config("inputs/one.yaml"))
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        print(f"structpe: {explained(error, '')}", file=__import__("sys").stderr)
        return 1
    return 0


def _study() -> int:
    # Its processes are forks of this one, where what takes seconds to import is imported already.
    run_all.get_context = lambda way: multiprocessing.get_context("fork")  # type: ignore[assignment]
    return main(["study", "inputs/study.yaml"])


def _graphs(folder: Path) -> None:
    (folder / "inputs").mkdir()
    whole = (SAMPLES / "amr_sample" / "train.txt").read_text(encoding="utf-8")
    (folder / "inputs" / "graphs.txt").write_text(whole, encoding="utf-8")


def _encode() -> int:
    chunks.STRUCTURES = SHARD
    words = "encode inputs/graphs.txt --reader amr --encoding distance:max_distance=8 --encoding random-walk:steps=4"
    return main([*words.split(), "--out", "store"])


def _encode_by_two() -> int:
    # Its workers are new processes, as in use; without this they would import this program first.
    program = sys.modules["__main__"]
    program.__dict__.pop("__file__", None)
    program.__spec__ = None
    chunks.STRUCTURES = SHARD
    words = "encode inputs/graphs.txt --reader amr --encoding distance:max_distance=8 --out store --jobs 2"
    return main(words.split())


def _generate() -> int:
    return main(["generate", "inputs/run", "inputs/dev.txt", "--device", "cpu", "--out", "texts.txt"])


def _predict_table() -> int:
    return main(["predict", "inputs/run", "inputs/molecules.csv", "--device", "cpu", "--out", "predicted.csv"])


@cache
def trained(name: str) -> Path:
    """A folder with a finished run, which generating or predicting begins with."""
    folder = Path(tempfile.mkdtemp(prefix="faults-trained-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    command = COMMANDS[name]
    command.lay(folder)
    ended = Process(command.run, folder).end()
    if ended.code:
        raise SystemExit(f"{name} does not work even undisturbed, exit code {ended.code}: {ended.said}")
    return folder


def _trained_text(folder: Path) -> None:
    shutil.copytree(trained("train, text") / "run", folder / "inputs" / "run")
    shutil.copy(trained("train, text") / "inputs" / "dev.txt", folder / "inputs")


def _trained_prediction(folder: Path) -> None:
    made = trained("train, prediction")
    shutil.copytree(made / "runs" / "one", folder / "inputs" / "run")
    shutil.copy(made / "inputs" / "molecules.csv", folder / "inputs")


def _convert() -> int:
    return main(["convert", "inputs/graphs.txt", "graphs.amr", "--reader", "amr", "--writer", "amr"])


def _nothing(folder: Path) -> None:
    (folder / "inputs").mkdir()


def _get() -> int:
    card = json.loads(CARD.read_text(encoding="utf-8"))
    catalogue._data = lambda: {"faults": card}  # type: ignore[assignment]
    return main(["data", "get", "faults", "--to", "sets"])


CARD = Path("inputs/card.json")


def _verify(folder: Path) -> None:
    from structpe.datasets import verify
    from structpe.datasets.catalogue import Corpus, card_of

    card = card_of(json.loads((folder / CARD).read_text(encoding="utf-8")), "faults")
    report = verify(Corpus(card, folder / "sets" / "faults"))
    if not report.good:
        raise StructPEError("; ".join(f"{state.name}: {state.word}" for state in report.files if not state.good))


def _read_prediction(folder: Path) -> None:
    for file in folder.glob("runs/**/model.safetensors"):
        Outcome.load(file.parent)
        load_weights(file, "train afresh")


def _read_store(folder: Path) -> None:
    for row in store.load(folder / "store"):
        for encoded in row.values():
            assert encoded is not None


RUN = ("model.safetensors", "config.yaml", "result.json", "SHA256SUMS", "checkpoints/*/*")
COMMANDS = {
    each.name: each
    for each in (
        Command("train, text", _text, lambda: main(["train", "inputs/text.yaml"]), ("run", ".run.tmp"),
                tuple(f"run/{name}" for name in (*RUN, "tokenizer.json", "prepare.json", "positions.json")),
                lambda folder: GraphToTextRun.of(folder / "run").load(), (".", "run")),
        Command("train, prediction", _molecules, _predict, ("runs", ".runs.tmp"),
                tuple(f"runs/one/{name}" for name in (*RUN, "position.json")), _read_prediction, (".", "runs/one")),
        Command("study", _molecules, _study, ("runs", ".runs.tmp"),
                tuple(f"runs/*/*/*/*/{name}" for name in (*RUN, "position.json")), _read_prediction),
        Command("encode", _graphs, _encode, ("store", "store.tmp", ".store.tmp"),
                ("store/*", "store.tmp/*.safetensors", ".store.tmp/**/*.safetensors"), _read_store),
        Command("convert", _graphs, _convert, ("graphs.amr", ".graphs.amr.tmp")),
        Command("data", _nothing, _get, ("sets",), ("sets/faults/*.txt",), _verify,
                (".", "sets/faults")),
    )
}  # fmt: skip
KILLED = {
    each.name: each
    for each in (
        Command("encode, two jobs", _graphs, _encode_by_two, ("store", "store.tmp", ".store.tmp"), (), _read_store),
        Command("generate", _trained_text, _generate, ("texts.txt", ".texts.txt.tmp")),
        COMMANDS["convert"],
        Command("predict", _trained_prediction, _predict_table, ("predicted.csv", ".predicted.csv.tmp")),
    )
}
"""Commands of the campaign of kills alone."""

"""A run goes on with what it began with, from a checkpoint that is whole; a signal lets it end with one."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from structpe.data.batch import Batch
from structpe.data.prepare import Preparer, StructureWithText
from structpe.errors import StoreError
from structpe.tasks.graph_to_text.config import GraphToTextConfig
from structpe.tasks.runs import train
from tests.representatives import only
from tests.tasks.graph_to_text.tiny import changed, tiny


@pytest.fixture(autouse=True)
def _hears_ctrl_c() -> Iterator[None]:
    """Also where tests run in the background of a shell, which lets Ctrl-C be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Interrupted(NamedTuple):
    """A run with checkpoints after steps 2 and 4, which has not written down that it has ended; and what it gave."""

    config: GraphToTextConfig
    weights: bytes
    metrics: bytes


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Interrupted:
    config = tiny(
        tmp_path_factory.mktemp("run"), steps=4, validation={"every": 1}, checkpoint_every=2, logs={"every": 1}
    )
    train(config)
    folder = Path(config.out)
    (folder / "result.json").unlink()
    return Interrupted(config, (folder / "model.safetensors").read_bytes(), (folder / "metrics.csv").read_bytes())


@pytest.fixture
def copied(interrupted: Interrupted, tmp_path: Path) -> Interrupted:
    shutil.copytree(interrupted.config.out, tmp_path / "run")
    return interrupted._replace(config=changed(interrupted.config, out=str(tmp_path / "run")))


def edited(file: str, old: str, new: str) -> Callable[[], object]:
    """Replace a text in a file where it stands first; what is returned undoes it."""
    path = Path(file)
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new, 1))
    return lambda: path.write_text(content)


EDITS = [
    ("train", ":ARG0", ":ARG9", "relation labels? of the training graphs|node labels of the training graphs"),
    ("train", "::snt ", "::snt Oh ", "began: training texts"),
    ("dev", "::snt ", "::snt Oh ", "began: validation texts"),
    ("dev", ":ARG0", ":ARG9", "of the validation graphs"),
]


@pytest.mark.parametrize(("split", "old", "new", "told"), EDITS)
def test_each_change_of_the_data_is_refused(copied: Interrupted, split: str, old: str, new: str, told: str) -> None:
    undo = edited(str(getattr(copied.config.data, split)), old, new)
    try:
        with pytest.raises(StoreError, match=rf"have changed since this run began: .*{told.split(': ')[-1]}"):
            train(copied.config)
    finally:
        undo()


def test_labels_of_edges_and_roots_are_refused_where_the_graph_is_plain(tmp_path: Path) -> None:
    """In Levi form relations are nodes; in plain form only edges have them."""
    config = tiny(tmp_path, steps=1)
    config = changed(config, prepare=replace(config.prepare, graph="plain"))
    train(config)
    (tmp_path / "run" / "result.json").unlink()
    undo = edited(str(config.data.train), ":ARG0", ":ARG1")
    with pytest.raises(StoreError, match=r"began: relation labels of the training graphs\. Restore them, or"):
        train(config)
    undo()
    assert train(config).steps == 1


FILES = ("SHA256SUMS", "state.json", "tensors.safetensors")


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_checkpoint_is_passed_over(copied: Interrupted, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    file = Path(copied.config.out) / "checkpoints" / "step-00000004" / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 16
    file.write_bytes(content)
    train(copied.config)
    told = capfd.readouterr().err
    assert told.count("step-00000004 is damaged: its ") == 1
    assert "; it is passed over for step-00000002\ngoing on after step 2\n" in told
    folder = Path(copied.config.out)
    assert (folder / "model.safetensors").read_bytes() == copied.weights
    assert (folder / "metrics.csv").read_bytes() == copied.metrics


def test_no_whole_checkpoint_is_an_error(copied: Interrupted) -> None:
    for step in ("step-00000002", "step-00000004"):
        (Path(copied.config.out) / "checkpoints" / step / "state.json").unlink()
    with pytest.raises(
        StoreError, match=r"no checkpoint is whole: step-00000004 is damaged: it has no state.json; step"
    ):
        train(copied.config)


def test_damaged_weights_are_known_before_the_training_goes_on(copied: Interrupted) -> None:
    file = Path(copied.config.out) / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    with pytest.raises(
        StoreError, match=r"model\.safetensors: the weights are not those that were written: .*; restore"
    ):
        train(copied.config)
    file.unlink()
    with pytest.raises(StoreError, match=r"model\.safetensors: there is no such file; restore it, or train afresh"):
        train(copied.config)


@pytest.mark.parametrize("number", only([signal.SIGTERM, signal.SIGHUP, signal.SIGINT], signal.SIGHUP))
def test_a_signal_ends_it_with_a_checkpoint(
    number: signal.Signals,
    interrupted: Interrupted,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    config = changed(interrupted.config, out=str(tmp_path / "run"))
    before, collate, count = signal.getsignal(number), Preparer.collate, 0

    def told(self: Preparer, examples: Sequence[StructureWithText], **how: Any) -> Batch:
        nonlocal count
        count += 1
        if count == 5:  # two are tried at first, and one is for the first validation
            signal.raise_signal(number)
        return collate(self, examples, **how)

    with monkeypatch.context() as patch:
        patch.setattr(Preparer, "collate", told)
        with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else SystemExit) as caught:
            train(config)
    if number != signal.SIGINT:
        assert caught.value.code == 128 + number
    assert signal.getsignal(number) == before
    told_of = capfd.readouterr().err
    assert told_of.count(f"{number.name}: the training ends after this step, with a checkpoint; once more ends it") == 1
    assert "run: a checkpoint is written after step " in told_of
    steps = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert steps in (["step-00000001"], ["step-00000001", "step-00000002"], ["step-00000002"], ["step-00000003"])
    assert train(config).steps == 4
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == interrupted.weights
    assert (tmp_path / "run" / "metrics.csv").read_bytes() == interrupted.metrics

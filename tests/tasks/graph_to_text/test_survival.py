"""A training that is killed ends as if it had not been; two devices do what one does."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from structpe.data.batch import Batch
from structpe.data.prepare import Preparer, StructureWithText
from structpe.tasks.config import save
from structpe.tasks.graph_to_text.config import GraphToTextConfig, TextConfig
from structpe.tasks.runs import train
from structpe.tasks.training.result import Result, digest
from tests.forking import forked
from tests.tasks.graph_to_text.checkpoints import checkpoint, tuned
from tests.tasks.graph_to_text.tiny import changed, tiny
from tests.tasks.graph_to_text.trial import is_trial

pytestmark = pytest.mark.early


def run(config: TextConfig, folder: Path, *kill: str) -> tuple[int, str]:
    """The code with which it ended, and what it said."""
    save(config, folder / "given.yaml")
    words = (str(folder / "given.yaml"), str(folder), *kill)
    code, _, err = forked(folder, "tests.tasks.graph_to_text.survivor", *words).ended()
    return code, err


def survived(config: TextConfig, folder: Path) -> str:
    code, err = run(config, folder)
    assert code == 0, err
    return err


def seen(folder: Path, rank: int = 0) -> list[list[str]]:
    """Ids of each training batch that was collated."""
    lines = (folder / f"ids-{rank}.txt").read_text().splitlines()
    return [line.split() for line in lines if ".train." in line]


def whole(config: GraphToTextConfig, folder: Path) -> None:
    """The same in this process, never killed."""
    collate = Preparer.collate

    def told(self: Preparer, examples: Sequence[StructureWithText], **how: Any) -> Batch:
        if not is_trial():
            with (folder / "ids-0.txt").open("a") as file:
                print(*(example.id for example in examples), file=file)
        return collate(self, examples, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Preparer, "collate", told)
        train(config)


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_killed_twice_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    never, killed = tmp_path / "never", tmp_path / "killed"
    for folder in (never, killed):
        folder.mkdir()
    whole(tiny(never), never)

    # Batch 9 of the training, the first of its third epoch, is the 10th collated: one was for validation.
    config = tiny(killed)
    assert run(config, killed, "collate", "10")[0] == -signal.SIGKILL
    assert checkpoints(killed) == ["step-00000003", "step-00000006"]
    # It goes on after step 6, in the middle of an epoch; the checkpoint of step 12 gets no name.
    assert run(config, killed, "write", "2")[0] == -signal.SIGKILL
    assert checkpoints(killed) == [".step-00000012", "step-00000006", "step-00000009"]
    told = survived(config, killed)

    assert "going on after step 9" in told
    first, second, third = seen(killed)[:8], seen(killed)[8:14], seen(killed)[14:]
    assert first[:6] + second[:3] + third == seen(never)
    for file in ("metrics.csv", "tokenizer.json", "positions.json"):
        assert (killed / "run" / file).read_bytes() == (never / "run" / file).read_bytes(), file
    assert weights(killed) == weights(never)
    assert result(killed) == result(never)
    for step in ("step-00000012", "step-00000014"):
        mine, theirs = (folder / "run" / "checkpoints" / step / "tensors.safetensors" for folder in (killed, never))
        assert mine.read_bytes() == theirs.read_bytes()
    assert checkpoints(killed) == ["step-00000012", "step-00000014"]


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_a_pretrained_model_that_was_killed_ends_with_the_same_bits(tmp_path: Path) -> None:
    given = checkpoint(tmp_path / "given", "llama")
    never, killed = tmp_path / "never", tmp_path / "killed"
    for folder in (never, killed):
        folder.mkdir()
    train(tuned(never, given, training={"checkpoint_every": 1}))
    config = tuned(killed, given, training={"checkpoint_every": 1})
    assert run(config, killed, "write", "3")[0] == -signal.SIGKILL
    assert "going on after step 2" in survived(config, killed)
    for file in ("metrics.csv", "pretrained.json", "subwords.json"):
        assert (killed / "run" / file).read_bytes() == (never / "run" / file).read_bytes(), file
    assert weights(killed) == weights(never)
    assert result(killed) == result(never)
    mine, theirs = (
        folder / "run" / "checkpoints" / "step-00000004" / "tensors.safetensors" for folder in (killed, never)
    )
    assert mine.read_bytes() == theirs.read_bytes()


def weights(folder: Path) -> str:
    """A digest of them all. The file itself names its run, which reads from another folder."""
    return digest(load_file(folder / "run" / "model.safetensors"))


def result(folder: Path) -> Result:
    """Without what it took, which differs."""
    done = Result.load(folder / "run")
    assert done is not None
    return replace(done, step_seconds=0.0, seconds=0.0, cpu_seconds=0.0, peak_bytes=0)


def checkpoints(folder: Path) -> list[str]:
    names = sorted(path.name for path in (folder / "run" / "checkpoints").iterdir())
    return [name.removesuffix(".tmp") for name in names]


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_two_processes_do_what_one_does(tmp_path: Path) -> None:
    """Without dropout, whose draws differ, the same steps but for the order in which floats are added."""
    folders = {devices: tmp_path / str(devices) for devices in (1, 2)}
    for devices, folder in folders.items():
        folder.mkdir()
        config = tiny(folder, hardware={"devices": devices}, validation={"metric": "chrf"})
        config = changed(config, model=replace(config.model, dropout=0.0))
        (survived if devices == 2 else whole)(config, folder)
    two = folders[2]

    first, second = seen(two, 0), seen(two, 1)
    assert len(first) == len(second) == 14
    for i in range(0, 12, 4):  # 20 texts in batches of 6 at most are 4 batches an epoch
        mine, theirs = (list(chain(*batches[i : i + 4])) for batches in (first, second))
        assert not set(mine) & set(theirs)
        assert len(set(mine + theirs)) == len(mine + theirs) == 20
    assert [sorted(a + b) for a, b in zip(first, second, strict=True)] == [sorted(batch) for batch in seen(folders[1])]

    assert (two / "weights-0.txt").read_text() == (two / "weights-1.txt").read_text()
    one, both = (
        load_file(f / "run" / "checkpoints" / "step-00000014" / "tensors.safetensors") for f in folders.values()
    )
    # The bias of keys moves all scores of a query alike: its gradient is rounding error, which Adam makes large.
    weights = [name for name in one if name.startswith("state_dict.") and not name.endswith("key_value.bias")]
    assert len(weights) > 20
    for name in weights:
        torch.testing.assert_close(both[name], one[name], rtol=1e-3, atol=1e-4)
    assert (two / "run" / "result.json").exists()

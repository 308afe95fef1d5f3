"""A checkpoint is whole or absent, and says what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from structpe.errors import StoreError
from structpe.system.files import atomic_write, seal
from structpe.tasks.training import checkpoint

STATE = {"weights": torch.arange(3.0), "step": 7, "betas": (0.9, 0.98)}


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    folder = tmp_path / checkpoint.name(7)
    checkpoint.save(STATE, folder)
    loaded = checkpoint.load(folder)
    assert torch.equal(loaded.pop("weights"), STATE["weights"])
    assert loaded == {"step": 7, "betas": (0.9, 0.98)}
    assert sorted(file.name for file in folder.iterdir()) == ["SHA256SUMS", "state.json", "tensors.safetensors"]


def test_one_that_could_not_be_written_to_its_end_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError("the disk is full")

    checkpoint.save(STATE, tmp_path / checkpoint.name(1))
    monkeypatch.setattr(json, "dumps", full)
    with pytest.raises(OSError, match="the disk is full"):
        checkpoint.save(STATE, tmp_path / checkpoint.name(2))
    assert checkpoint.newest(tmp_path) == tmp_path / checkpoint.name(1)
    checkpoint.prune(tmp_path, keep=1)
    assert [file.name for file in tmp_path.iterdir()] == ["step-00000001"]


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "file"
    atomic_write(file, lambda hidden: hidden.write_text("old"))

    def half(hidden: Path) -> None:
        hidden.write_text("ne")
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        atomic_write(file, half)
    assert file.read_text() == "old"


def test_the_newest_complete_one_is_found(tmp_path: Path) -> None:
    assert checkpoint.newest(tmp_path / "none") is None
    for step in (9, 10, 100_000_000, 100_000_001):
        checkpoint.save(STATE, tmp_path / checkpoint.name(step))
    (tmp_path / checkpoint.name(100_000_001) / "state.json").unlink()
    assert checkpoint.newest(tmp_path) == tmp_path / checkpoint.name(100_000_000)
    checkpoint.prune(tmp_path, keep=2)
    assert len(list(tmp_path.iterdir())) == 2


def test_saving_again_replaces(tmp_path: Path) -> None:
    checkpoint.save(STATE, tmp_path / "step-00000001")
    checkpoint.save({"step": 8}, tmp_path / "step-00000001")
    assert checkpoint.load(tmp_path / "step-00000001") == {"step": 8}


def test_steps_are_numbers(tmp_path: Path) -> None:
    for step in (99_999_999, 100_000_000):
        checkpoint.save(STATE, tmp_path / checkpoint.name(step))
    assert checkpoint.newest(tmp_path) == tmp_path / "step-100000000"


FILES = ("SHA256SUMS", "state.json", "tensors.safetensors")


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_anywhere_is_seen_and_the_one_before_is_taken(tmp_path: Path, name: str) -> None:
    for step in (3, 6):
        checkpoint.save({**STATE, "step": step}, tmp_path / checkpoint.name(step))
    file = tmp_path / checkpoint.name(6) / name
    content = file.read_bytes()
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << (place % 8)
        file.write_bytes(flipped)
        told: list[str] = []
        assert checkpoint.newest(tmp_path, told.append) == tmp_path / checkpoint.name(3), place
        assert len(told) == 1
        assert told[0].startswith(f"{tmp_path}: step-00000006 is damaged: its ")
        assert told[0].endswith("; it is passed over for step-00000003")
        with pytest.raises(StoreError, match="the checkpoint is damaged: its "):
            checkpoint.load(file.parent)
    file.write_bytes(content)
    assert checkpoint.load(file.parent)["step"] == 6


@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_cut_file_is_named(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "step-00000003"
    checkpoint.save(STATE, folder)
    content = (folder / name).read_bytes()
    for kept in (0, 1, len(content) - 1):
        (folder / name).write_bytes(content[:kept])
        with pytest.raises(StoreError, match=rf"damaged: its {name} .*; remove this folder to go on from the one"):
            checkpoint.load(folder)
    (folder / name).unlink()
    with pytest.raises(StoreError, match=rf"damaged: it has no {name}; remove this folder to go on from") as caught:
        checkpoint.load(folder)
    assert caught.value.places == (str(folder),)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "[]", "{}", '{"format": "structpe checkpoint"}', "x"]
)
def test_a_state_that_is_none_is_refused_even_with_a_checksum(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "step-00000003"
    checkpoint.save(STATE, folder)
    (folder / "state.json").write_text(text)
    with pytest.raises(
        StoreError, match=r"no checkpoint is whole: step-00000003 is damaged: its state\.json has other"
    ):
        checkpoint.newest(tmp_path)
    seal(folder, ("state.json", "tensors.safetensors"))  # as somebody does who edits it
    with pytest.raises(StoreError, match="remove this folder to go on from the one before, or train afresh") as caught:
        checkpoint.load(folder)
    assert caught.value.places == (str(folder),)


def test_one_of_another_version_is_not_damaged(tmp_path: Path) -> None:
    folder = tmp_path / "step-00000003"
    checkpoint.save(STATE, folder)
    state = folder / "state.json"
    text = state.read_text()
    for version, sums in ((4, False), (6, True)):
        state.write_text(text.replace('"version": 5', f'"version": {version}'))
        (folder / "SHA256SUMS").unlink(missing_ok=True)
        if sums:
            seal(folder, ("state.json", "tensors.safetensors"))
        for use in (checkpoint.load, lambda folder: checkpoint.newest(folder.parent)):
            with pytest.raises(
                StoreError,
                match=f"the checkpoint has format version {version}, this structpe reads version 5; go on with the",
            ):
                use(folder)


def test_a_version_that_a_flipped_bit_has_made_is_damage(tmp_path: Path) -> None:
    folder = tmp_path / "step-00000003"
    checkpoint.save(STATE, folder)
    state = folder / "state.json"
    state.write_text(state.read_text().replace('"version": 5', '"version": 4'))
    with pytest.raises(StoreError, match=r"the checkpoint is damaged: its state\.json"):
        checkpoint.load(folder)


def test_when_all_are_damaged_training_does_not_begin_anew_by_itself(tmp_path: Path) -> None:
    for step in (3, 6):
        checkpoint.save(STATE, tmp_path / checkpoint.name(step))
        (tmp_path / checkpoint.name(step) / "tensors.safetensors").write_bytes(b"")
    with pytest.raises(
        StoreError, match=r"no checkpoint is whole: step-00000006 is damaged: its tensors.*; step-00000003 is .*; train"
    ):
        checkpoint.newest(tmp_path)


def test_what_comes_after_is_made_again(tmp_path: Path) -> None:
    for step in (3, 6, 9):
        checkpoint.save(STATE, tmp_path / checkpoint.name(step))
    checkpoint.drop_after(tmp_path, 6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000003", "step-00000006"]

"""Weights know whether they are what was written."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from structpe.errors import StoreError, StructPEError
from structpe.positions import MODELS, Dims
from structpe.positions.build import build
from structpe.tasks.training.result import WEIGHTS, check_finite, digest, load_weights, save_weights


@pytest.fixture
def file(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    save_weights(torch.nn.Linear(3, 2), tmp_path / WEIGHTS)
    return tmp_path / WEIGHTS


def test_what_is_saved_is_loaded(file: Path) -> None:
    loaded, plain = load_weights(file, "train afresh"), load_file(file)
    assert set(loaded) == {"weight", "bias"}
    assert all(torch.equal(loaded[name], plain[name]) for name in plain)


def test_every_flipped_bit_is_seen(file: Path) -> None:
    content, good = file.read_bytes(), load_weights(file, "x")
    silent = 0
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << (place % 8)
        file.write_bytes(flipped)
        try:
            same = load_weights(file, "train afresh")
        except StoreError as error:
            assert str(error).startswith(f"{file}: the ")  # noqa: PT017
            assert str(error).endswith("; train afresh")  # noqa: PT017
        else:  # a blank after the header may become another character that JSON skips
            assert all(torch.equal(same[name], good[name]) for name in good)
            silent += 1
    assert silent <= 8


def test_tensors_that_change_places_are_seen(file: Path) -> None:
    tensors = load_file(file)
    with safe_open(file, "pt") as opened:
        metadata = opened.metadata()
    swapped = {"weight": tensors["weight"], "bias": tensors["bias"].flip(0)}
    save_file(swapped, file, metadata=metadata)
    with pytest.raises(StoreError, match=r"model\.safetensors: the weights are not those that were written"):
        load_weights(file, "train afresh")


@pytest.mark.parametrize("metadata", [None, {"sha256": "0" * 64}], ids=["no checksum", "a checksum alone"])
def test_weights_of_older_layers_are_refused(file: Path, metadata: dict[str, str] | None) -> None:
    save_file(load_file(file), file, metadata=metadata)
    with pytest.raises(StoreError, match=r"have version 1, this structpe reads version 4, .*; train afresh$"):
        load_weights(file, "train afresh")


def test_missing_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"model\.safetensors: there is no such file; train afresh$"):
        load_weights(tmp_path / WEIGHTS, "train afresh")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_neither_written_nor_read(file: Path, value: float) -> None:
    before, model = file.read_bytes(), torch.nn.Linear(3, 2)
    with torch.no_grad():
        model.weight[1, 2] = value
    with pytest.raises(StructPEError, match=r"^the weights 'weight' are no longer finite: training"):
        save_weights(model, file)
    assert file.read_bytes() == before
    tensors = {name: each.detach().clone() for name, each in model.state_dict().items()}
    save_file(tensors, file, metadata={"sha256": f"4:{digest(tensors)}"})
    with pytest.raises(StoreError, match=r"the weights 'weight' are not finite, .*; train afresh$"):
        load_weights(file, "train afresh")


def test_weights_are_those_of_their_run_only(file: Path) -> None:
    save_weights(torch.nn.Linear(3, 2), file, run="a" * 64)
    assert set(load_weights(file, "x", "a" * 64)) == {"weight", "bias"}
    assert set(load_weights(file, "x")) == {"weight", "bias"}
    with pytest.raises(StoreError, match=r"the weights are those of another run: .*; train afresh$"):
        load_weights(file, "train afresh", "b" * 64)


def test_weights_of_an_older_structpe_name_no_run_and_are_read(file: Path) -> None:
    assert set(load_weights(file, "x", "a" * 64)) == {"weight", "bias"}


def test_the_initial_numbers_of_all_position_models_are_finite() -> None:
    """Also of buffers, such as masks: no model is refused for what it is."""
    dims = Dims(24, 2, 2)
    for name in MODELS:
        check_finite(build(name, dims).state_dict())

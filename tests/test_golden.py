"""The golden files that the project ships: described one by one, small, and what the authors' code gave."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from structpe.positions import MODELS
from tests.golden import SHARED, SHIPPED, Golden, golden, shared
from tests.positions.test_zhu import CLOSE, attention
from tests.together import together

INDEX: dict[str, Any] = json.loads((SHIPPED / "INDEX.json").read_text(encoding="utf-8"))
NAMES = sorted(INDEX)
TESTS = Path(__file__).parent
MADE = {file.stem for file in (*SHARED.glob("*.npz"), *SHARED.glob("pending/*.npz"))}
"""Those that lie in ../shared/golden, where there is such a folder."""


def test_the_index_lists_every_file_and_all_are_small() -> None:
    files = sorted(SHIPPED.glob("*.npz"))
    assert [file.stem for file in files] == NAMES
    assert sum(file.stat().st_size for file in files) < 1_000_000


@together("name", NAMES)
def test_the_index_says_who_made_each_number_and_what_it_means(name: str) -> None:
    entry, given = INDEX[name], Golden(SHIPPED / f"{name}.npz")
    assert entry["by"] in ("the authors' code", "another library") or entry["by"].startswith("the authors' functions")
    assert set(entry.get("models", ())) <= set(MODELS)
    for source in entry["sources"]:
        assert "repository" in source or "package" in source
        assert re.fullmatch(r"[0-9a-f]{7}|[0-9.]+|\(version not recorded\)", source.get("commit") or source["version"])
    kinds = {array: f"{values.numpy().dtype} {list(values.shape)}" for array, values in given.arrays.items()}
    assert entry["arrays"] == kinds
    outputs = [array for array in kinds if array.startswith("out.")]
    patterns = [re.escape(key).replace(r"\*", ".*").replace(r"\?", ".") for key in entry["outputs"]]
    assert outputs
    assert all(any(re.fullmatch(pattern, output) for pattern in patterns) for output in outputs)
    assert all(any(re.fullmatch(pattern, output) for output in outputs) for pattern in patterns)


@together("name", [name for name in NAMES if name in MADE])
def test_they_are_the_shared_numbers(name: str) -> None:
    """To the last bit, but for what is cut: there the part that is left, or what the rest makes of it."""
    mine, theirs = Golden(SHIPPED / f"{name}.npz"), shared(name)
    for array, values in mine.arrays.items():
        if "cut" in INDEX[name] and array in ("in.q", "in.k", "in.v"):
            assert_close(values, attention(theirs)["qkv".index(array[-1])], rtol=0, atol=CLOSE)
            continue
        whole = theirs[array]
        part = whole[tuple(slice(size) for size in values.shape)]
        assert "cut" in INDEX[name] or part.shape == whole.shape
        assert values.dtype == whole.dtype
        assert np.array_equal(values, part, equal_nan=values.is_floating_point())
    for setting, value in mine.cfg.items():
        assert theirs.cfg[setting] == value


def test_every_file_is_read_and_no_test_waits_for_one() -> None:
    text = "\n".join(file.read_text(encoding="utf-8") for file in TESTS.rglob("test_*.py"))
    asked = set(re.findall(r'golden\("(\w+)"\)', text))
    assert asked <= set(NAMES)
    assert set(NAMES) >= MADE
    assert not [name for name in NAMES if not re.search(rf"[\"']{name.replace('_', '[-_]')}[\"']", text)]


def test_a_file_that_is_nowhere_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match="no_such_file"):
        golden(name="no_such_file")
    assert torch.equal(golden("gkat")["out.kernel"], Golden(SHIPPED / "gkat.npz")["out.kernel"])

"""Every flipped bit, missing file and cut is seen; what is written is what ``sha256sum`` checks."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from structpe.errors import StoreError
from structpe.system.files import SUMS, check, read_sealed, seal, sealed, sealed_lines, wrong

NAMES = ("a.txt", "b.bin")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("hello")
    (tmp_path / "b.bin").write_bytes(bytes(range(40)))
    seal(tmp_path, NAMES)
    return tmp_path


def test_whole_files_are_whole(folder: Path) -> None:
    assert wrong(folder, NAMES) == ""
    check(folder, NAMES, "nothing")


def test_the_system_reads_it(folder: Path) -> None:
    if shutil.which("sha256sum") is None:
        pytest.skip("sha256sum is not installed")
    assert subprocess.run(["sha256sum", "-c", "--strict", SUMS], cwd=folder, capture_output=True).returncode == 0
    (folder / "a.txt").write_text("hellp")
    assert subprocess.run(["sha256sum", "-c", "--strict", SUMS], cwd=folder, capture_output=True).returncode == 1


@pytest.mark.parametrize("name", [*NAMES, SUMS])
def test_every_flipped_bit_is_seen(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    for place in range(len(content)):
        for bit in (0, 5):
            flipped = bytearray(content)
            flipped[place] ^= 1 << bit
            (folder / name).write_bytes(flipped)
            # Checksums in capital letters are the same checksums to a person, not to us.
            assert wrong(folder, NAMES), (name, place, bit)
    (folder / name).write_bytes(content)
    assert not wrong(folder, NAMES)


@pytest.mark.parametrize("name", [*NAMES, SUMS])
def test_missing_and_cut_files_are_named(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    for kept in (0, 1, len(content) - 1):
        (folder / name).write_bytes(content[:kept])
        assert name in wrong(folder, NAMES), kept
    (folder / name).unlink()
    with pytest.raises(StoreError, match=rf"the folder is damaged: it has no {name}; train afresh$") as caught:
        check(folder, NAMES, "train afresh")
    assert caught.value.places == (str(folder),)


def test_an_object_knows_its_checksum() -> None:
    content = {"a": 1, "b": [0.1, None], "c": {"d": "é"}}
    text = sealed(content)
    assert read_sealed(text) == read_sealed(sealed_lines(content)) == content
    assert sealed_lines(content).count("\n") > 5
    assert read_sealed(json.dumps(content)) == content  # of an older structpe
    with pytest.raises(ValueError, match="its content does not have the checksum"):
        read_sealed(text.replace("0.1", "0.2"))
    with pytest.raises(ValueError, match="it holds a list and not a mapping"):
        read_sealed("[]")

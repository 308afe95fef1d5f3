"""Pickles that a few bytes make huge are refused before they are loaded; what Python and NumPy pickle is not."""

from __future__ import annotations

import contextlib
import io
import pickle
import pickletools
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from structpe.datasets.ogb import load as load_ogb
from structpe.datasets.pickles import Refused, _Following, look_through, pickled_numbers
from structpe.errors import ReadError
from tests.modules import ROOT

SHARED = Path(__file__).parents[3] / "shared" / "data" / "planetoid"
NESTED = b"".join([b"K\x00\x85", *[b"2\x86"] * 40])  # a pair of a pair of a pair, each twice the same
HOSTILE = {
    "memo": b"Nr\xff\xff\xff\x0f.",
    "memo in letters": b"Np999999999\n.",
    "bytes": b"\x8e" + struct.pack("<Q", 1 << 33) + b".",
    "text": b"X" + struct.pack("<I", 1 << 31) + b".",
    "bytearray": b"\x80\x05\x96" + struct.pack("<Q", 1 << 33) + b".",
    "long": b"\x8b" + struct.pack("<i", 1 << 30) + b".",
    "frame": b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b"N.",
    "hash": b"}" + NESTED + b"K\x01s.",
    "deep": b"}" + b"K\x00" + b"\x85" * 100_000 + b"K\x01s.",
    "copies": b"]q\x00(" + b"K\x00" * 20_000 + b"e0(" + b"c__builtin__\nlist\nh\x00\x85R" * 20_000 + b"l.",
    "changed later": b"]q\x00]h\x00a0" + b"h\x00K\x01a.",
}
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300) | st.binary(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3), inner, max_size=5)
        | st.frozensets(st.integers(), max_size=4)
    ),
    max_leaves=20,
)


class Harmless(pickle.Unpickler):
    """Knows one name only."""

    def find_class(self, module: str, name: str) -> type:
        del module, name
        return list


def seen(pickled: bytes) -> int:
    """Up to which byte a pickle was followed."""
    look_through(pickled)
    following = _Following(pickled)
    following.over_numbers()
    while following.step():
        following.over_numbers()
    return following.at


@given(PLAIN, st.integers(0, 5))
def test_what_python_pickles_is_followed_to_its_end(data: Any, protocol: int) -> None:
    pickled = pickle.dumps(data, protocol)
    assert seen(pickled) == len(pickled) - 1
    assert seen(pickletools.optimize(pickled)) > 0


@pytest.mark.parametrize("protocol", range(6))
def test_what_numpy_pickles_is_followed_to_its_end(protocol: int) -> None:
    array = np.arange(1000)
    data = [
        {"a": np.zeros((3, 4)), "b": array, "c": array, "d": np.float32(1), "e": list(range(2000))} for _ in range(50)
    ]
    pickled = pickle.dumps(data, protocol)
    assert seen(pickled) == len(pickled) - 1


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data")
def test_what_python_2_pickled_is_followed_to_its_end() -> None:
    files = [file for file in SHARED.glob("ind.*") if file.suffix != ".index"]
    assert files
    for file in files:
        pickled = file.read_bytes()
        assert pickled[seen(pickled)] == ord(".")


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_out_of_proportion_is_refused(name: str) -> None:
    with pytest.raises((Refused, EOFError), match=r"^(it claims|the file (has|describes|nests|changes)) "):
        look_through(HOSTILE[name])


@pytest.mark.parametrize("name", HOSTILE)
def test_the_file_is_named(name: str, tmp_path: Path) -> None:
    file = tmp_path / "split.pkl"
    file.write_bytes(HOSTILE[name])
    with pytest.raises(ReadError, match=r"split.pkl: the file .*; (do not use it, )?bring back the original$"):
        pickled_numbers(file)
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("a/data.pkl", HOSTILE[name])
    with pytest.raises(ReadError, match=r"a.pt: (the|not a) file .*; it was not run"):
        load_ogb(tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt", "a") as archive:
        archive.writestr("a/data/0", b"12345678")  # read by torch then
    with pytest.raises(ReadError, match=r"a.pt: (the|not a) file .*; it was not run"):
        load_ogb(tmp_path / "a.pt")


def test_memory(tmp_path: Path) -> None:
    """The seven bytes that took 2.3 GB; 1 GiB of addresses is room for all that is imported."""
    file = tmp_path / "split.pkl"
    file.write_bytes(HOSTILE["memo"])
    code = (
        "import sys; from pathlib import Path; from structpe.datasets.pickles import pickled_numbers\n"
        "from tests.memory import peak; before = peak()\n"
        "try: pickled_numbers(Path(sys.argv[1]))\n"
        "except Exception as error: print(type(error).__name__)\n"
        "print(peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], cwd=ROOT, capture_output=True, text=True, check=True)
    kind, grown = done.stdout.split()
    assert kind == "ReadError"
    assert int(grown) < 50_000  # KiB


@given(st.binary(max_size=60))
def test_any_bytes_are_gone_through(content: bytes) -> None:
    with contextlib.suppress(Refused, EOFError):  # any other error fails the test
        look_through(content)


@given(st.integers(0, 2**32 - 1), st.integers(0, 300))
def test_what_is_let_through_takes_little(seed: int, flips: int) -> None:
    """The memo of Python's unpickler in C is no longer than the pickle, whatever bytes are changed."""
    chance = np.random.default_rng(seed)
    pickled = bytearray(pickle.dumps([{"a": list(range(50)), "b": ("c", b"d" * 40)}] * 3, 2))
    for at in chance.integers(0, len(pickled), flips % 5):
        pickled[at] = chance.integers(256)
    try:
        look_through(bytes(pickled))
    except (Refused, EOFError):
        reject()
    unpickler = Harmless(io.BytesIO(pickled))
    with contextlib.suppress(Exception):
        unpickler.load()
    assert max(unpickler.memo.copy(), default=0) <= len(pickled)


def test_dtypes_are_not_shown_whole(tmp_path: Path) -> None:
    """A tuple that stands for a billion values would be written out."""
    file = tmp_path / "split.pkl"
    nested = b"".join([b"K\x00\x85", *[b"2\x86"] * 12])
    file.write_bytes(b"cnumpy\ndtype\n" + nested + b"\x85R.")
    with pytest.raises(ReadError, match=r"dtype a tuple, numbers are needed"):
        pickled_numbers(file)

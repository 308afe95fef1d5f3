"""Pickles that a few bytes make huge are refused or harmless; what Python and NumPy pickle is loaded."""

from __future__ import annotations

import contextlib
import pickle
import pickletools
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.datasets.ogb import ALLOWED
from structpe.datasets.ogb import load as load_ogb
from structpe.datasets.pickles import Refused, Unpickler, check_pickle, pickled_lists, pickled_numbers
from structpe.errors import ReadError
from tests.modules import ROOT
from tests.representatives import only
from tests.together import together

SHARED = Path(__file__).parents[3] / "shared" / "data" / "planetoid"
NESTED = b"".join([b"K\x00\x85", *[b"2\x86"] * 40])  # a pair of a pair of a pair, each twice the same
LONG = b"(" + b"K\x00" * 20_000 + b"t"
ENCODED = b"".join(
    [
        *(b"X" + struct.pack("<I", 20_000) + b"a" * 20_000 + b"q\x000", b"c_codecs\nencode\nq\x010"),
        *(b"X\x06\0\0\0latin1q\x020", b"("),
    ]
)
HOSTILE = {
    "bytes": b"\x8e" + struct.pack("<Q", 1 << 33) + b".",
    "text": b"X" + struct.pack("<I", 1 << 31) + b".",
    "bytearray": b"\x80\x05\x96" + struct.pack("<Q", 1 << 33) + b".",
    "long": b"\x8b" + struct.pack("<i", 1 << 30) + b".",
    "hash": b"}" + NESTED + b"K\x01s.",
    "hash of a set": b"(" + NESTED + b"\x91.",
    "hash of a dictionary": b"(" + NESTED + b"K\x01d.",
    "hash again": LONG + b"q\x000" + b"(" + b"}h\x00K\x01s" * 20_000 + b"l.",
    "deep": b"}" + b"K\x00" + b"\x85" * 20_000 + b"K\x01s.",
    "deep lists": b"]" * 20_000 + b"a" * 19_999 + b".",
    "deep by parts": b"".join([b"]", *[b"2\x86q\x00" + b"0h\x00"] * 200, b"."]),
    "laughs": NESTED + b".",
    "lists": b"](" + b"K\x00" * 20_000 + b"eq\x000](" + b"h\x00" * 20_000 + b"e.",
    "changed later": b"]q\x000](" + b"h\x00" * 20_000 + b"eh\x00(" + b"K\x00" * 20_000 + b"e0.",
    "itself": b"]q\x00h\x00a.",
    "copies of a text": ENCODED + b"h\x01h\x00h\x02\x86R" * 20_000 + b"l.",
    "texts made anew": ENCODED + b"h\x01h\x00h\x02\x86\x81" * 20_000 + b"l.",
    "items of an array": b"cnumpy\nndarray\n)\x81K\x00K\x01s.",
}
"""Each is refused, or its end missed."""
HARMLESS = {
    "memo": b"Nr\xff\xff\xff\x0f.",
    "memo in letters": b"Np999999999\n.",
    "frame": b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b"N.",
}
"""Each took gigabytes of the unpickler in C, and is loaded as None."""
NUMBERS = st.floats(allow_nan=False)
KEYS = st.text(max_size=3) | st.integers() | st.tuples(st.text(max_size=3), NUMBERS)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | st.text(max_size=300) | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=5) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


def load(pickled: bytes) -> Any:
    return Unpickler(pickled, ALLOWED, "data").load()


@given(PLAIN, st.integers(0, 5))
def test_what_python_pickles_is_loaded(data: Any, protocol: int) -> None:
    pickled = pickle.dumps(data, protocol)
    for each in (pickled, pickletools.optimize(pickled)):
        assert load(each) == data
        check_pickle(each)


@pytest.mark.parametrize("protocol", range(5))
def test_what_numpy_pickles_is_loaded(protocol: int) -> None:
    array = np.arange(1000)
    data = [
        {"a": np.zeros((3, 4)), "b": array, "c": array, "d": np.float32(1), "e": list(range(2000))} for _ in range(10)
    ]
    pickled = pickle.dumps(data, protocol)
    for each, known in zip(load(pickled), data, strict=True):
        assert all(np.array_equal(each[name], known[name]) for name in known)
        assert type(each["d"]) is np.float32
    check_pickle(pickled)


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data")
@pytest.mark.parametrize("name", only(["cora", "citeseer", "pubmed"], "cora"))
def test_what_python_2_pickled_is_loaded(name: str) -> None:
    files = [file for file in SHARED.glob(f"ind.{name}.*") if file.suffix != ".index"]
    assert files
    for file in files:
        check_pickle(file.read_bytes())
    lists = pickled_lists(SHARED / f"ind.{name}.graph")
    assert lists == pickle.loads((SHARED / f"ind.{name}.graph").read_bytes(), encoding="latin1")


@together("name", HOSTILE)
def test_what_is_out_of_proportion_is_refused(name: str) -> None:
    with pytest.raises((Refused, EOFError), match=r"^(it claims|the file (has|describes|nests|puts)) "):
        load(HOSTILE[name])


@pytest.mark.parametrize("name", HARMLESS)
def test_what_seems_huge_is_loaded(name: str) -> None:
    tracemalloc.start()
    assert load(HARMLESS[name]) is None
    check_pickle(HARMLESS[name])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


def test_lists_are_not_copied(tmp_path: Path) -> None:
    """``list`` stands in a ``defaultdict`` of Python 2, and is not called."""
    file = tmp_path / "ind.cora.graph"
    copies = b"]q\x00(" + b"K\x00" * 20_000 + b"e0(" + b"c__builtin__\nlist\nh\x00\x85R" * 20_000 + b"l."
    file.write_bytes(copies)
    with pytest.raises(
        ReadError, match=r"ind.cora.graph: the file is damaged \(TypeError: Function\(\) takes no argum"
    ):
        pickled_lists(file)
    file.write_bytes(b"ccollections\ndefaultdict\nc__builtin__\nlist\n\x85RK\x00]K\x01as.")
    assert pickled_lists(file) == {0: [1]}


@together("name", HOSTILE)
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


@pytest.mark.slow
def test_memory(tmp_path: Path) -> None:
    """The seven bytes that took 2.3 GB; 1 GiB of addresses is room for all that is imported."""
    file = tmp_path / "split.pkl"
    file.write_bytes(HARMLESS["memo"])
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
def test_any_bytes_are_loaded_or_refused(content: bytes) -> None:
    with contextlib.suppress(Exception):
        check_pickle(content)


@given(st.integers(0, 2**32 - 1), st.integers(0, 300))
def test_what_is_changed_takes_little(seed: int, flips: int) -> None:
    """Whatever bytes are changed, a pickle of 600 bytes takes little memory, and what is loaded has few values."""
    chance = np.random.default_rng(seed)
    pickled = bytearray(pickle.dumps([{"a": list(range(50)), "b": ("c", b"d" * 40)}] * 3, 2))
    for at in chance.integers(0, len(pickled), flips % 5):
        pickled[at] = chance.integers(256)
    tracemalloc.start()
    with contextlib.suppress(Exception):
        check_pickle(bytes(pickled))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_dtypes_are_not_shown_whole(tmp_path: Path) -> None:
    """A tuple that stands for a billion values would be written out."""
    file = tmp_path / "split.pkl"
    nested = b"".join([b"K\x00\x85", *[b"2\x86"] * 12])
    file.write_bytes(b"cnumpy\ndtype\n" + nested + b"\x85R.")
    with pytest.raises(ReadError, match=r"dtype a tuple, numbers are needed"):
        pickled_numbers(file)

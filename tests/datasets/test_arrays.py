"""Files of arrays that were damaged in any way are one error that names them."""

from __future__ import annotations

import contextlib
import io
import random
import struct
import zipfile

import numpy as np
import pytest

from structpe.datasets.arrays import array, arrays
from structpe.errors import ReadError


def packed(**given):
    buffer = io.BytesIO()
    np.savez(buffer, **given)
    return buffer.getvalue()


def header(text):
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + b"\0" * 64


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no array",
        packed(a=np.arange(3))[:-30],
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }\n"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }\n"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': " + "(" * 2000 + ", }\n"),
        header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n"),
    ],
)
def test_what_is_no_file_of_arrays_is_named(tmp_path, content):
    file = tmp_path / "a.npz"
    file.write_bytes(content)
    with pytest.raises(ReadError, match=r"a\.npz: not a file of arrays \(.*\); bring back the original"):
        array(file)
    with pytest.raises(ReadError, match=r"a\.npz: "):
        arrays(file, "a")


def test_an_archive_that_asks_for_a_password_is_named(tmp_path):
    content = bytearray(packed(a=np.arange(3)))
    for sign, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the flags of the member: encrypted
        content[content.index(sign) + place] |= 1
    (tmp_path / "a.npz").write_bytes(content)
    assert zipfile.is_zipfile(tmp_path / "a.npz")
    with pytest.raises(ReadError, match=r"a\.npz: not a file of arrays \(.*encrypted.*\)"):
        arrays(tmp_path / "a.npz", "a")


def test_any_damage_is_a_named_error(tmp_path):
    whole, drawn, file = packed(a=np.arange(30), b=np.eye(3)), random.Random(0), tmp_path / "a.npz"
    for _ in range(400):
        content = bytearray(whole)
        for _ in range(drawn.randint(1, 3)):
            content[drawn.randrange(len(content))] = drawn.randrange(256)
        file.write_bytes(content[: drawn.randint(1, len(content))] if drawn.random() < 0.2 else content)
        with contextlib.suppress(ReadError):
            arrays(file, "a", "b")

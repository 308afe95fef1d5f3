"""Files of arrays whose headers promise more than there is, and zips that swell."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest

from structpe.datasets import archives
from structpe.datasets.arrays import array, arrays
from structpe.datasets.molecules import TABLE, peptides_func
from structpe.datasets.ogb import load as load_ogb
from structpe.datasets.pickles import pickled_matrix
from structpe.errors import ReadError


def npy(shape: str, kind: str = "<f8", content: bytes = b"12345678", version: int = 1) -> bytes:
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return (
        b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(2 if version == 1 else 4, "little") + header + content
    )


def put(folder: Path, content: bytes, method: int = zipfile.ZIP_DEFLATED) -> Path:
    file = folder / "a.npz"
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("x.npy", content)
    return file


@pytest.mark.parametrize("version", [1, 2, 3])
def test_good_ones_are_read(tmp_path: Path, version: int) -> None:
    assert arrays(put(tmp_path, npy("(1,)", version=version)), "x")[0].shape == (1,)
    (tmp_path / "a.npy").write_bytes(npy("(1,)", version=version))
    assert array(tmp_path / "a.npy").shape == (1,)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy("(100000000000,)"), r"it claims float64 of shape \(100000000000,\), and has 1\d\d bytes"),
        (npy("(1000000, 1000000, 1000000, 1000000)"), "it claims float64 of shape"),
        (npy("(1,)", "|S999999999"), r"it claims \|S999999999 of shape \(1,\)"),
        (npy("(999999999999,)", "|S0"), "it claims |S0 of shape"),
        (npy("(-1,)"), r"it claims float64 of shape \(-1,\)"),
        (npy("(" * 40 + "1"), "not a file of arrays"),
        (npy("(1,)", "|O"), "not a file of arrays"),
        (npy("(1,)")[:20], "not a file of arrays"),
        (b"\x93NUMPY\x09\x00" + bytes(200), "not a file of arrays"),
    ],
)
def test_what_is_promised_must_be_there(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ReadError, match=message):
        arrays(put(tmp_path, content), "x")
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(ReadError, match=r"a.npy: not a file of arrays \("):
        array(tmp_path / "a.npy")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_blocks_of_any_size_are_refused(tmp_path: Path, method: int) -> None:
    with pytest.raises(ReadError, match=rf"'x.npy' in it is packed by method {method}, 0 or 8 are allowed"):
        arrays(put(tmp_path, npy("(1,)"), method), "x")
    with zipfile.ZipFile(tmp_path / "a.pt", "w", method) as archive:
        archive.writestr("a/data.pkl", b"N.")
    with pytest.raises(ReadError, match=rf"packed by method {method}"):
        load_ogb(tmp_path / "a.pt")


def test_what_swells_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "SLACK", 1000)
    file = put(tmp_path, npy("(100000,)", content=bytes(800_000)))
    with pytest.raises(ReadError, match=r"it grows from \d+ to 800128 bytes"):
        arrays(file, "x")


def test_lines_of_a_compressed_table_have_a_bound(tmp_path: Path) -> None:
    (tmp_path / TABLE).write_bytes(gzip.compress(b"smiles,labels\n" + b"C" * (1 << 22)))
    with pytest.raises(ReadError, match=r"not a compressed table .a line of more than 1048576 characters"):
        peptides_func(tmp_path)
    (tmp_path / TABLE).write_bytes(gzip.compress(b'smiles,labels\nC,"' + b"[" * 1000 + b'"\n'))
    with pytest.raises(ReadError, match=r"line 2: the labels are '\[\[.*\.\.\.; a list of 10 numbers 0 or 1 is needed"):
        peptides_func(tmp_path)


def test_a_sparse_matrix_is_no_larger_than_a_dense_one_may_be(tmp_path: Path) -> None:
    from scipy import sparse

    from tests.datasets.test_planetoid import dump

    file = tmp_path / "a.tx"
    matrix = sparse.csr_matrix((np.ones(1, dtype=np.float32), ([0], [0])), shape=(2, 1 << 40))
    dump(file, matrix)
    with pytest.raises(ReadError, match=r"a.tx: .*has more than"):
        pickled_matrix(file)

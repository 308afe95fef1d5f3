from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path, PosixPath
from typing import Any

import numpy as np
import pytest
import torch

from structpe.datasets import load
from structpe.datasets.ogb import _imported, safe_loaders, save
from structpe.datasets.ogb import load as load_file
from structpe.errors import ReadError
from tests.datasets.ogb_files import own_graphs

pytest.importorskip("ogb", reason="ogb is not installed")


@pytest.fixture
def graphs(tmp_path):
    return own_graphs(tmp_path)


class Malice:
    """Says of itself that it is made by calling something."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> Any:
        return self.call, self.arguments


PATH = f"{PosixPath.__module__}.PosixPath"
"""Where pickle finds it: in ``pathlib``, or in 3.13 in ``pathlib._local``."""


def hostile(name: str, mark: Path) -> Any:
    return {
        "posix.system": Malice(os.system, f"touch {mark}"),
        "builtins.eval": Malice(eval, f"open({str(mark)!r}, 'w')"),
        "builtins.getattr": Malice(getattr, "a", "upper"),
        "numpy.load": Malice(np.load, str(mark)),
        PATH: mark,
    }[name]


@pytest.mark.parametrize("place", ["processed/data_processed", "split/random/split_dict.pt"])
@pytest.mark.parametrize("name", ["posix.system", "builtins.eval", "builtins.getattr", "numpy.load", PATH])
@pytest.mark.parametrize("with_tensors", [False, True])
def test_what_a_file_names_is_not_run(graphs, place, name, with_tensors):
    mark = graphs / "mark"
    content = {"graphs": [], "labels": hostile(name, mark), "more": torch.zeros(2) if with_tensors else 0}
    torch.save(content, graphs / "mine" / place, pickle_protocol=2 if with_tensors else 4)
    with pytest.raises(ReadError) as caught:
        load("ogb-graph", graphs)
    named = name.removeprefix("builtins.") if with_tensors else name  # torch says them without
    assert f"{place}: the file names {named}, which no file of OGB needs; it was not run; delete" in str(caught.value)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.array([{}, []], dtype=object), "the file holds values of dtype 'O8', numbers are needed"),
        (np.array(["a"]), "the file holds values of dtype 'U1', numbers are needed"),
        (np.zeros(2, dtype=[("a", int), ("b", object)]), "the file holds values of dtype 'V16', numbers are needed"),
        (Malice(np.dtype, None), "the file holds values of dtype None"),
    ],
)
def test_arrays_hold_numbers_only(tmp_path, content, message):
    torch.save(content, tmp_path / "a.pt")
    with pytest.raises(ReadError, match=message):
        load_file(tmp_path / "a.pt")


@pytest.mark.parametrize(
    ("pickled", "message"),
    [
        (
            b"\x80\x02cnumpy._core.multiarray\n_reconstruct\n}X\x01\x00\x00\x00aK\x01sb.",
            "missing (1|a) required .*argument: 'state'",
        ),
        (b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x06\x00\x00\x00rot_13\x86R.", "holds bytes as 'rot_13'"),
        (b"\x80\x02X\x01\x00\x00\x000Q.", "persistent"),
        (b"\x80\x02cnumpy\nndarray\nK\x01\x85\x81(K\x01K\x02\x85cnumpy\nint64\nK\x00C\x00tb.", "names numpy.int64"),
        (
            b"\x80\x02cnumpy\nndarray\nK\x01\x85\x81(K\x01K\x02\x85K\x01K\x00C\x00tb.",
            "an array of something other than numbers",
        ),
        (b"\x80\x02c__torch__\nModule\n)\x81}b.", "names __torch__.Module"),
        (
            b"\x80\x02cbuiltins\nbytes\nK\x09\x85R.",
            "takes 1 positional argument|too many positional",
        ),
        (b"\x80\x02c", "names ., which no file of OGB needs"),
        (b"", "EOFError"),
    ],
)
def test_pickles_by_hand(tmp_path, pickled, message):
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("a/data.pkl", pickled)
    with pytest.raises(ReadError, match=message):
        load_file(tmp_path / "a.pt")


def test_what_is_no_archive_of_torch(tmp_path):
    file = tmp_path / "a.pt"
    with pytest.raises(ReadError, match=r"a.pt: there is no such file; fetch the whole data set"):
        load_file(file)
    file.write_bytes(pickle.dumps(Malice(os.system, f"touch {tmp_path / 'mark'}")))
    with pytest.raises(ReadError, match=r"not a file of OGB \(BadZipFile"):
        load_file(file)
    assert not (tmp_path / "mark").exists()


def test_what_a_file_of_ogb_may_hold(tmp_path):
    arrays = [
        np.array([[1, 2], [3, 4]], order=order, dtype=kind) for order in "CF" for kind in ("i8", ">i4", "f4", "?")
    ]
    for protocol in (2, 4):
        torch.save(
            {"a": arrays, "b": [["get", "name"]], "c": np.int64(7), "d": np.zeros((0, 3))},
            tmp_path / "a",
            pickle_protocol=protocol,
        )
        content = load_file(tmp_path / "a")
        for array, other in zip(arrays, content["a"], strict=True):
            assert np.array_equal(array, other)
            assert array.dtype.newbyteorder("=") == other.dtype
        assert (content["b"], content["c"], content["d"].shape) == ([["get", "name"]], 7, (0, 3))
    torch.save({"train": torch.arange(3), "size": np.float32(0.5)}, tmp_path / "b")
    content = load_file(tmp_path / "b", "cpu")
    assert (content["train"].tolist(), content["size"]) == ([0, 1, 2], 0.5)


def test_a_file_is_there_whole_or_not_at_all(tmp_path):
    with pytest.raises(AttributeError):
        save({"a": 1, "b": lambda: 0}, tmp_path / "folder" / "a")
    assert list((tmp_path / "folder").iterdir()) == []


def test_loaders_for_pytorch_geometric_are_safe_too(graphs):
    meta = {**load_file(graphs / "meta_dict.pt"), "dir_path": str(graphs / "mine")}
    loader = _imported("ogb.graphproppred").PygGraphPropPredDataset
    for _ in range(2):
        with safe_loaders():
            data = loader("ogbg-mine", meta_dict=meta)
            assert data[0].x.tolist() == [[0, 4], [1, 0], [2, 0]]
            assert data.get_idx_split()["test"].tolist() == [2]
    torch.save((Malice(os.system, f"touch {graphs / 'mark'}"), torch.ones(1)), data.processed_paths[0])
    with safe_loaders(), pytest.raises(ReadError, match=r"geometric_data_processed.pt: the file names posix.system"):
        loader("ogbg-mine", meta_dict=meta)
    assert not (graphs / "mark").exists()


def test_bytes_of_a_file_are_not_taken_for_addresses_of_objects(tmp_path):
    file, address = tmp_path / "data.pt", b"\x11" * 8  # of no object: to look there would end the process
    made = pickle.PROTO + b"\x03" + b"cnumpy\nndarray\n(K\x01\x85X\x01\x00\x00\x00OC\x08" + address + b"tR."
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("data/data.pkl", made)
    read = load_file(file)
    assert read.shape == (0,)
    assert read.dtype == np.float64

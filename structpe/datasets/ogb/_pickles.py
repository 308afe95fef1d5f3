"""Files written by ``ogb`` with ``torch.save``, read without running anything that they name.

``ogb`` 1.3.6 reads its processed data sets and splits with plain ``torch.load``. Since torch 2.6 this refuses pickles
of NumPy arrays, and the safe reader of torch does not support protocol 4, in which ``ogb`` writes processed data sets.
Reading them as full pickles could run any code. Here a file is read in one of two ways:

- A file without tensors by an unpickler that knows only the names in :data:`ALLOWED`.
- A file with tensors (from the loaders for PyTorch Geometric) by the safe reader of torch, with the same stand-ins and
  the four classes that such files need.
"""

from __future__ import annotations

import io
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from structpe.datasets.files.opcodes import look_through
from structpe.datasets.files.unpickling import Array, Empty, Function, Refused, Type, Unpickler
from structpe.datasets.files.zips import check_zip
from structpe.errors import ReadError, needing, reason_of
from structpe.files import finish, followed, lock

__all__ = ["load", "save"]

AGAIN = "it was not run; delete the file and fetch or make it again (files under 'processed' are made from 'raw')"


def load(file: str | Path, *_: object) -> Any:
    """Read a file of ``ogb``; replaces ``torch.load``, whose further arguments are ignored.

    Raises:
        ReadError: the file is missing or damaged, is not a file of torch, or names something that is not allowed.
    """
    file = Path(file)
    try:
        with zipfile.ZipFile(file) as archive:
            check_zip(archive, file.stat().st_size)
            names = archive.namelist()
            if any(re.fullmatch(r"[^/]+/data/\d+", name) for name in names):
                return _tensors(file, archive)
            pickled = _pickled(archive)
            return Unpickler(io.BytesIO(pickled), ALLOWED, "file of OGB").load()
    except FileNotFoundError:
        raise ReadError("there is no such file; fetch the whole data set").at(file) from None
    except Refused as refused:
        raise ReadError(f"{refused}; {AGAIN}").at(file) from None
    except (ReadError, MemoryError) as error:
        raise error.at(file) if isinstance(error, ReadError) else error from None
    except Exception as error:  # a damaged pickle may raise anything
        what = f"not a file of OGB ({type(error).__name__}: {reason_of(error)})"
        raise ReadError(f"{what}; {AGAIN}").at(file) from None


def save(content: object, file: str | Path, **options: Any) -> None:
    """Like ``torch.save``, but atomic: several processes may write the same file at once."""
    file = followed(Path(file))
    file.parent.mkdir(parents=True, exist_ok=True)
    with lock(file, lambda: None) as work:
        with (work / "new").open("wb") as draft:  # torch.save to a path gives no reason if it fails
            torch.save(content, draft, **options)
        finish(work / "new", file, work)


class _Scalar(Function):
    def __new__(cls, kind: Type, content: bytes) -> np.generic:  # type: ignore[misc]
        (number,) = np.frombuffer(content, kind.dtype)
        return number  # type: ignore[no-any-return]


class _Bytes(Function):
    def __new__(cls, text: str, codec: str) -> bytes:  # type: ignore[misc]
        if codec != "latin1":
            raise Refused(f"the file holds bytes as {codec!r}")
        return text.encode("latin-1")


class _NoBytes(Function):
    def __new__(cls) -> bytes:  # type: ignore[misc]
        return b""


ALLOWED: dict[tuple[str, str], type] = {
    ("numpy", "dtype"): Type,
    ("numpy", "ndarray"): Array,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): Empty for core in ("_core", "core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _Scalar for core in ("_core", "core")},
    ("_codecs", "encode"): _Bytes,
    **{(builtins, "bytes"): _NoBytes for builtins in ("builtins", "__builtin__")},
}
"""(module, name) -> stand-in for each name that a file may use; ``core`` is the name of ``_core`` in NumPy 1.

The last two are for bytes in protocol 2: as text, or ``bytes()`` if empty.
"""


def _pickled(archive: zipfile.ZipFile, cycles: bool = False) -> bytes:
    """Read the pickle in a file of torch, and check it with :func:`look_through`."""
    (content,) = (name for name in archive.namelist() if re.fullmatch(r"[^/]+/data\.pkl", name))
    pickled = archive.read(content)
    look_through(pickled, cycles)
    return pickled


def _tensors(file: Path, archive: zipfile.ZipFile) -> Any:
    with needing("torch_geometric", "ogb"):
        from torch_geometric.data.data import Data, DataEdgeAttr, DataTensorAttr
        from torch_geometric.data.storage import GlobalStorage

    _pickled(archive, cycles=True)
    known = [(stand_in, f"{module}.{name}") for (module, name), stand_in in ALLOWED.items()]
    with torch.serialization.safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage, *known]):
        try:
            return torch.load(file, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            named = re.search(r"GLOBAL (\S+)", str(error))
            what = f"names {named[1]}, which no file of OGB needs" if named else "is not a safe file of tensors"
            raise ReadError(f"the file {what}; {AGAIN}") from None

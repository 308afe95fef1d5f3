"""Files that ``ogb`` wrote with ``torch.save``, read without running anything that they name.

``ogb`` 1.3.6 reads its processed data sets and splits with plain ``torch.load``. Since torch 2.6 that refuses pickles
of NumPy arrays, and its safe reader cannot read the protocol (4) in which ``ogb`` writes the processed data sets.
Reading them as full pickles would run whatever a file says. Here a file is read in one of two ways:

- It holds no tensors: by an unpickler that knows the names in :data:`ALLOWED` and no other. Behind these are not
  NumPy's functions but stand-ins that make arrays and numbers of booleans, integers and floats only, because
  NumPy's own trust the description of a dtype that a file gives them.
- It holds tensors (those of the loaders for PyTorch Geometric): by torch's safe reader, with the same stand-ins and
  the four classes that such files need.
"""

from __future__ import annotations

import os
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from structpe.errors import ReadError

__all__ = ["load", "save"]

AGAIN = "it was not run; delete the file and fetch or make it anew (what lies under 'processed' is made from 'raw')"


def load(file: str | Path, *_: object) -> Any:
    """What a file of ``ogb`` holds; stands in for ``torch.load``, whose further arguments do not matter here.

    Raises:
        ReadError: the file is missing, is no archive of torch, is damaged, or names something that none needs.
    """
    file = Path(file)
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if any(re.fullmatch(r"[^/]+/data/\d+", name) for name in names):
                return _tensors(file)
            (content,) = (name for name in names if re.fullmatch(r"[^/]+/data\.pkl", name))
            with archive.open(content) as stream:
                return _Unpickler(stream).load()
    except FileNotFoundError:
        raise ReadError("there is no such file; fetch the whole data set").at(str(file)) from None
    except (ReadError, MemoryError) as error:
        raise error.at(str(file)) if isinstance(error, ReadError) else error from None
    except Exception as error:  # a damaged pickle may raise anything
        reason = " ".join(str(error).split())[:200]
        raise ReadError(f"no file of OGB ({type(error).__name__}: {reason}); {AGAIN}").at(str(file)) from None


def save(content: object, file: str | Path, **options: Any) -> None:
    """``torch.save``, but a file that is there is whole: several runs may make the same one at once."""
    draft = Path(f"{file}.{os.getpid()}")
    try:
        draft.parent.mkdir(parents=True, exist_ok=True)
        torch.save(content, draft, **options)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


class _Type:
    """A dtype: booleans, integers, floats."""

    def __init__(self, code: object, *_: object) -> None:
        if not isinstance(code, str) or not re.fullmatch(r"b1|[iu][1248]|f[248]", code):
            raise ReadError(f"the file holds values of dtype {code!r}, OGB's are numbers; {AGAIN}")
        self.code, self.order = code, "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = {"<": "<", ">": ">", "|": "|", "=": "="}[state[1]]

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.order + self.code)


class _Array(np.ndarray[Any, Any]):
    """An array whose dtype is a :class:`_Type`."""

    def __new__(cls, *_: object) -> _Array:
        """An empty one, whatever a file asks for: NumPy's own would take its bytes for addresses of objects."""
        return super().__new__(cls, (0,))

    def __setstate__(self, state: Any) -> None:
        version, shape, kind, fortran, content = state
        if type(kind) is not _Type or type(content) is not bytes:
            raise ReadError(f"the file holds an array that is none of numbers; {AGAIN}")
        super().__setstate__((version, shape, kind.dtype, fortran, content))  # checks that shape and content fit


class _Function:
    """A function that a pickle may call. A class, as attributes of a plain function could be set by a pickle."""

    def __setstate__(self, state: object) -> None:
        raise ReadError(f"the file gives a function a state; {AGAIN}")


class _Empty(_Function):
    def __new__(cls, *_: object) -> _Array:  # type: ignore[misc]
        return _Array()


class _Scalar(_Function):
    def __new__(cls, kind: _Type, content: bytes) -> np.generic:  # type: ignore[misc]
        (number,) = np.frombuffer(content, kind.dtype)
        return number  # type: ignore[no-any-return]


class _Bytes(_Function):
    def __new__(cls, text: str, codec: str) -> bytes:  # type: ignore[misc]
        if codec != "latin1":
            raise ReadError(f"the file holds bytes as {codec!r}; {AGAIN}")
        return text.encode("latin-1")


class _NoBytes(_Function):
    def __new__(cls) -> bytes:  # type: ignore[misc]
        return b""


ALLOWED: dict[tuple[str, str], type] = {
    ("numpy", "dtype"): _Type,
    ("numpy", "ndarray"): _Array,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _Empty for core in ("_core", "core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _Scalar for core in ("_core", "core")},
    ("_codecs", "encode"): _Bytes,
    **{(builtins, "bytes"): _NoBytes for builtins in ("builtins", "__builtin__")},
}
"""What stands for each name that a file may hold; ``core`` is how NumPy 1 called ``_core``.

The last two are how protocol 2 writes bytes: some as text, and none as ``bytes()``.
"""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type:
        if (module, name) not in ALLOWED:
            raise ReadError(f"the file names {module}.{name}, which no file of OGB needs; {AGAIN}")
        return ALLOWED[module, name]


def _tensors(file: Path) -> Any:
    from torch_geometric.data.data import Data, DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    known = [(stand_in, f"{module}.{name}") for (module, name), stand_in in ALLOWED.items()]
    with torch.serialization.safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage, *known]):
        try:
            return torch.load(file, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            named = re.search(r"GLOBAL (\S+)", str(error))
            what = f"names {named[1]}, which no file of OGB needs" if named else "is no safe file of tensors"
            raise ReadError(f"the file {what}; {AGAIN}") from None

"""Imports the last release of DGL without the part that does not work with newer libraries.

``dgl.graphbolt``, its loader for graphs on disk, needs ``torchdata.datapipes``, which torchdata 0.10 removed, and a
library compiled for one of a few old versions of PyTorch. Everything else works without it. So if it cannot work, it is
replaced by a module that raises an error when it is used.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from structpe.errors import MissingExtra, StructPEError

__all__ = ["import_dgl"]

BROKEN = "dgl.graphbolt"


class _StandIn(ModuleType):
    """An empty module. It raises AttributeError for dunder names, since ``inspect`` looks them up in all modules."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"{self.__name__}.{name} is not available: {self.__name__} of the installed DGL does not work with the "
            "installed PyTorch and torchdata; everything else of DGL does"
        )


def import_dgl() -> Any:
    """Import the module ``dgl`` so that it works with a newer PyTorch, and return it.

    ``import dgl`` fails there, but works after this call. Without a chosen backend DGL would write a file into the
    user's home folder; this function chooses PyTorch, and nothing is written.

    Raises:
        MissingExtra: DGL, or one of its requirements, is not installed.
        StructPEError: it cannot be imported for another reason.
    """
    if "dgl" in sys.modules:
        return sys.modules["dgl"]
    spec = importlib.util.find_spec("dgl")
    if spec is None or spec.origin is None:
        raise MissingExtra("dgl", "dgl")
    _forget()
    chosen = os.environ.get("DGLBACKEND")
    os.environ.setdefault("DGLBACKEND", "pytorch")
    if not _works(Path(spec.origin).parent):
        stand_in = _StandIn(BROKEN)
        stand_in.__spec__ = ModuleSpec(BROKEN, None)
        sys.modules[BROKEN] = stand_in
    try:
        import dgl
    except Exception as error:
        _forget()
        if isinstance(error, ModuleNotFoundError) and error.name in ("packaging", "pandas"):
            raise MissingExtra(error.name, "dgl") from None
        raise StructPEError(f"the installed DGL cannot be imported ({type(error).__name__}: {error})") from error
    finally:
        if chosen is None:
            del os.environ["DGLBACKEND"]
    return dgl


def _works(folder: Path) -> bool:
    """Whether the requirements of ``dgl.graphbolt`` are installed."""
    import torch

    try:
        pipes = importlib.util.find_spec("torchdata.datapipes")
    except ModuleNotFoundError:
        pipes = None
    version = torch.__version__.partition("+")[0]
    return pipes is not None and any(folder.glob(f"graphbolt/*graphbolt_pytorch_{version}.*"))


def _forget() -> None:
    """Remove partly imported modules after a failed import."""
    for name in [name for name in sys.modules if name == "dgl" or name.startswith("dgl.")]:
        del sys.modules[name]

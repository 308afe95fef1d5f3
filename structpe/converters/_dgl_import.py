"""DGL as it was last released, imported without the part of it that newer libraries have broken.

``dgl.graphbolt``, its loader for graphs on disk, needs ``torchdata.datapipes``, which is gone since torchdata 0.10, and
a library compiled for one of a few old versions of PyTorch. All else works without it. So where it cannot work, a
module stands in for it that says so when it is used.
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
    """A module without contents. Whoever asks what it has, as ``inspect`` asks all modules, gets no for answer."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"{self.__name__}.{name} is not available: {self.__name__} of the installed DGL does not work with the "
            "installed PyTorch and torchdata; everything else of DGL does"
        )


def import_dgl() -> Any:
    """The module ``dgl``: imported, if it is not yet, so that it works beside a PyTorch newer than itself.

    ``import dgl`` itself fails there; after a call of this it works. DGL asks for a backend when it is imported, and
    writes a file into the home of the user if none is chosen; here it is PyTorch, and nothing is written.

    Raises:
        MissingExtra: DGL, or something that it needs, is not installed.
        StructPEError: it cannot be imported all the same.
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
    """Whether there is what ``dgl.graphbolt`` needs."""
    import torch

    try:
        pipes = importlib.util.find_spec("torchdata.datapipes")
    except ModuleNotFoundError:
        pipes = None
    version = torch.__version__.partition("+")[0]
    return pipes is not None and any(folder.glob(f"graphbolt/*graphbolt_pytorch_{version}.*"))


def _forget() -> None:
    """Remove what an import that failed has left, as its modules have been imported halfway."""
    for name in [name for name in sys.modules if name == "dgl" or name.startswith("dgl.")]:
        del sys.modules[name]

"""Experiments are scripts, not modules: load one by its path."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from tests.modules import ROOT


def script(path: str) -> ModuleType:
    """The script at ``experiments/<path>``, as a module; its ``main`` is not run. It may import those beside it."""
    name = "experiments." + path.removesuffix(".py").replace("/", ".")
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "experiments" / path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
        folder = str((ROOT / "experiments" / path).parent)
        sys.path.insert(0, folder)
        try:
            spec.loader.exec_module(sys.modules[name])
        finally:
            sys.path.remove(folder)
    return sys.modules[name]

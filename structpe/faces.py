"""Packages whose names and modules are imported when they are first used, so that importing the package is fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["face"]


def face(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of such a package.

    Args:
        package: its dotted name.
        homes: each public name, and the module that defines it, without the name of the package.
    """
    own = vars(sys.modules[package])

    def find(name: str) -> Any:
        """Import a public name from the module that defines it, or a module; from then on it is an attribute."""
        if name in homes:
            own[name] = getattr(import_module(f"{package}.{homes[name]}"), name)
            return own[name]
        if name.startswith("_") or not name.isidentifier() or find_spec(f"{package}.{name}") is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return find, lambda: sorted({*own, *homes})

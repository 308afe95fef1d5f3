"""What is not there, and what has no place in a structure: values that are missing, attributes that are left out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from structpe.errors import listed

__all__ = ["is_missing", "present", "warn_left_out"]

Key = TypeVar("Key")


def is_missing(value: Any) -> bool:
    """Whether it is None, or the NaN, NA or NaT of pandas: no list and no array is."""
    if isinstance(value, (float, np.floating)):
        return bool(value != value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def present(attributes: Mapping[Key, Any]) -> dict[Key, Any]:
    """The attributes without those that are missing."""
    return {name: value for name, value in attributes.items() if not is_missing(value)}


def warn_left_out(names: Iterable[str], remedy: str) -> None:
    """Warn of attributes that have no place in a structure, if there are any."""
    if names := list(names):
        wrong = f"left out, as features of a structure are numbers with a row per node or edge: {listed(names)}"
        # From here over the converter, each_structure, as_structures and as_structure to the caller.
        warnings.warn(f"{wrong}; {remedy}", stacklevel=6)

"""Configurations with other values."""

from __future__ import annotations

from typing import Any, TypeVar

from structpe.tasks.config import make, merged, to_dict

C = TypeVar("C")


def with_training(config: C, **training: Any) -> C:
    """The configuration with other values of some keys of its training, such as ``logs={"every": 1}``."""
    plain, kind = to_dict(config), type(config.training)  # type: ignore[attr-defined]
    return make(type(config), {**plain, "training": merged(kind, plain["training"], training)})

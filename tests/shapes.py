"""The shapes in annotations, checked at each call while tests run: ``pytest`` is given this checker in pyproject.toml.

Only what says a shape is checked. Other types are mypy's business; here many tests give wrong ones on purpose, to see
the error that a user would see.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from beartype import beartype

__all__ = ["checked"]

SHAPE = re.compile(r"\b(Float|Int|Bool|Shaped|Complex)\[")


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, its annotations checked at each call if there is a shape among them."""
    shaped = any(SHAPE.search(str(hint)) for hint in function.__annotations__.values())
    return beartype(function) if shaped else function

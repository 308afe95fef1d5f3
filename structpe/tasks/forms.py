"""What the functions of trained models are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from structpe.errors import ConfigError

__all__ = ["listed"]

T = TypeVar("T")


def listed(given: T | Iterable[T], kinds: tuple[type[T], ...], wrong: str, hint: str, none: str) -> list[T]:
    """One object or several as a list.

    Args:
        given: what was given.
        kinds: the classes of the objects.
        wrong: for the error about an object of another class, what is taken.
        hint: for the same, what to do.
        none: the error if there is no object.

    Raises:
        ConfigError: there is none, or one of another class.
    """
    several: Any = [given] if isinstance(given, kinds) or not isinstance(given, Iterable) else given
    each = list(several)
    if not each:
        raise ConfigError(none)
    for one in each:
        if not isinstance(one, kinds):
            raise ConfigError(f"{wrong}, and {type(one).__name__} is not one; {hint}")
    return each

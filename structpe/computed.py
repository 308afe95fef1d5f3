"""An attribute that is computed when it is first asked for, and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["computed"]

T = TypeVar("T")


class computed(Generic[T]):  # a word, as classes write it: @computed
    """A method whose result is an attribute, as by ``functools.cached_property``, without its lock.

    Up to Python 3.11 that lock is one for all objects of a class, and held while the method runs: a process that is
    forked meanwhile, in another thread, waits for it for ever. Here several threads may compute at once; the result
    of the first that is done is what all get.

    Args:
        method: computes the value from the object, which must have a ``__dict__``.
    """

    def __init__(self, method: Callable[[Any], T]) -> None:
        self.method, self.name, self.__doc__ = method, method.__name__, method.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Self | T:
        # Not called again for this object: without a __set__, what is in its __dict__ comes first.
        if instance is None:
            return self
        value: T = instance.__dict__.setdefault(self.name, self.method(instance))
        return value

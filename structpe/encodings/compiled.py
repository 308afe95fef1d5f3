"""Kernels that numba compiles, where it is installed (the extra ``fast``). Elsewhere NumPy computes the same.

A kernel is a plain function of arrays and numbers, decorated by :class:`compiled`. Its caller has another way, with the
same result, and asks first whether the kernel pays. To import numba takes as long as the distances of 10,000 molecules
without it, to compile a kernel up to twenty times as long. So a process takes the other way until it has spent about a
quarter of a second on what the kernel does. A kernel is given its room, and loops over it: to create arrays, to assign
slices and to call NumPy's functions takes longer to compile than all the rest. It runs on one thread: numba's own
threads would reset those of PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, update_wrapper
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType
from typing import Any

from structpe.computed import computed

__all__ = ["OF_A_LIST", "at_once", "compiled", "numba_or_none", "slow"]

WORTH = 1 << 22
"""After so many numbers without a kernel it is compiled: NumPy takes 20 to 100 nanoseconds each."""

OF_A_LIST = 1 << 14
"""Numbers that take as long as the calls of NumPy's functions for a list of structures, however short it is."""

_after: float = WORTH


@cache
def numba_or_none() -> Any | None:
    """The module; None if it is not installed. A numba that cannot be imported is an error."""
    return None if find_spec("numba") is None else import_module("numba")


class compiled:  # a word, as functions wear it: @compiled
    """A function that is compiled when it is first called. What is compiled is kept on disk if a folder is writable.

    It releases the GIL, so that threads may call it. It may call other such functions of its module.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self._numbers = function, 0
        update_wrapper(self, function)

    def pays(self, numbers: int) -> bool:
        """Whether to call it, given the number of numbers that it would compute; they count also if it is not called.

        Args:
            numbers: distances, or as many as take the same time without it.
        """
        self._numbers += numbers
        return self._numbers > _after and numba_or_none() is not None

    def __call__(self, *arguments: Any) -> Any:
        """Run it."""
        return self._kernel(*arguments)

    def plainly(self, *arguments: Any) -> Any:
        """Run it by Python, for a kernel of few numbers."""
        return self._function(*arguments)

    @computed
    def _kernel(self) -> Any:
        numba = numba_or_none()
        assert numba is not None  # callers ask pays() first
        function = self._linked(numba)
        try:
            return numba.njit(cache=True, nogil=True)(function)
        except RuntimeError:  # no folder is writable: compiled anew in each process
            return numba.njit(nogil=True)(function)

    def _linked(self, numba: Any) -> Callable[..., Any]:
        """The function, in which those that it calls are written out."""
        function: Any = self._function
        called = {name: function.__globals__.get(name) for name in function.__code__.co_names}
        inner = {
            name: numba.njit(inline="always")(each._linked(numba))
            for name, each in called.items()
            if isinstance(each, compiled)
        }
        if not inner:
            return self._function
        linked = FunctionType(function.__code__, function.__globals__ | inner)
        return update_wrapper(linked, function)


@contextmanager
def _compiling_after(numbers: float) -> Iterator[None]:
    global _after
    before, _after = _after, numbers
    try:
        yield
    finally:
        _after = before


def slow() -> AbstractContextManager[None]:
    """Take the ways without numba inside a ``with`` block: for tests, and to compare their times."""
    return _compiling_after(math.inf)


def at_once() -> AbstractContextManager[None]:
    """Take kernels from the first number on inside a ``with`` block: for tests, and to compare their times."""
    return _compiling_after(0)

"""Kernels that numba compiles, where it is installed (the extra ``fast``). Elsewhere numpy computes the same.

A kernel is a plain function of arrays and numbers, decorated by :func:`compiled`; whoever calls it asks :func:`fast`
first, and has another way. It runs on one thread: numba's own threads would reset those of PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, update_wrapper
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["compiled", "fast", "numba_or_none", "slow"]


_slow = 0  # how many blocks of `slow` are open


@cache
def numba_or_none() -> Any | None:
    """The module; None if it is not installed. A numba that cannot be imported is an error."""
    return None if find_spec("numba") is None else import_module("numba")


def fast() -> bool:
    """Whether kernels are to be compiled."""
    return not _slow and numba_or_none() is not None


@contextmanager
def slow() -> Iterator[None]:
    """Take the ways without numba inside a ``with`` block: for tests, and to compare their times."""
    global _slow
    _slow += 1
    try:
        yield
    finally:
        _slow -= 1


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled when it is first called. What is compiled is kept on disk if a folder for it is writable.

    It releases the GIL, so that threads may call it. It cannot call another such function.
    """

    @cache
    def kernel() -> Any:
        numba = numba_or_none()
        assert numba is not None  # callers ask fast() first
        try:
            return numba.njit(cache=True, nogil=True)(function)
        except RuntimeError:  # no folder is writable: compiled anew in each process
            return numba.njit(nogil=True)(function)

    def call(*arguments: Any) -> Any:
        return kernel()(*arguments)

    update_wrapper(call, function)
    return call

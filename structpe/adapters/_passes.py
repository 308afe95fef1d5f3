"""What a pass knows while it runs, kept with the pass: two threads may be in one model at once.

A position model in another library's model is asked in its layers, which hand on nothing of ours. So what was made for
a pass is remembered beside it: each thread, and each task of an event loop, has its own.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any, Generic, TypeAlias, TypeVar

import torch
from torch import nn

__all__ = ["NAME", "Passes", "enter"]

NAME = "structpe"
"""Of the submodule, and of the argument of a call that holds its positions."""

T = TypeVar("T")
Running: TypeAlias = "dict[int, tuple[Any, ...]]"
"""Of each :class:`Passes` by its id: what its passes know, the innermost last."""

_of_task: ContextVar[Running | None] = ContextVar("_of_task", default=None)
_of_thread = threading.local()  # besides, because torch.compile reads no context variable


class Passes(Generic[T]):
    """The passes of one model: of each thread those that it runs, the innermost last."""

    def __init__(self) -> None:
        self._all: list[T] = []

    def begin(self, known: T) -> None:
        """A pass begins, which knows this; each needs an :meth:`end`."""
        running = self._running()
        self._set({**running, id(self): (*running.get(id(self), ()), known)})
        if not torch.compiler.is_compiling():
            self._all.append(known)

    def end(self) -> None:
        """The innermost pass ends; nothing if there is none, because its beginning failed."""
        running = self._running()
        mine = running.get(id(self), ())
        if not mine:
            return
        others = {key: each for key, each in running.items() if key != id(self)}
        self._set({**others, id(self): mine[:-1]} if mine[1:] else others)
        if not torch.compiler.is_compiling():
            self._all = [each for each in self._all if each is not mine[-1]]

    def known(self) -> T | None:
        """What the innermost pass knows; None outside of passes.

        Where gradients are computed, for which another thread computes checkpointed layers again, it is what the only
        pass knows that runs anywhere.
        """
        mine = self._running().get(id(self), ())
        if mine:
            found: T = mine[-1]
            return found
        return self._all[0] if len(self._all) == 1 and _computes_gradients() else None

    def _running(self) -> Running:
        of_task = None if torch.compiler.is_compiling() else _of_task.get()
        found: Running = getattr(_of_thread, "running", {}) if of_task is None else of_task
        return found

    def _set(self, running: Running) -> None:
        _of_thread.running = running
        if not torch.compiler.is_compiling():
            _of_task.set(running or None)


def enter(module: nn.Module, position: nn.Module, name: str = NAME) -> None:
    """Make a position model a submodule of a model: in training if the model is, and only then."""
    module.add_module(name, position.train(module.training))


def _computes_gradients() -> bool:
    return not torch.compiler.is_compiling() and torch._C._current_graph_task_id() != -1

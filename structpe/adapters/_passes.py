"""The state of forward passes through models of other libraries, and what a position model changes in such a model.

The layers of another library pass no positions on to each other. The state of a pass is therefore kept outside of the
model, separately for each thread and each task of an event loop.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any, Generic, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

__all__ = ["HOOKS", "NAME", "Altered", "Frozen", "Passes", "Without", "Zeros", "computed_again", "undo"]


NAME = "structpe"
"""Name of the submodule, and of the argument with its positions."""
HOOKS = "_structpe_hooks"
"""Attribute of a model with what its position models changed, in order: hooks, attributes, frozen parameters."""

T = TypeVar("T")
Running: TypeAlias = "dict[int, tuple[Any, ...]]"
"""The states of the passes of each :class:`Passes`, by its id, the innermost last."""

_of_task: ContextVar[Running | None] = ContextVar("_of_task", default=None)
_of_thread = threading.local()  # as well, because torch.compile cannot read context variables


class Passes(Generic[T]):
    """The running passes of one model, in each thread, the innermost last."""

    def __init__(self) -> None:
        self._all: list[T] = []

    def begin(self, known: T) -> None:
        """Begin a pass with a state; each needs an :meth:`end`."""
        running = self._running()
        self._set({**running, id(self): (*running.get(id(self), ()), known)})
        if not torch.compiler.is_compiling():
            self._all.append(known)

    def end(self) -> None:
        """End the innermost pass; do nothing without one, as after a failure at its beginning."""
        running = self._running()
        mine = running.get(id(self), ())
        if not mine:
            return
        others = {key: each for key, each in running.items() if key != id(self)}
        self._set({**others, id(self): mine[:-1]} if mine[1:] else others)
        if not torch.compiler.is_compiling():
            self._all.pop(next(i for i, each in enumerate(self._all) if each is mine[-1]))

    def known(self) -> T | None:
        """The state of the innermost pass; None outside of passes.

        The backward pass recomputes checkpointed layers in another thread. There it is the state of the pass in any
        thread, if there is only one.
        """
        mine = self._running().get(id(self), ())
        if mine:
            found: T = mine[-1]
            return found
        alone = bool(self._all) and all(each is self._all[0] for each in self._all)
        return self._all[0] if alone and _computes_gradients() else None

    def _running(self) -> Running:
        of_task = None if torch.compiler.is_compiling() else _of_task.get()
        found: Running = getattr(_of_thread, "running", {}) if of_task is None else of_task
        return found

    def _set(self, running: Running) -> None:
        _of_thread.running = running
        if not torch.compiler.is_compiling():
            _of_task.set(running or None)


class Altered:
    """An attribute of an object, changed until it is removed.

    Args:
        holder: the object.
        name: of the attribute.
        value: its value until then. A module's parameter of this name stays registered, and is not seen.
    """

    def __init__(self, holder: Any, name: str, value: Any) -> None:
        self.holder, self.name = holder, name
        self.before = {name: holder.__dict__[name]} if name in holder.__dict__ else {}
        holder.__dict__[name] = value

    def remove(self) -> None:
        """Undo the change."""
        self.holder.__dict__.pop(self.name, None)
        self.holder.__dict__.update(self.before)


class Frozen:
    """A parameter that is not trained until this is removed."""

    def __init__(self, parameter: nn.Parameter) -> None:
        self.parameter, self.before = parameter, parameter.requires_grad
        parameter.requires_grad_(False)

    def remove(self) -> None:
        """Let it be trained again, if it was."""
        self.parameter.requires_grad_(self.before)


class Without:
    """A hook of an embedding of positions, whose vectors are 0."""

    def __call__(self, module: Any, given: Any, out: Tensor) -> Tensor:
        return torch.zeros_like(out)


class Zeros:
    """A hook of a module that hides a parameter behind zeros, which may be on another device by now.

    Args:
        name: of the parameter, which :class:`Altered` hides first, and brings back.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Any, _: Any) -> None:
        module.__dict__[self.name] = torch.zeros_like(module._parameters[self.name])


def undo(model: nn.Module) -> None:
    """Undo what position models changed in a model, the last first, and remove them."""
    for each in reversed(model.__dict__.pop(HOOKS, [])):
        each.remove()
    model._modules.pop(NAME, None)


def computed_again() -> bool:
    """Whether a layer may be computed twice, for gradients (checkpointing), or is computed for the second time.

    Both times must save as many tensors, so that a layer must not use what another one has computed.
    """
    if torch.compiler.is_compiling():
        return False
    # Checkpointing holds back what is saved by such hooks; of the older kind, without gradients at first.
    hooks: Any = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return hooks is not None or not torch.is_grad_enabled() or _computes_gradients()


def _computes_gradients() -> bool:
    return not torch.compiler.is_compiling() and torch._C._current_graph_task_id() != -1

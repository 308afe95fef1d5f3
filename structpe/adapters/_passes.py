"""The state of forward passes through models of other libraries, and additive masks for PyTorch's attention.

The layers of another library pass no positions on to each other. The state of a pass is therefore kept outside of the
model, separately for each thread and each task of an event loop.
"""

from __future__ import annotations

import copy
import math
import threading
from contextvars import ContextVar
from typing import Any, Generic, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from structpe.attention import additive
from structpe.errors import PositionError, StructPEError
from structpe.positions import PositionModel, Positions, Site
from structpe.positions.batch import encode
from structpe.structure import path
from structpe.terms import Lookup, Terms

__all__ = ["NAME", "Passes", "added", "check_additive", "enter", "size_of", "written", "written_for"]


NAME = "structpe"
"""Name of the submodule, and of the argument with its positions."""
HOOKS = "_structpe_hooks"
"""Attribute of a model with the hooks of its position models."""

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
            self._all = [each for each in self._all if each is not mine[-1]]

    def known(self) -> T | None:
        """The state of the innermost pass; None outside of passes.

        The backward pass recomputes checkpointed layers in another thread. There it is the state of the pass in any
        thread, if there is only one.
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
    """Make a position model a submodule of a model, in training mode if the model is."""
    module.add_module(name, position.train(module.training))


def leave(module: nn.Module) -> None:
    """Remove the hooks and the submodule of position models."""
    for hook in module.__dict__.pop(HOOKS, []):
        hook.remove()
    module._modules.pop(NAME, None)


def _computes_gradients() -> bool:
    return not torch.compiler.is_compiling() and torch._C._current_graph_task_id() != -1


def written(
    layers: list[Terms], like: Tensor, heads: int, positions: Positions, present: Tensor | None, causal: bool = False
) -> list[Tensor]:
    """The mask (b, h, n, n) of each layer, with the dtype and on the device of ``like``."""
    there = positions.present if present is None else present
    b, n = size_of(positions) if there is None else (there.shape[0], there.shape[1])
    return written_for(layers, like.new_empty(b, heads, n, 0), there, causal)


def written_for(layers: list[Terms], like: Tensor, present: Tensor | None, causal: bool = False) -> list[Tensor]:
    """The mask of each layer for (b, h, n, .) queries; the same one where layers have the same terms."""
    extra = Terms(causal=causal)
    if present is not None:
        extra += Terms(mask=(present.to(like.device)[:, None, None],))
    made: list[tuple[list[int], Tensor]] = []
    for terms in layers:
        of = [id(x) for name in ("bias", "factors", "mask", "pairs") for x in getattr(terms, name)]
        known = [mask for other, mask in made if other == of]
        made.append((of, known[0] if known else additive(terms + extra, like, like.shape[2])))
    return [mask for _, mask in made]


def check_additive(position: PositionModel) -> None:
    """Check that a position model only adds to scores, by its terms for a text of two words.

    If its encodings need more than a text has, it is first checked in a pass.

    Raises:
        UnsupportedTerm: it has terms that do not add to scores.
    """
    asked, like = copy.deepcopy(position).eval(), next(iter(position.parameters()), torch.zeros(()))
    with torch.random.fork_rng([like.device] if like.is_cuda else []), torch.no_grad():
        try:
            given = encode([path(["a", "b"])], asked.encodings).to(like.device, like.dtype)
            prepared = asked.prepare(given)
            terms = [asked.terms(prepared, Site(layer)) for layer in range(asked.dims.layers)]
        except StructPEError:
            return
        written(terms, like, asked.dims.heads, given, torch.ones(1, 2, dtype=torch.bool))


def size_of(positions: Positions) -> tuple[int, int]:
    """The number of structures, or 1 if all have the same positions, and of their units.

    Raises:
        PositionError: there are only listed pairs, from which the numbers are unknown.
    """
    for value in positions.values():
        if isinstance(value, Tensor):
            return value.shape[0], value.shape[1]
        if isinstance(value, Lookup):
            return max(len(value.rows), value.index.shape[0]), value.index.shape[1]
    raise PositionError("positions of listed pairs do not say how many units there are; give present")


def added(named: dict[str, Any], mask: Tensor, name: str, padding: str) -> dict[str, Any]:
    """Arguments of PyTorch's attention with a single additive mask (b h, n, n): the sum of the given ones and this.

    A given mask is boolean, True for forbidden pairs, or additive. A query that attends to nothing has a row of zeros.
    """
    named = dict(named)
    for key in (name, padding):
        given: Tensor | None = named.pop(key, None)
        if given is None:
            continue
        values = given
        if given.dtype == torch.bool:
            values = torch.zeros_like(given, dtype=mask.dtype).masked_fill(given, -math.inf)
        if key == padding:
            values = values[:, None, None]
        elif given.ndim == 3:
            values = values.view(mask.shape)
        mask = mask + values.to(mask.dtype)
    nowhere = (mask == -math.inf).all(-1, keepdim=True)
    return {**named, name: torch.where(nowhere, 0.0, mask).flatten(0, 1)}

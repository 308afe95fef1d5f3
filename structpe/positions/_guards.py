"""Turns mistakes in a user's own position model into clear errors: what was given, what is needed, what to do.

Each method of a class is wrapped once, when the class is defined. The type of its result is checked, and its shape
where that costs nothing; the cause of a failure is looked for only after it. No values of tensors are read. What is
computed of positions alone, by ``prepare`` and ``terms``, is computed without autocast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import isfunction
from typing import Any

import torch
from torch import Tensor

from structpe.errors import PositionError
from structpe.positions._batch import Positions
from structpe.precision import exactly
from structpe.structure import Structure

__all__ = ["guard"]

SLIPS = (AttributeError, TypeError, ValueError, LookupError, RuntimeError)
"""What Python and PyTorch raise if a method is given an argument of the wrong kind."""
PREPARED = {"inputs": 1, "layer": 1, "sources": 1, "terms": 0}
"""The index of ``prepared`` among the arguments of each site."""


def guard(cls: type, kinds: Mapping[str, type], silent: Callable[[type, str], bool]) -> None:
    """Wrap the methods that a class itself defines.

    Args:
        cls: a subclass of ``PositionModel``.
        kinds: the type that each site must return.
        silent: whether a class inherits the default method of a name.
    """
    own = {name: method for name, method in vars(cls).items() if isfunction(method)}
    if "__init__" in own:
        setattr(cls, "__init__", _built(own["__init__"]))  # noqa: B010, mypy refuses the plain assignment
    if "prepare" in own:
        setattr(cls, "prepare", _preparing(exactly(own["prepare"])))  # noqa: B010
    for site, kind in kinds.items():
        if site in own:
            method = exactly(own[site]) if site == "terms" else own[site]
            setattr(cls, site, _asked(site, method, kind, silent))


def _built(init: Callable[..., None]) -> Callable[..., None]:
    @wraps(init)
    def whole(self: Any, *given: Any, **named: Any) -> None:
        try:
            init(self, *given, **named)
        except AttributeError as error:
            if "dims" in vars(self):
                raise
            raise PositionError(_not_begun(self)) from error
        if "dims" not in vars(self):
            raise PositionError(_not_begun(self))

    return whole


def _not_begun(model: Any) -> str:
    name = type(model).__name__
    return (
        f"{name}.__init__ does not call super().__init__(dims, [encoding, ...]), which must come before anything else "
        f"is set; add it as its first line"
    )


def _preparing(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def prepare(self: Any, positions: Any) -> Any:
        try:
            return method(self, positions)
        except SLIPS as error:
            if isinstance(positions, Mapping):
                raise
            raise PositionError(_no_positions(self, "prepare", positions)) from error

    return prepare


def _asked(
    site: str, method: Callable[..., Any], kind: type, silent: Callable[[type, str], bool]
) -> Callable[..., Any]:
    """The wrapped method of a site; inputs and layer must return the shape of x, their first argument."""
    shaped = kind is Tensor

    @wraps(method)
    def answered(self: Any, *given: Any, **named: Any) -> Any:
        prepared = given[PREPARED[site]] if len(given) > PREPARED[site] else named.get("prepared")
        try:
            got: Any = method(self, *given, **named)
        except SLIPS as error:
            place = given[-1] if given and site in ("terms", "layer", "sources") else named.get("site")
            if isinstance(place, int):
                raise PositionError(_no_site(self, site, place)) from error
            if reason := _why(self, site, prepared, error, silent(type(self), "prepare")):
                raise PositionError(reason) from error
            raise
        except PositionError as error:
            refused = str(error).startswith("Terms(")  # by the terms: they were given positions, or parts of these
            if refused and isinstance(prepared, Positions) and not silent(type(self), "prepare"):
                raise PositionError(_unprepared(self, site)) from error
            raise
        if not issubclass(type(got), kind):
            handed_on = isinstance(got, Positions) and not silent(type(self), "prepare")
            raise PositionError(_unprepared(self, site) if handed_on else _other_kind(self, site, got, kind))
        if shaped and given and not torch.compiler.is_compiling() and got.shape != given[0].shape:
            raise PositionError(
                f"position model {self.name!r}: {site} gives shape {tuple(got.shape)}; it must be that of the units, "
                f"(b, n, d) = {tuple(given[0].shape)}"
            )
        return got

    return answered


def _why(model: Any, site: str, prepared: Any, error: Exception, plain: bool) -> str:
    """Why a site failed, if that is known."""
    name = model.name
    if not plain and isinstance(prepared, Positions):
        return _unprepared(model, site)
    if (plain and not isinstance(prepared, Mapping)) or isinstance(prepared, Structure):
        return _no_positions(model, site, prepared)
    if prepared is None:
        return f"position model {name!r}: its prepare gives None, so that {site} has nothing to read; return something"
    if isinstance(error, IndexError):
        reason = " ".join(str(error).split())
        return (
            f"position model {name!r}: {site} looks up a row that is not there ({reason}); rows of a table are "
            f"whole numbers from 0 to its length - 1: clamp what the encoding gives, or make the table longer"
        )
    return ""


def _unprepared(model: Any, site: str) -> str:
    return (
        f"position model {model.name!r}: {site} was given positions, and takes what prepare makes of them, once per "
        f"batch: prepared = model.prepare(positions), then model.{site}({'x, ' * (site != 'terms')}prepared, ...)"
    )


def _no_site(model: Any, site: str, given: int) -> str:
    return f"position model {model.name!r}: {site} takes a Site, Site(layer={given}) say; given is {given!r}"


def _no_positions(model: Any, site: str, given: Any) -> str:
    return (
        f"position model {model.name!r}: {site} takes positions, and was given {type(given).__name__}; encode first: "
        f"model.prepare(structpe.encode([structure], model.encodings))"
    )


def _other_kind(model: Any, site: str, got: Any, kind: type) -> str:
    what = {"Tensor": "a tensor (b, n, d)", "Terms": "Terms(...), Terms() for none"}.get(kind.__name__, kind.__name__)
    given = "None" if got is None else f"{type(got).__name__}"
    lost = "; is there a return missing?" if got is None else ""
    return f"position model {model.name!r}: {site} gives {given}, and must give {what}{lost}"

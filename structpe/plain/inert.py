"""Options that have no effect are errors: one mechanism for all configurations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any

from structpe.errors import ConfigError

__all__ = ["Inert", "recorded", "refuse_inert"]


def _always(config: Any) -> bool:
    """The default condition."""
    return True


@dataclass(frozen=True)
class Inert:
    """Fields of a configuration that have no effect under a condition.

    A configuration lists its own as the class attribute ``inert``; those of its bases hold too.

    Args:
        fields: their names.
        why: the condition in words, such as ``attention is false``.
        when: whether it holds for a configuration.
    """

    fields: tuple[str, ...]
    why: str
    when: Callable[[Any], bool] = _always


_ASKED: ContextVar[bool] = ContextVar("_ASKED", default=True)


@contextmanager
def recorded() -> Iterator[None]:
    """A context without this check, for configurations that a run has recorded: nobody can change them any more."""
    before = _ASKED.set(False)
    try:
        yield
    finally:
        _ASKED.reset(before)


def refuse_inert(config: Any, prefix: str = "", also: Iterable[Inert] = ()) -> None:
    """Check that a configuration sets no field that has no effect; such fields must have their defaults.

    Args:
        config: a dataclass.
        prefix: of its keys in errors, such as ``training.``.
        also: further fields, whose condition is known to the caller only, instead of those of the class.

    Raises:
        ConfigError: such a field has another value than its default; the error says which setting makes it inert.
    """
    if not _ASKED.get():
        return
    rules = also or [rule for cls in type(config).__mro__ for rule in vars(cls).get("inert", ())]
    defaults = {each.name: _default(each) for each in fields(config)}
    for rule in rules:
        for name in rule.fields:
            if (value := getattr(config, name)) != defaults[name] and rule.when(config):
                wrong = f"{prefix}{name} is {value!r}, which has no effect, as {rule.why}"
                raise ConfigError(f"{wrong}; leave {prefix}{name} out, or change that")


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()

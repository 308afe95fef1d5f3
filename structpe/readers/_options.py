"""Check the names and types of options of a reader."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from structpe.errors import ReadError

__all__ = ["check_options", "names_of"]

Function: TypeAlias = Callable[..., Any]


def names_of(items: Function) -> tuple[str, ...]:
    """Names of the options of a reader."""
    return tuple(inspect.signature(items).parameters)[1:]


def check_options(reader: str, items: Function, given: Mapping[str, Any]) -> None:
    """Check options of a reader, before it opens a file.

    Args:
        reader: its name.
        items: its function.
        given: the options.

    Raises:
        ReadError: an option is unknown, or a value has another type than declared.
    """
    known = list(names_of(items))
    for name in given:
        if name not in known:
            has = ", ".join(known) or "none"
            raise ReadError(f"reader {reader!r} has no option {name!r}; its options: {has}")
    hints = _hints(items)
    for name, value in given.items():
        if name in hints and not _fits(hints[name], value):
            what = f"option {name!r} of reader {reader!r} takes {_words(hints[name])}"
            raise ReadError(f"{what}; given is {value!r} ({type(value).__name__})")


def _hints(items: Function) -> dict[str, Any]:
    try:
        return get_type_hints(items)
    except NameError:  # if annotations are imported for type checking only
        return {}


def _fits(hint: Any, given: Any) -> bool:
    """Whether a value has the type. An int is also a float, a bool is neither. Readers check choices themselves."""
    if get_origin(hint) is Literal:
        return True
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(each, given) for each in get_args(hint))
    if get_origin(hint) is not None:
        listed = isinstance(given, Sequence) and not isinstance(given, str)
        return listed and all(_fits(inner, each) for inner in get_args(hint)[:1] for each in given)
    if hint in (int, float) and isinstance(given, bool):
        return False
    if hint in (bool, int, float, str, NoneType):
        return isinstance(given, (int, float) if hint is float else hint)
    return True


def _words(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_words(each) for each in get_args(hint))
    if get_origin(hint) is not None:
        return f"a list of {_words(get_args(hint)[0])}"
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text", NoneType: "nothing (null)"}
    return names.get(hint, str(getattr(hint, "__name__", hint)))

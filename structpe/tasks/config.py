"""Configurations: frozen dataclasses from YAML files and overrides, checked in full before anything runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from structpe.errors import ConfigError
from structpe.plain import from_yaml
from structpe.plain.yaml import LONGEST
from structpe.registry import unknown

__all__ = ["check_folder", "differences", "load", "make", "save", "to_dict"]

T = TypeVar("T")


def load(cls: type[T], path: str | Path | None, overrides: Sequence[str] = ()) -> T:
    """A configuration from a YAML file and changes to it.

    Args:
        cls: the dataclass.
        path: the file; None for defaults only. Paths in it are relative to the working directory, not to the file.
        overrides: ``key=value``, such as ``training.steps=100``; the value is YAML.

    Raises:
        ConfigError: the file is missing or no YAML, a key is unknown, a value is of another type.
    """
    data = {} if path is None else _read(Path(path))
    try:
        _check_keys(cls, data)
    except ConfigError as error:
        raise error.at(str(path)) from None
    for override in overrides:
        _override(cls, data, override)
    try:
        return make(cls, data)
    except ConfigError as error:
        # With overrides it may be one of these that is wrong; the key is named in any case.
        raise error if path is None or overrides else error.at(str(path)) from None


def make(cls: type[T], data: Mapping[str, Any]) -> T:
    """A configuration from plain data.

    Raises:
        ConfigError: a key is unknown or missing, a value is of another type.
    """
    from jsonargparse import ArgumentError, ArgumentParser

    _check_keys(cls, data)
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(cls)
    try:
        parsed = parser.parse_object(dict(data), defaults=True).as_dict()
    except ArgumentError as error:
        raise _explained(cls, data, str(error)) from None
    _check_null(cls, parsed)
    return _built(cls, parsed)


def to_dict(config: Any) -> dict[str, Any]:
    """Its plain data: of them :func:`make` makes the same configuration again."""
    data: dict[str, Any] = _plain(asdict(config))
    return data


def check_folder(key: str, given: str) -> None:
    """Check that a folder has a name: the empty one is the current folder, which nobody means.

    Raises:
        ConfigError: it is empty.
    """
    if not given.strip():
        raise ConfigError(f"{key} is empty; give the folder of the run, such as runs/first, or . for the current one")


def save(config: Any, path: Path) -> None:
    """Write a configuration as YAML, every key of it."""
    import yaml

    path.write_text(yaml.safe_dump(to_dict(config), sort_keys=False, allow_unicode=True), encoding="utf-8")


def differences(one: Any, other: Any) -> list[str]:
    """The keys in which two configurations differ, dotted."""
    return _differences(to_dict(one), to_dict(other))


def _differences(one: Any, other: Any, where: str = "") -> list[str]:
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return [] if one == other else [where]
    keys = dict.fromkeys([*one, *other])
    return [d for key in keys for d in _differences(one.get(key), other.get(key), f"{where}.{key}".lstrip("."))]


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(LONGEST + 1)  # from_yaml refuses what is longer
        data = from_yaml(text, "the file")
    except FileNotFoundError:
        raise ConfigError(f"there is no configuration file {path}; check the path") from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder; give the configuration file in it") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"the file is no text in UTF-8 (byte {error.start}); give a YAML file").at(
            str(path)
        ) from None
    except ConfigError as error:
        raise error.at(str(path)) from None
    if data is not None and not isinstance(data, dict):
        raise ConfigError(f"a configuration is a mapping of keys; the file holds a {type(data).__name__}").at(str(path))
    return data or {}


def _override(cls: type, data: dict[str, Any], override: str) -> None:
    key, equals, value = override.partition("=")
    if not equals or not key:
        raise ConfigError(f"{override!r} is no override; write key=value, such as training.steps=100")
    *groups, last = key.split(".")
    for place, group in enumerate(groups):
        inner = data.setdefault(group, {})
        if not isinstance(inner, dict):
            whole = ".".join(groups[: place + 1])
            raise ConfigError(f"{override!r}: {whole} is {inner!r}, which has no key; give all of it: {whole}=...")
        data = inner
    try:
        data[last] = from_yaml(value, "the value")
    except ConfigError as error:
        raise error.at(repr(override)) from None


def _built(cls: type[T], parsed: Mapping[str, Any]) -> T:
    """The dataclass, and those in it, of values that were checked."""
    hints = get_type_hints(cls)
    return cls(**{name: _value(hints[name], value) for name, value in parsed.items()})


def _value(hint: Any, value: Any) -> Any:
    """A value of a field, which may be a dataclass itself, or a list of such."""
    if isinstance(hint, type) and is_dataclass(hint):
        return _built(hint, value)
    inner = get_args(hint)[0] if get_origin(hint) is list else None
    return [_value(inner, each) for each in value] if isinstance(inner, type) and is_dataclass(inner) else value


def _check_keys(cls: type, data: Any, where: str = "") -> None:
    """Every key names a field; parts that are plain data to the dataclass are checked by who uses them."""
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where.rstrip('.')} has keys of its own; given is {data!r}")
    hints = get_type_hints(cls)
    for key, value in data.items():
        if key not in hints:
            names = [where + field.name for field in fields(cls)]
            raise ConfigError(unknown("key", f"{where}{key}", names))
        if is_dataclass(hints[key]) and isinstance(hints[key], type):
            _check_keys(hints[key], value, f"{where}{key}.")


def _check_null(cls: type, parsed: Mapping[str, Any], where: str = "") -> None:
    """No value is absent that must not be; the parser takes null for everything."""
    for name, hint in get_type_hints(cls).items():
        if isinstance(hint, type) and is_dataclass(hint):
            _check_null(hint, parsed[name], f"{where}{name}.")
        elif parsed[name] is None and hint is not Any and NoneType not in get_args(hint):
            raise ConfigError(f"{where}{name} takes {_words(hint)}; given is null")


def _explained(cls: type, data: Any, message: str) -> ConfigError:
    """The parser's many lines as one: which key, what it takes, what was given."""
    found = re.search(r'[Kk]ey "([^"]+)"', message)
    if missing := re.search(r"arguments are required: (.+)", message):
        return ConfigError(f"the configuration lacks {missing[1]}; set it in the file, or with an override")
    if found is None:
        return ConfigError(" ".join(message.split()))
    key, hint, given = found[1], cls, data
    for name in key.split("."):
        hint = get_type_hints(hint).get(name, Any)
        given = given.get(name) if isinstance(given, Mapping) else None
    return ConfigError(f"{key} takes {_words(hint)}; given is {given!r}")


def _words(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(repr(each) for each in get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_words(each) for each in get_args(hint))
    if hint is NoneType:
        return "null"
    return str(hint) if get_origin(hint) else str(getattr(hint, "__name__", hint))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value

"""Functions for the configurations of all tasks: reading and writing them, and readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_type_hints

from structpe.errors import ConfigError, ReadError, located
from structpe.formats.facts import NAMED
from structpe.formats.reading import READERS
from structpe.plain import from_yaml, to_yaml
from structpe.plain.options import Builder
from structpe.plain.yaml import LONGEST
from structpe.registry import check_imported, import_code

__all__ = [
    "NO_READER",
    "Reads",
    "check_folder",
    "differences",
    "import_all",
    "kept_options",
    "load",
    "load_kind",
    "make",
    "merged",
    "save",
    "split_given",
    "to_dict",
]


T = TypeVar("T")


def load(
    cls: type[T],
    path: str | Path | None,
    overrides: Sequence[str] = (),
    imports: Callable[[Sequence[str]], None] = check_imported,
) -> T:
    """Read a configuration from a YAML file, with overrides.

    Args:
        cls: the dataclass.
        path: the file; None for defaults only. Paths in it are relative to the working directory, not to the file.
        overrides: ``key=value``, such as ``training.steps=100``; the value is YAML.
        imports: called with the code that the configuration names, before anything else is looked at.

    Raises:
        ConfigError: the file is missing or not YAML, a key is unknown, or a value has the wrong type.
    """
    return load_kind(lambda data: cls, path, overrides, imports)


def load_kind(
    kind: Callable[[Mapping[str, Any]], type[T]],
    source: str | Path | Mapping[str, Any] | None,
    overrides: Sequence[str],
    imports: Callable[[Sequence[str]], None],
) -> T:
    """As :func:`load`, for a dataclass that depends on the keys.

    Args:
        kind: chooses the dataclass from the keys and values, which are not yet checked.
        source: a file as in :func:`load`, or plain data.
        overrides, imports: as in :func:`load`.

    Raises:
        ConfigError: as in :func:`load`.
    """
    path = source if isinstance(source, (str, Path)) else None
    data = _read(Path(source)) if isinstance(source, (str, Path)) else deepcopy(dict(source or {}))
    where = () if path is None else (path,)
    with located(*where):
        _check_options(kind(data), data)
        Builder().check_keys(kind(data), data, complete=False)
    for override in overrides:
        _override(data, override)
    if isinstance(names := data.get("imports"), list):
        with located(*where):
            imports([name for name in names if isinstance(name, str)])
    try:
        return make(kind(data), data)
    except ConfigError as error:
        # With overrides, the error may be in one of these; it names the key in any case.
        raise error if path is None or overrides else error.at(path) from None


def import_all(names: Sequence[str]) -> None:
    """Import the code that a configuration of the user names; see :func:`~structpe.registry.import_code`."""
    for name in names:
        import_code(name)


def make(cls: type[T], data: Mapping[str, Any]) -> T:
    """A configuration from plain data.

    Raises:
        ConfigError: a key is unknown or missing, or a value has the wrong type.
    """
    _check_options(cls, data)
    return Builder().build(cls, data)


def _check_options(cls: type, data: Mapping[str, Any]) -> None:
    """Check that no option of a reader stands among the keys of the data.

    Raises:
        ConfigError: one does.
    """
    group, given = get_type_hints(cls).get("data"), data.get("data")
    known = {each.name for each in fields(group)} if is_dataclass(group) else set()
    if not isinstance(given, Mapping) or not {"reader", "options"} <= known:
        return
    for key in given:
        if key not in known and (found := [each.name for each in READERS.values() if key in each.options]):
            name = given.get("reader") if given.get("reader") in found else None
            whose = f"of the reader {name!r}" if name else "of readers"
            raise ConfigError(f"there is no key named 'data.{key}'; as an option {whose}, it is data.options.{key}")


def merged(cls: type, *parts: Mapping[str, Any]) -> dict[str, Any]:
    """The plain data of several parts of a configuration: later values override earlier ones.

    A group, such as ``training.optimiser``, is merged key by key; any other mapping is replaced as a whole.

    Args:
        cls: the dataclass of the configuration.
        parts: keys and values, which are not yet checked.
    """
    found: dict[str, Any] = {}
    hints = get_type_hints(cls)
    for key, value in (item for part in parts for item in part.items()):
        kinds = (hints.get(key), *get_args(hints.get(key)))
        groups = [each for each in kinds if isinstance(each, type) and is_dataclass(each)]
        both = groups and isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
        found[key] = merged(groups[0], found[key], value) if both else value
    return found


def to_dict(config: Any) -> dict[str, Any]:
    """The plain data of a configuration; :func:`make` is the inverse."""
    data: dict[str, Any] = _plain(asdict(config))
    return data


def check_folder(key: str, given: str) -> None:
    """Check that the name of a folder is not empty, which would be the current folder.

    Raises:
        ConfigError: it is empty.
    """
    if not given.strip():
        raise ConfigError(f"{key} is empty; give the folder of the run, such as runs/first, or . for the current one")


def save(config: Any, path: Path) -> None:
    """Write all keys of a configuration as YAML."""
    path.write_text(to_yaml(to_dict(config)), encoding="utf-8")


def differences(one: Any, other: Any) -> list[str]:
    """The keys, with dots, in which two configurations differ."""
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
        raise ConfigError(f"the file is not UTF-8 text (byte {error.start}); give a YAML file").at(path) from None
    except ConfigError as error:
        raise error.at(path) from None
    if data is not None and not isinstance(data, dict):
        raise ConfigError(f"a configuration is a mapping of keys; the file holds a {type(data).__name__}").at(path)
    return data or {}


def _override(data: dict[str, Any], override: str) -> None:
    key, equals, value = override.partition("=")
    if not equals or not key:
        raise ConfigError(f"{override!r} is not an override; write key=value, such as training.steps=100")
    *groups, last = key.split(".")
    for place, group in enumerate(groups):
        inner = data.setdefault(group, {})
        if not isinstance(inner, dict):
            whole = ".".join(groups[: place + 1])
            raise ConfigError(f"{override!r}: {whole} is {inner!r}, which has no key; give all of it: {whole}=...")
        data = inner
    with located(repr(override)):
        data[last] = from_yaml(value, "the value")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def split_given(data: Any, part: Literal["train", "dev"]) -> Any:
    """The split of what Python gives as data: a mapping with ``train`` and ``dev``, or all to learn from.

    Raises:
        ConfigError: the mapping has another key.
    """
    if not isinstance(data, Mapping):
        return data if part == "train" else None
    if odd := [key for key in data if key not in ("train", "dev")]:
        raise ConfigError(f"data has the key {odd[0]!r}; give 'train' and 'dev', or a list of items to learn from")
    return data.get(part)


NO_READER = (
    "the run has no reader of its own, as it has learned from items, or its training files are of several formats, or "
    "gone; say what the new file is by --reader, or give the items of structpe.read(FILE, reader=...)"
)


@contextmanager
def kept_options(options: Mapping[str, Any]) -> Iterator[None]:
    """A context that reads a file with options of a run; the error of a column that they name says what drops them."""
    try:
        yield
    except ReadError as error:
        if any(f"{NAMED} {name};" in error.message for name in options):
            error.message += (
                ". The run keeps this option; --reader NAME, or structpe.read(FILE, reader=NAME) in Python, drops "
                "those of the run"
            )
        raise


class Reads(NamedTuple):
    """How a run reads files.

    Attributes:
        reader: name of the reader; None without a single one.
        options: options of the reader.
        on_error: what to do with bad items.
        by_suffix: whether a file may be read by its suffix if there is no reader.
    """

    reader: str | None
    options: Mapping[str, Any]
    on_error: Literal["raise", "skip"] = "raise"
    by_suffix: bool = False

    def but(
        self,
        reader: str | None = None,
        options: Mapping[str, Any] | None = None,
        on_error: Literal["raise", "skip"] | None = None,
    ) -> Reads:
        """A copy with the given changes.

        Args:
            reader: name of a reader. Its options are then its own defaults, not the run's, even if it is the run's.
            options: options of the reader; without a name of a reader, the run's others stay.
            on_error: what to do with bad items.

        Raises:
            ConfigError: no reader is given, and the run has none.
        """
        if reader is None and self.reader is None and not self.by_suffix:
            raise ConfigError(NO_READER)
        kept = self.options if reader is None else {}
        return Reads(reader or self.reader, {**kept, **(options or {})}, on_error or self.on_error, self.by_suffix)

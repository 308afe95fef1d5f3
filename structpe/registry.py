"""A registry is a folder: every class of a package that gives itself a name can be found by that name.

Nothing is listed by hand. A file dropped into a folder of ``structpe/positions`` is in the registry, the docs and the
tests.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from structpe.errors import StructPEError

__all__ = ["Registry", "unknown"]


T = TypeVar("T")

_FEW = 50
"""As many names a person reads in an error message."""


class Registry(Mapping[str, T], Generic[T]):
    """The named classes of a package, by name; its modules are imported at the first look.

    Args:
        package: dotted name of the package whose modules hold the classes.
        what: the word for one of them in error messages.
        error: the class of the error that an unknown name raises.
    """

    def __init__(self, package: str, what: str, error: type[StructPEError]) -> None:
        self.package, self.what, self.error = package, what, error
        self._classes: dict[str, T] = {}
        self._complete = False

    def add(self, name: str, cls: T) -> None:
        """Enter a class under its name.

        Raises:
            StructPEError: the name is taken by another class, or is no text.
        """
        given: object = name
        if not isinstance(given, str) or not given:
            raise self.error(
                f'the name of {_told(cls)} is {given!r}; give a text, such as name="own-{self.what.split()[-1]}"'
            )
        if not _module(cls).startswith(("structpe.", f"{self.package}.")):
            self._load()  # so that a name of ours that is taken is reported here, and not when ours is imported
        known = self._classes.get(name)
        if known is not None and _origin(known) != _origin(cls):
            raise self.error(f"two {self.what}s are named {name!r}: {_told(known)} and {_told(cls)}; rename one")
        self._classes[name] = cls

    def forget(self, name: str) -> None:
        """Take a class out again: for tests and notebooks that make one for a while."""
        del self._classes[name]

    def __getitem__(self, name: str) -> T:
        if name not in self._classes:
            self._load()
        if name not in self._classes:
            raise self.error(unknown(self.what, name, sorted(self._classes)))
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted(self._classes))

    def __len__(self) -> int:
        self._load()
        return len(self._classes)

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._classes

    def _load(self) -> None:
        if not self._complete:
            _import_all(self.package)
            self._complete = True


def _import_all(package: str) -> None:
    """Import every module of a package, and of the packages in it."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
        if module.ispkg:
            _import_all(module.name)
        else:
            importlib.import_module(module.name)


def unknown(what: str, given: str, known: list[str]) -> str:
    """The text for a name that is not known: what was given, the nearest known name, all known names if few enough."""
    near = difflib.get_close_matches(given, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if len(known) <= _FEW:
        return f"there is no {what} named {given!r}.{hint} Known: {', '.join(known)}"
    nearest = difflib.get_close_matches(given, known, n=8, cutoff=0.0)
    return f"there is no {what} named {given!r}.{hint} Nearest of {len(known)}: {', '.join(nearest)}"


def _module(entry: object) -> str:
    return str(getattr(entry, "__module__", "structpe."))


def _told(entry: object) -> str:
    named = getattr(entry, "__qualname__", None)
    return repr(entry) if named is None else f"{_module(entry)}.{named}"


def _origin(entry: object) -> tuple[str, str] | int:
    """Where a class or function was written, so that a notebook may define it again; any other thing is itself."""
    named = getattr(entry, "__qualname__", None)
    return id(entry) if named is None else (getattr(entry, "__module__", ""), named)

"""A registry finds every class of a package that has a name, by this name.

Nothing is listed by hand. A new class in a file of ``structpe/positions`` is in the registry, the docs and the tests.
A look-up imports the module of the class, not the whole package: it searches the sources of the package for the name.
This is only a hint. Without it, for example without sources, everything is imported, and the name is found as well.
Other distributions add theirs through entry points: the group is the name of the package, such as
``structpe.positions``, and the value is a module, which is imported. :func:`import_code` imports what is in no
distribution.
"""

from __future__ import annotations

import difflib
import importlib
import os
import pkgutil
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from structpe.code import source_of_entry
from structpe.errors import ConfigError, StructPEError, reason_of

__all__ = ["IMPORTS", "Registered", "Registry", "check_imported", "code_in", "import_code", "own_code", "unknown"]

T = TypeVar("T")

IMPORTS = "STRUCTPE_IMPORTS"
"""The environment variable with the modules and files that registries import, joined as in ``PATH``."""

_OWN = "one of your own is imported by --import FILE (imports: in a configuration)"
"""What an error for an unknown name adds where users may add members."""

_CODE: dict[str, dict[str, str]] = {}
"""Digests of code that is not part of structpe, by the name of a member of a registry, and by what it is."""

_FEW = 50
"""How many names an error lists."""

_SLIP = 0.85
"""How alike two names are, from 0 to 1, if one is a slip of the other."""

_WORD = re.compile(r"[^-_ ]+")
"""A word in a name; a dotted name is one."""

_FRAME = re.compile(r'^ *File "(.+)", line (\d+)', re.MULTILINE)
"""A line of a traceback."""

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
"""Where a word in the name of a class begins, except the first."""

_NAMED = re.compile(r'^class (\w+)\([^)]*\bname="([^"]+)"', re.MULTILINE)
"""A class that enters a registry: its own name, and the one in the registry."""


class Registry(Mapping[str, T], Generic[T]):
    """The named classes of a package, by name. A look-up imports a module; a list of all imports all, and entry points.

    An entry point whose module cannot be imported gives a warning, and its classes are missing.

    Args:
        package: dotted name of the package of the classes.
        what: the word for a member in errors.
        error: the class of the error for an unknown name.
        own: whether users add members of their own, for the error.

    Attributes:
        changes: number of additions and removals, by which caches of look-ups can be invalidated.
    """

    def __init__(self, package: str, what: str, error: type[StructPEError], own: bool = True) -> None:
        self.package, self.what, self.error, self.changes = package, what, error, 0
        self._takes_own = own
        self._classes: dict[str, T] = {}
        self._own = self._complete = False
        self._hints: dict[str, str] | None = None

    def add(self, name: str, cls: T) -> None:
        """Register a class under a name.

        Raises:
            StructPEError: another class has the name, or the name is not a text.
        """
        given: object = name
        if not isinstance(given, str) or not given:
            raise self.error(
                f'the name of {_described(cls)} is {given!r}; give a text, such as name="own-{self.what.split()[-1]}"'
            )
        if not _module(cls).startswith(("structpe.", f"{self.package}.")):
            self._follow_hint(name)  # first, to report here a name that we use ourselves
        known = self._classes.get(name)
        if known is not None and _origin(known) != _origin(cls):
            raise self.error(
                f"two {self.what}s are named {name!r}: {_described(known)} and {_described(cls)}; rename one"
            )
        self._classes[name] = cls
        self.changes += 1
        _note_code(name, self.what, source_of_entry(cls))

    def forget(self, name: str) -> None:
        """Remove a class, for tests and notebooks."""
        del self._classes[name]
        _note_code(name, self.what, "")
        self.changes += 1

    def __getitem__(self, name: str) -> T:
        if name not in self._classes and name not in self:
            raise self.error(self.unknown(name))
        return self._classes[name]

    def unknown(self, name: str) -> str:
        """The message for a name that no member has."""
        text = unknown(self.what, name, sorted(self), own=self._takes_own)
        return "; ".join([text, *self._nameless()])

    def _nameless(self) -> Iterator[str]:
        """For each class of the user's files and modules that lacks only a name to be a member, the line to write."""
        members = [*self._classes.values()]
        for given in _given():
            module = sys.modules.get(_name_of(given))
            for cls in list(vars(module).values()) if module else ():
                if not isinstance(cls, type) or cls.__module__ != _name_of(given) or cls in members:
                    continue
                base = next((each for each in cls.__mro__[1:] if _module(each).startswith(f"{self.package}.")), None)
                if base is not None and not cls.__subclasses__():
                    name = _CAPITAL.sub("-", cls.__name__).lower()
                    yield (
                        f"{given} defines {cls.__name__}({base.__name__}) without a name: write "
                        f'class {cls.__name__}({base.__name__}, name="{name}")'
                    )

    def of_class(self, name: str) -> T | None:
        """The member whose class has this name, such as ``T5``; None if there is none."""
        self._follow_hint(name)
        if (found := self._of_class(name)) is None:
            self._load()
            found = self._of_class(name)
        return found

    def face(self) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
        """``__getattr__`` and ``__dir__`` of the package, from which all its classes can then be imported: T5, say."""

        def find(name: str) -> Any:
            if not name[:1].isupper():  # a module, or one that is missing
                raise AttributeError(f"module {self.package!r} has no attribute {name!r}")
            if (found := self.of_class(name)) is None:
                raise AttributeError(unknown(f"{self.what} class", name, sorted(map(_named, self.values()))))
            return found

        return find, lambda: sorted({*vars(sys.modules[self.package]), *map(_named, self.values())})

    def _of_class(self, name: str) -> T | None:
        return next((each for each in self._classes.values() if _named(each) == name), None)

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted(self._classes))

    def __len__(self) -> int:
        self._load()
        return len(self._classes)

    def __contains__(self, name: object) -> bool:
        if name not in self._classes and isinstance(name, str):
            self._follow_hint(name)
        if name not in self._classes:
            self._load()
        return name in self._classes

    def _load(self) -> None:
        if not self._complete:
            self._load_own()
            for given in _given():
                import_code(given)
            _import_others(self.package)
            self._complete = True

    def _follow_hint(self, name: str) -> None:
        """Import the module whose source has the name; all modules if no source could be read."""
        if self._hints is None:
            self._hints = dict(_hints(self.package))
        if not self._hints:
            self._load_own()
        elif name in self._hints:
            importlib.import_module(self._hints[name])

    def _load_own(self) -> None:
        if not self._own:
            _import_all(self.package)
            self._own = True


class Registered:
    """A class whose subclasses enter a registry by their names: ``class Own(Base, name="own")``."""

    registry: ClassVar[Registry[Any]]
    name: ClassVar[str]

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if name:
            cls.name = name
            cls.registry.add(name, cls)


def _hints(package: str) -> Iterator[tuple[str, str]]:
    """Names of classes, and their names in the registry, each with the module whose source has them."""
    for folder in map(Path, _folders(package)):
        for file in sorted(folder.rglob("*.py")):
            module = ".".join([package, *file.relative_to(folder).with_suffix("").parts])
            for names in _NAMED.findall(file.read_text(encoding="utf-8")):
                yield from ((name, module) for name in names)


def _folders(package: str) -> list[str]:
    """Where the modules of a package are; nowhere if all classes are in one module."""
    return list(getattr(importlib.import_module(package), "__path__", ()))


def _import_all(package: str) -> None:
    """Import every module of a package, and of the packages in it, except private ones, which have no members."""
    for module in pkgutil.iter_modules(_folders(package), f"{package}."):
        if module.name.rpartition(".")[2].startswith("_"):
            continue
        if module.ispkg:
            _import_all(module.name)
        else:
            importlib.import_module(module.name)


def import_code(given: str) -> None:
    """Import a module or a Python file of one's own, which runs its code: its classes enter the registries.

    Processes that this process starts import it as well, when they look for a name that they do not know; the
    environment variable ``STRUCTPE_IMPORTS`` tells them. It may also be set by hand.

    Args:
        given: dotted name of a module, or path of a file that ends in ``.py``, whose folder is then searched for
            modules too, after all others.

    Raises:
        ConfigError: there is no such module or file, another module has its name, or it raises an error.
    """
    name = _name_of(given)
    if given.endswith(".py"):
        file = Path(given).resolve()
        if not file.is_file():
            raise ConfigError(f"there is no file {given} to import; check the path")
        given = str(file)
        if str(file.parent) not in sys.path:
            sys.path.append(str(file.parent))
    try:
        module = importlib.import_module(name)
    except StructPEError as error:
        raise error.at(given) from None
    except Exception as error:  # it runs any code
        run = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
        lines = [f"{code.co_filename}, line {line}: " for code, line in run if code.co_name == "<module>"]
        text = f": {error.text.strip()}" if isinstance(error, SyntaxError) and error.text else ""
        reason = f"{type(error).__name__}: {reason_of(error)}{text}"
        raise ConfigError(f"{''.join(lines[-1:])}{given} cannot be imported ({reason}); correct it") from error
    if given != name and Path(getattr(module, "__file__", None) or "").resolve() != file:
        raise ConfigError(f"{given} has the name of another module, {name!r}; give the file another name")
    if given not in _given():
        os.environ[IMPORTS] = os.pathsep.join([*_given(), given])


def _name_of(given: str) -> str:
    """The name of the module that :func:`import_code` imports."""
    return Path(given).stem if given.endswith(".py") else given


def own_code(error: BaseException) -> str:
    """The innermost line of code of :func:`import_code` that an error came through: ``own.py, line 3``; empty if none.

    The function follows, and the name of what it is a method of: ``, in one of 'own-parity'``. Of an error in another
    process only the text of its traceback is known, which is searched then.
    """
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if _is_own(frame.f_code.co_filename):
            name = getattr(type(frame.f_locals.get("self")), "name", None)
            whose = f" of {name!r}" if isinstance(name, str) else ""
            return f"{frame.f_code.co_filename}, line {line}, in {frame.f_code.co_name}{whose}"
    told = _FRAME.findall(str(error.__cause__))
    return next((f"{file}, line {line}" for file, line in reversed(told) if _is_own(file)), "")


def _is_own(file: str) -> bool:
    """Whether a file is what :func:`import_code` has imported, or lies beside it in the folder or package."""
    for given in _given():
        name = Path(given).stem if given.endswith(".py") else given.partition(".")[0]
        module = sys.modules.get(name)
        top = Path(getattr(module, "__file__", None) or "/").resolve()
        path = Path(file).resolve()
        if name != "structpe" and (
            path.parent == top.parent if given.endswith(".py") else top == path or _within(top, path)
        ):
            return True
    return False


def _within(top: Path, path: Path) -> bool:
    return top.name == "__init__.py" and path.is_relative_to(top.parent)


def _given() -> list[str]:
    return [each for each in os.environ.get(IMPORTS, "").split(os.pathsep) if each]


def check_imported(names: Sequence[str]) -> None:
    """Check that the code that a run needs is imported. A run does not import it: its folder may be of somebody else.

    Args:
        names: as of :func:`import_code`, perhaps on another machine.

    Raises:
        ConfigError: some is not.
    """
    for given in _given():  # in a process that another one has started
        import_code(given)
    for given in names:
        if _name_of(given) not in sys.modules:
            raise ConfigError(
                f"it needs the code of {given}, which is not imported; if you trust it, give --import {given}, or call "
                f"structpe.import_code({given!r}) first: either runs it"
            )


def code_in(described: Any) -> dict[str, str]:
    """Digests of the code, other than that of structpe, of the members of registries that plain data name.

    Args:
        described: such as a configuration.

    Returns:
        The digests of what was imported, which a file on the disk may no longer be, by words for it, such as
        ``encoding 'own'``. What has no source that can be read is left out; see :func:`structpe.code.source_of`.
    """
    if isinstance(described, str):
        return {f"{what} {described!r}": digest for what, digest in sorted(_CODE.get(described, {}).items())}
    if isinstance(described, Mapping):
        described = list(described.values())
    inner = described if isinstance(described, (list, tuple)) else ()
    return {name: digest for each in inner for name, digest in code_in(each).items()}


def _note_code(name: str, what: str, digest: str) -> None:
    _CODE.setdefault(name, {}).pop(what, None)
    if digest:
        _CODE[name][what] = digest
    elif not _CODE[name]:
        del _CODE[name]


def _import_others(group: str) -> None:
    """Import what other distributions give as entry points of a group.

    Raises:
        StructPEError: a name is taken, or another error that such a module raises on purpose.
    """
    for entry in metadata.entry_points(group=group):
        try:
            entry.load()
        except StructPEError as error:
            raise error.at(_whose(entry)) from None
        except Exception as error:  # an import runs any code
            warnings.warn(
                f"{_whose(entry)} cannot be imported ({type(error).__name__}: {error}), so what it adds to structpe is "
                f"missing; update the distribution, or uninstall it",
                stacklevel=4,
            )


def _whose(entry: metadata.EntryPoint) -> str:
    """The name of an entry point and its distribution."""
    named = f"entry point {entry.name!r} of {entry.group} ({entry.value})"
    return named if entry.dist is None else f"{entry.dist.name} {entry.dist.version}: {named}"


def unknown(what: str, given: str, known: list[str], also: Sequence[str] = (), own: bool = False) -> str:
    """The message for an unknown name, with the nearest known name, and all known names if there are few.

    Args:
        what: a noun for it.
        given: the name.
        known: names that it may have.
        also: dotted names elsewhere, which are not listed, but one of them may be meant; best one with the same end.
        own: whether a user may add one, which is then said.
    """
    same = [each for each in also if each.rpartition(".")[2] == given.rpartition(".")[2]]
    near = same or _nearest(given, [*known, *also])
    hint = f" Did you mean {near[0]!r}?" if near else ""
    few = len(known) <= _FEW
    listed = known if few else _nearest(given, known, least=0.0)[:8]
    these = "Known" if few else f"Nearest of {len(known)}"
    return f"there is no {what} named {given!r}.{hint} {these}: {', '.join(listed)}{f'; {_OWN}' if own else ''}"


def _nearest(given: str, known: Sequence[str], least: float = 0.6) -> list[str]:
    """Names like the given one: slips of it first, then those that share words with it, by their letters."""
    words, found = set(_WORD.findall(given.lower())), []
    for name in known:
        alike, own = difflib.SequenceMatcher(None, name, given).ratio(), set(_WORD.findall(name))
        if alike >= least or own & words:
            found.append(((alike >= _SLIP, len(own & words) / len(own | words), alike), name))
    return [name for _, name in sorted(found, reverse=True)]


def _module(entry: object) -> str:
    return str(getattr(entry, "__module__", "structpe."))


def _named(entry: object) -> str:
    return str(getattr(entry, "__name__", ""))


def _described(entry: object) -> str:
    named = getattr(entry, "__qualname__", None)
    return repr(entry) if named is None else f"{_module(entry)}.{named}"


def _origin(entry: object) -> tuple[str, str] | int:
    """The module and name of a class or function, which a notebook may define again; the id of any other object."""
    named = getattr(entry, "__qualname__", None)
    return id(entry) if named is None else (getattr(entry, "__module__", ""), named)

"""A digest of code that is not part of structpe, by which stores and runs know that it has been edited."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from functools import lru_cache
from inspect import isfunction
from itertools import takewhile
from pathlib import Path

__all__ = ["source_of", "source_of_class", "source_of_entry"]


def source_of_entry(entry: object) -> str:
    """A digest of the sources of a class, a function, or an object that holds functions; empty for those of structpe.

    See :func:`source_of`.
    """
    if isinstance(entry, type):
        return source_of_class(entry)
    functions = filter(isfunction, (entry, *getattr(entry, "__dict__", {}).values()))
    modules = {str(each.__module__) for each in functions}
    return _joined({source_of(module) for module in modules if not _is_own(module)})


def source_of_class(cls: type) -> str:
    """A digest of the sources of a class and of the classes that it inherits from, up to the first one of structpe.

    Empty for a class of structpe, and if no source can be read; see :func:`source_of`.
    """
    modules = takewhile(lambda module: not _is_own(module), (each.__module__ for each in cls.__mro__))
    return _joined({source_of(each) for each in modules if each != "builtins"})


def source_of(module: str) -> str:
    """A digest of the source of a module, and of the files beside it that it imports, directly or through another.

    To be called while the module is imported: later, its file may be newer than the code in memory. Packages beside
    it, and files elsewhere, do not count. Empty if no source can be read, as of a class in a notebook, a session or a
    compiled module: then nothing tells that the code has changed.
    """
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    if not file.endswith(".py"):
        return ""
    package = getattr(sys.modules[module], "__package__", None) or ""
    found, left = dict[Path, bytes](), [Path(file)]
    while left:
        if (path := left.pop()) not in found and path.is_file():
            found[path] = path.read_bytes()
            left += [path.parent / f"{name}.py" for name in _beside(found[path], package)]
    return _joined({hashlib.sha256(content).hexdigest() for content in found.values()})


def _joined(digests: set[str]) -> str:
    digests.discard("")
    return hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()[:16] if digests else ""


@lru_cache(maxsize=256)  # a file may define many classes
def _beside(source: bytes, package: str) -> tuple[str, ...]:
    """The names of files in the folder of a source that it may import, also inside functions."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ()
    names = (each.removeprefix(f"{package}.") for each in _imported(tree, package))
    return tuple(dict.fromkeys(name for name in names if "." not in name))


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level < 2:
            if node.module and node.module != package:
                yield node.module
            else:
                yield from (each.name for each in node.names)


def _is_own(module: str) -> bool:
    """Whether a module is one of structpe, whose numbers are those of its version."""
    return module.partition(".")[0] == "structpe"

"""The modules of structpe as syntax trees, for tests of how the code is written."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Module:
    """A module: its dotted name and its file."""

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree, which is made when it is asked for: not while tests are collected."""
        return ast.parse(self.text)

    @property
    def package(self) -> str:
        """The first word after ``structpe``; empty for the package itself."""
        return self.name.partition(".")[2].partition(".")[0]


@dataclass(frozen=True)
class Import:
    """A module that is imported: its dotted name, the line, and whether that is done when the importer is imported."""

    name: str
    line: int
    at_once: bool


@cache
def modules() -> tuple[Module, ...]:
    """Every module of structpe."""
    return tuple(Module(_name(file), file) for file in sorted((ROOT / "structpe").rglob("*.py")))


def imports(module: Module) -> list[Import]:
    """What a module imports, anywhere in it. ``from a import b`` is an import of a.b where that is a module."""
    return list(_imports(module.tree, at_once=True))


def is_foreign(name: str) -> bool:
    """Whether a module belongs neither to structpe nor to the standard library."""
    return name.partition(".")[0] not in {"structpe", *sys.stdlib_module_names}


def _imports(node: ast.AST, at_once: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, at_once) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: write imports in full, not relative"
            yield from (Import(_whole(child.module or "", alias.name), child.lineno, at_once) for alias in child.names)
        else:
            later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _for_types(child)
            yield from _imports(child, at_once and not later)


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _whole(module: str, name: str) -> str:
    inner = ROOT / Path(*module.split("."), name)
    return f"{module}.{name}" if inner.with_suffix(".py").exists() or (inner / "__init__.py").exists() else module


def _name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

"""The shapes in annotations, checked while tests run: at the first call in each test, and at some that follow.

jaxtyping's own import hook wraps every function, with shapes or without, and doubles the time of the tests. This one
wraps only functions and dataclasses whose annotations hold a shape. Other types are mypy's business; here many tests
give wrong ones on purpose, to see the error that a user would see.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from beartype import beartype
from jaxtyping import jaxtyped

__all__ = ["check_anew", "check_shapes", "checked", "unchecked"]

SHAPE = re.compile(r"\b(Float|Int|Bool|Shaped|Complex)\[")


def check_shapes() -> None:
    """Check the shapes of all modules of structpe that are imported from now on."""
    early = [name for name in sys.modules if name.partition(".")[0] == "structpe"]
    assert not early, f"imported before their shapes could be checked: {early[:3]}"
    sys.meta_path.insert(0, _Finder())


def checked(thing: Any) -> Any:
    """A function, or a dataclass, whose shapes are checked at some calls: at all, tests take a tenth longer."""
    if not isinstance(thing, type):
        return _sampled(thing, jaxtyped(thing, typechecker=beartype))
    plain = thing.__init__
    whole = jaxtyped(thing, typechecker=beartype)
    whole.__init__ = _sampled(plain, whole.__init__)
    return whole


def check_anew() -> None:
    """Check the next call of every function, as at the beginning of each test."""
    _Calls.test += 1


class _Calls:
    """Which calls of each function are checked: the first of each test, and some of those that follow."""

    test = 0
    then = 16
    checked = True


@contextmanager
def unchecked() -> Iterator[None]:
    """Nothing is checked, as outside tests: wrong shapes go on to where a user would see them."""
    _Calls.checked = False
    try:
        yield
    finally:
        _Calls.checked = True


def _sampled(plain: Any, whole: Any) -> Any:
    test, count = -1, 0

    @functools.wraps(plain)
    def called(*given: Any, **named: Any) -> Any:
        nonlocal test, count
        if not _Calls.checked:
            return plain(*given, **named)
        if test != _Calls.test:
            test, count = _Calls.test, 0
        count += 1
        return (whole if count == 1 or count % _Calls.then == 0 else plain)(*given, **named)

    return called


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "structpe":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """From the source where that names shapes, because what Python caches is without checks."""
        path = self.get_filename(fullname)
        source = self.get_data(path)
        if not SHAPE.search(source.decode()):
            return super().get_code(fullname)
        tree = _Marker().visit(ast.parse(source, path))
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


class _Marker(ast.NodeTransformer):
    """Puts ``checked`` on what has a shape: last on functions, so that it sees their annotations; first on classes."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        self.generic_visit(node)
        future = [
            i for i, part in enumerate(node.body, 1) if isinstance(part, ast.ImportFrom) and part.module == "__future__"
        ]
        # Behind the docstring too, or it would be none.
        node.body.insert(
            max(future, default=int(bool(ast.get_docstring(node)))), ast.Import([ast.alias("tests.shapes", "_shapes")])
        )
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        given = node.args
        args = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
        if any(hint and SHAPE.search(ast.unparse(hint)) for hint in (node.returns, *(arg.annotation for arg in args))):
            node.decorator_list.append(_name(node))
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self.generic_visit(node)
        fields = [part.annotation for part in node.body if isinstance(part, ast.AnnAssign)]
        if any(SHAPE.search(ast.unparse(hint)) for hint in fields):
            node.decorator_list.insert(0, _name(node))
        return node


def _name(node: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Attribute(ast.Name("_shapes", ast.Load()), "checked", ast.Load()), node)

"""House rules that a reader can count on: small files, small functions, documented names, registries without holes."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from structpe.attention import KERNELS
from structpe.cli import COMMANDS
from structpe.encodings import ENCODINGS
from structpe.formats import CONVERTERS, READERS, WRITERS
from structpe.nn.readouts import READOUTS
from structpe.objectives import OBJECTIVES
from structpe.positions import MODELS
from structpe.tasks.runs import RUNS
from tests.modules import Module, modules

LONGEST_FILE = 900
LONGEST_FUNCTION = 40
MOST_ARGUMENTS = 8
NOT_COUNTED = ("self", "dims")
"""Every position model is given the sizes of the Transformer; they are not arguments of its own."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_files_are_short() -> None:
    lengths = {module.name: len(module.text.splitlines()) for module in modules()}
    assert not {name: length for name, length in lengths.items() if length > LONGEST_FILE}


def test_functions_are_short() -> None:
    lengths = {f"{module.name}.{each.name}": lines_of_code(each, module) for module, each in functions()}
    assert not {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION}


def test_constructors_take_few_arguments() -> None:
    counts = {module.name: count_arguments(each) for module, each in functions() if each.name == "__init__"}
    assert not {name: count for name, count in counts.items() if count > MOST_ARGUMENTS}


def test_nothing_is_asked_whether_it_has_an_attribute() -> None:
    asked = [
        f"{module.name}, line {node.lineno}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hasattr"
    ]
    assert not asked, "give the type a method instead: " + ", ".join(asked)


def test_public_names_are_documented() -> None:
    """A method may be documented where a base of its class declares it."""
    loaded = [importlib.import_module(module.name) for module in modules() if module.name != "structpe.__main__"]
    named = [(f"{module.__name__}.{name}", value) for module in loaded for name, value in public(module)]
    without = [module.__name__ for module in loaded if not inspect.getdoc(module)]
    without += [name for name, value in named if not value.__doc__]
    without += [
        f"{name}.{member}"
        for name, cls in named
        if inspect.isclass(cls)
        for member, attribute in vars(cls).items()
        if not member.startswith("_") and (inspect.isroutine(attribute) or isinstance(attribute, property))
        if not any(inspect.getdoc(vars(base)[member]) for base in cls.__mro__ if member in vars(base))
    ]
    assert not without, "these have no docstring:\n" + "\n".join(without)


REGISTRIES = [MODELS, ENCODINGS, KERNELS, READERS, WRITERS, CONVERTERS, COMMANDS, OBJECTIVES, READOUTS, RUNS]


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda r: r.what)
def test_every_member_of_a_registry_is_documented(registry: Any) -> None:
    assert len(registry)
    for name, member in registry.items():
        doc = member.compute.__doc__ if registry is KERNELS else member.doc if registry is READERS else member.__doc__
        assert doc, f"{registry.what} {name!r} has no docstring"
        assert name == name.lower(), f"{registry.what} {name!r}: names are lower case"
        assert "_" not in name, f"{registry.what} {name!r}: words of a name are joined by '-'"


def functions() -> Iterator[tuple[Module, Function]]:
    """Every function and method of structpe."""
    for module in modules():
        yield from ((module, node) for node in ast.walk(module.tree) if isinstance(node, Function))


def lines_of_code(function: Function, module: Module) -> int:
    """Lines without docstring, blank lines and lines of comment only."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if not body:
        return 0
    lines = module.text.splitlines()[body[0].lineno - 1 : function.end_lineno]
    return sum(1 for line in lines if line.strip() and not line.strip().startswith("#"))


def count_arguments(function: Function) -> int:
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return len([argument for argument in given if argument.arg not in NOT_COUNTED])


def public(loaded: Any) -> list[tuple[str, Any]]:
    """Classes and functions that a module defines."""
    return [
        (name, value)
        for name, value in vars(loaded).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == loaded.__name__
    ]

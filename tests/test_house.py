"""House rules that a reader can count on: small files, small functions, documented names, registries without holes."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

import structpe
from structpe.attention import KERNELS
from structpe.cli import COMMANDS
from structpe.encodings import ENCODINGS
from structpe.formats import CONVERTERS, READERS, WRITERS
from structpe.nn.readouts import READOUTS
from structpe.objectives import OBJECTIVES
from structpe.positions import MODELS
from structpe.tasks.runs import RUNS
from tests.modules import Module, imports, modules

LONGEST_FILE = 900
LONGEST_FUNCTION = 40
MOST_ARGUMENTS = 8
NOT_COUNTED = ("self", "dims")
"""Every position model is given the sizes of the Transformer; they are not arguments of its own."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_files_are_short() -> None:
    lengths = {module.name: len(module.text.splitlines()) for module in modules()}
    assert not {name: length for name, length in lengths.items() if length > LONGEST_FILE}


def test_private_modules_are_of_their_folder() -> None:
    """``_x.py`` and ``_name`` mean: of this folder, and of this file. What others use has a public name."""
    foreign = [
        f"{module.name}, line {each.line}: {each.name}"
        for module in modules()
        for each in imports(module)
        if each.name.startswith("structpe.") and each.name.rpartition(".")[2].startswith("_")
        if each.name.rpartition(".")[0] not in (module.name, module.name.rpartition(".")[0])
    ]
    private = [
        f"{module.name}, line {node.lineno}: {alias.name} of {node.module}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("structpe")
        for alias in node.names
        if alias.name.startswith("_")
        and not alias.name.startswith("__")
        and f"{node.module}.{alias.name}" not in {module.name for module in modules()}
    ]
    assert not foreign + private, "give it a public name:\n" + "\n".join(foreign + private)


def test_public_classes_have_names_of_their_own() -> None:
    """An adapter may name a class as its host does; PyG's and DGL's transforms are both ``AddEncoding``."""
    homes: dict[str, list[str]] = {}
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module.name)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {
        "AddEncoding": ["structpe.adapters.dgl", "structpe.adapters.pyg"]
    }


FACES = ("", "adapters.weights", "attention", "data", "datasets", "encodings", "formats", "nn", "objectives", "parsing")
FACES += ("pictures", "positions", "adapters.dgl", "adapters.pyg", "adapters.pytorch", "adapters.timm")
FACES += ("adapters.transformers",)


@pytest.mark.parametrize("face", FACES)
def test_what_a_face_lists_can_be_imported_from_it(face: str) -> None:
    package = importlib.import_module(f"structpe.{face}".rstrip("."))
    assert all(getattr(package, name) is not None for name in package.__all__)
    assert set(package.__all__) <= set(dir(package))


TRAVELS = {"t5": (18, 170), "alibi": (18, 135)}
"""Files that one opens to follow a bias from its name to the output of attention, and calls of named functions."""


@pytest.mark.parametrize("name", TRAVELS)
def test_a_bias_goes_through_few_hands(name: str) -> None:
    def travel() -> None:
        model = structpe.build(name, structpe.Dims(16, 2, 1))
        positions = structpe.encode([structpe.path(["a", "b", "c"])], model.encodings)
        q = torch.zeros(1, 2, 3, 8)
        structpe.attend(q, q, q, model.terms(model.prepare(positions), structpe.Site(layer=0)))

    travel()  # imports do not count
    files, calls = Counter[str](), 0
    root = str(Path(structpe.__file__).parent)

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root) and not code.co_name.startswith("<"):
            files[code.co_filename] += 1
            calls += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        travel()
    finally:
        sys.setprofile(before)
    most_files, most_calls = TRAVELS[name]
    assert len(files) <= most_files, sorted(files)
    assert calls <= most_calls


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
    unread = {"structpe.__main__", "structpe.attention._triton_kernels"}  # the latter needs Triton
    loaded = [importlib.import_module(module.name) for module in modules() if module.name not in unread]
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

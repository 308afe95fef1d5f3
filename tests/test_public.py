"""``import structpe``: instant, and every public name is there."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import structpe
from structpe.positions import MODELS
from tests.together import together


@together("name", structpe.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(structpe, name).__module__.startswith("structpe.")
    assert name in dir(structpe)


@pytest.mark.parametrize("name", ["structpe", "structpe.data", "structpe.nn", "structpe.tasks"])
def test_the_lists_of_a_face_agree_and_its_names_are_there(name: str) -> None:
    package = import_module(name)
    tree = ast.parse(Path(str(package.__file__)).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    for_types = {alias.name for each in block.body if isinstance(each, ast.ImportFrom) for alias in each.names}
    faces = next(node.value for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call))
    names = set(ast.literal_eval(faces.args[1]))
    assert for_types == set(package.__all__) == names <= set(dir(package))
    assert all(hasattr(package, each) for each in names)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'structpe' has no attribute 'atend'"):
        _ = structpe.atend  # type: ignore[attr-defined]


PROCESS = """
import json, sys
import structpe
at_once = [*sys.modules]
import torch
before = set(sys.modules)
from structpe import attend, build, encode, path
more = sorted(set(sys.modules) - before)
loaded = [name for name in ("structpe.formats", "structpe.nn.layer") if name in sys.modules]
modules = [structpe.formats.tree.__module__, structpe.nn.layer.__name__]
from structpe.adapters import hosts, pyg, pytorch, timm, transformers
heavy = [name for name in ("torch._dynamo", "transformers", "torch_geometric", "timm") if name in sys.modules]
print(json.dumps([at_once, len(before), more, heavy, loaded, modules]))
"""


@pytest.fixture(scope="module")
def imported() -> Any:
    """What a new process has imported after each of its lines."""
    done = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_modules_are_attributes_too(imported: Any) -> None:
    """As in PyTorch: one ``import structpe`` is enough for ``structpe.formats.tree``."""
    *_, loaded, modules = imported
    assert loaded == []
    assert modules == ["structpe.formats.trees", "structpe.nn.layer"]
    assert not hasattr(structpe, "formats.trees")


def test_the_example_of_the_docstring_runs() -> None:
    import torch

    from structpe.encodings import Distance

    sentence = structpe.path(["a", "path", "graph"])
    where = Distance(max_distance=8)
    positions = structpe.encode([sentence], [where])
    dims = structpe.Dims(width=64, heads=4, layers=2)
    model = structpe.build({"name": "t5", "encoding": {"name": "distance", "max_distance": 8}}, dims)
    terms = model.terms(model.prepare(positions), structpe.Site(layer=0))
    q, k, v = torch.randn(3, 1, 4, 3, 16)
    assert structpe.attend(q, k, v, terms).shape == (1, 4, 3, 16)


def test_import_is_instant(imported: Any) -> None:
    assert not {"torch", "numpy"} & set(imported[0])


IMPORTS = """
import sys
import structpe
from structpe.positions import MODELS
from structpe.positions import T5, describe
assert type(model := structpe.build("t5", structpe.Dims(16, 2, 1))) is T5
assert describe(model)["name"] == "t5"
class Own(structpe.PositionModel, name="own-of-a-test"): pass
try:
    class Taken(structpe.PositionModel, name="alibi"): pass
except structpe.StructPEError as error:
    print(error)
print(len([name for name in sys.modules if name.partition(".")[0] == "structpe"]))
print("alibi" in structpe.positions.MODELS, len(structpe.positions.MODELS))
"""


@pytest.mark.slow
def test_a_look_up_imports_what_it_names_and_not_all() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True)
    error, loaded, all_of_them = done.stdout.splitlines()
    assert (
        error == "two position models are named 'alibi': structpe.positions.decay.ALiBi and __main__.Taken; rename one"
    )
    assert int(loaded) < 50
    assert all_of_them == f"True {len(MODELS) + 1}"


def test_adapters_import_neither_their_hosts_nor_the_compiler(imported: Any) -> None:
    _, _, _, heavy, *_ = imported
    assert heavy == []


def test_a_name_needs_few_modules_beside_those_of_torch(imported: Any) -> None:
    _, before, more, *_ = imported
    assert len(more) < before / 5
    heavy = {"scipy", "networkx", "pandas", "lightning", "transformers", "matplotlib", "numba", "yaml"}
    assert not heavy & {module.partition(".")[0] for module in more}

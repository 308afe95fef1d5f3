"""DGL: importing it beside a new PyTorch, there and back, and graphs as users have them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given

from structpe import StructPEError, Structure, as_structure, as_structures, convert, path
from structpe.errors import MissingExtra
from structpe.formats import import_dgl
from tests.converters.test_pyg import featured
from tests.same import assert_same

try:
    dgl: Any = import_dgl()
except MissingExtra:
    pytest.skip("DGL is not released for this Python or machine", allow_module_level=True)


def plain(structure: Structure) -> Structure:
    """Without what DGL has no place for."""
    return replace(structure, units=None, owner=None)


@given(featured())
def test_there_and_back(structure: Structure) -> None:
    structure = plain(structure)
    graph = convert(structure, "dgl")
    assert_same(structure, as_structure(graph, directed=structure.directed), without=("name",))


@given(featured())
def test_there_and_back_by_types(structure: Structure) -> None:
    structure = plain(structure)
    graph = convert(structure, "dgl", hetero=True)
    assert_same(structure, as_structure(graph, directed=structure.directed), without=("name",))


def test_texts_are_bytes_or_numbers() -> None:
    graph = Structure(("žluť", "", "kůň"), [[0, 1], [1, 2]], ("ARG0", "of"))
    bytes_ = convert(graph, "dgl")
    assert bytes_.ndata["text"].dtype == torch.uint8
    assert_same(graph, as_structure(bytes_, directed=True))
    known = {"labels": ["", "kůň", "žluť"], "relations": ["of", "ARG0"]}
    numbers = convert(graph, "dgl", **known)
    assert numbers.ndata["text"].tolist() == [2, 0, 1]
    assert numbers.edata["text"].tolist() == [1, 0]
    assert_same(graph, as_structure(numbers, directed=True, **known))
    with pytest.raises(StructPEError, match=r"the label 'žluť' is not in the vocabulary that was given; add it"):
        convert(graph, "dgl", labels=["", "kůň"])
    with pytest.raises(StructPEError, match=r"edata\['text'\] numbers texts of a vocabulary; give it"):
        as_structure(numbers, labels=known["labels"])
    with pytest.raises(StructPEError, match=r"ndata\['text'\] is 0 to 2; the vocabulary that was given has 1 texts"):
        as_structure(numbers, labels=["a"], relations=known["relations"])


def test_graphs_of_ones_own() -> None:
    graph = dgl.graph(([0, 1, 1, 2], [1, 0, 2, 1]), idtype=torch.int32)
    graph.ndata["feat"], graph.ndata["label"] = torch.ones(3, 2), torch.zeros(3)
    graph.edata["w"] = torch.tensor([1, 1, 2, 2])
    structure = as_structure(graph)
    assert not structure.directed
    assert structure.edges.tolist() == [[0, 1], [1, 2]]
    assert structure.features["edge_w"].tolist() == [1, 2]
    assert set(structure.features) == {"feat", "edge_w"}
    assert set(as_structure(graph, features=["label"]).features) == {"label"}
    part = dgl.node_subgraph(graph, [1, 2])  # DGL notes where they come from
    assert set(as_structure(part).features) == {"feat", "edge_w"}
    both = as_structures(dgl.batch([graph, graph]))
    assert [each.size for each in both] == [3, 3]


def test_several_types_of_ones_own() -> None:
    graph = dgl.heterograph({("user", "plays", "game"): ([0, 1], [1, 0]), ("user", "follows", "user"): ([1], [0])})
    graph.nodes["user"].data["x"], graph.nodes["game"].data["x"] = torch.ones(2, 2), torch.ones(2, 3)
    structure = as_structure(graph, widths="pad")
    assert structure.nodes == ("game", "game", "user", "user")
    assert list(zip(structure.relations, structure.edges.tolist(), strict=True)) == [
        ("follows", [3, 2]),
        ("plays", [2, 1]),
        ("plays", [3, 0]),
    ]
    assert structure.features["x"].tolist() == [[1, 1, 1]] * 2 + [[1, 1, 0]] * 2
    with pytest.raises(StructPEError, match="feature 'x' has different shapes in different types"):
        as_structure(graph)


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(StructPEError, match="DGL has no place for units; convert the graph first, then split"):
        convert(path(["a"]).with_units(["a", "b"], [0, 0]), "dgl")
    with pytest.raises(
        StructPEError, match="the feature 'edge_text' would be 'text' in DGL, which means something els"
    ):
        convert(Structure(("a",), [], features={"edge_text": np.ones(0)}), "dgl")
    graph = dgl.graph(([0], [1]))
    with pytest.raises(StructPEError, match="undirected, but edge 0, 0 -> 1, has no counterpart 1 -> 0"):
        as_structure(graph, directed=False)
    with pytest.raises(StructPEError, match="features names 'x'; the graph has: none"):
        as_structure(graph, features=["x"])
    with pytest.raises(StructPEError, match="the graph has no node"):
        as_structure(dgl.graph(([], [])))
    graph.ndata["root"] = torch.tensor([True, True])
    with pytest.raises(StructPEError, match=r"ndata\['root'\] marks the node that a structure starts from; mark one"):
        as_structure(graph)


def run(code: str, home: Path) -> str:
    """What a fresh interpreter prints."""
    environment = {key: value for key, value in os.environ.items() if key != "DGLBACKEND"} | {"HOME": str(home)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert not done.returncode, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_importing_leaves_no_trace(tmp_path: Path) -> None:
    code = (
        "import os; from structpe.formats import import_dgl; dgl = import_dgl(); import dgl as mine\n"
        "import inspect, torch, importlib.util; assert mine is dgl and 'DGLBACKEND' not in os.environ\n"
        "inspect.getmodule(lambda: 0); assert importlib.util.find_spec('dgl.graphbolt') is not None\n"
        "torch.nn.Linear(1, 1)(torch.ones(1, 1)).backward()\n"
        "import dgl.graphbolt as bolt\ntry:\n    bolt.OnDiskDataset\nexcept AttributeError as error:\n    print(error)"
    )
    said = run(code, tmp_path)
    assert said.startswith("dgl.graphbolt.OnDiskDataset is not available") or not said
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_it_comes_after_an_import_that_failed(tmp_path: Path) -> None:
    code = (
        "try:\n    import dgl\nexcept Exception:\n    pass\n"
        "import structpe; from structpe.formats import import_dgl; dgl = import_dgl()\n"
        "print(structpe.as_structure(dgl.graph(([0], [1]))).size)"
    )
    assert run(code, tmp_path).splitlines()[-1] == "2"


def test_import_dgl_is_what_is_imported_already() -> None:
    assert import_dgl() is dgl is sys.modules["dgl"]

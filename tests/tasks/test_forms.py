"""What functions of runs and trained models are given by mistake: an error that explains it, at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import structpe
from structpe.errors import ConfigError, ReadError, StructPEError
from structpe.formats import Item
from structpe.objectives import OBJECTIVES
from structpe.pictures import load as load_picture
from structpe.structure import path
from structpe.tasks.config import make
from structpe.tasks.graph_to_text.config import GraphToTextConfig
from structpe.tasks.graph_to_text.generator import Generator
from structpe.tasks.prediction.predictor import Predictions, Predictor, Signature
from structpe.tasks.runs import load_run, run_of, train
from structpe.tasks.runs.text import text_run
from tests.together import together

CPU = torch.device("cpu")
WRONG = {
    "None": None,
    "a number": 3,
    "a text in a list": ["x"],
    "None in a list": [None],
    "an item and a text": [Item(path(["a"])), "x"],
    "nothing": [],
    "an empty tuple": (),
    "a mapping": {"a": 1},
    "an empty mapping": {},
    "an object": object(),
    "a class": Item,
    "an array": np.zeros(3),
    "bytes": b"ab",
    "a path that is not there": "not/there",
}


@pytest.fixture
def generator() -> Generator:
    """One that never comes to use its model."""
    config = make(GraphToTextConfig, {"data": {"train": "a.txt", "reader": "amr"}})
    return Generator(None, config, CPU)  # type: ignore[arg-type]


@pytest.fixture
def predictor() -> Predictor:
    """One that never comes to use its model."""
    signature = Signature(None, None, OBJECTIVES["regression"]("graph", 1, "mae"), ("a",))
    return Predictor(None, signature, CPU)  # type: ignore[arg-type]


@together("wrong", WRONG.values())
def test_trained_models_explain_what_they_take(generator: Generator, predictor: Predictor, wrong: Any) -> None:
    for act in (generator.generate, generator.evaluate, predictor.predict):
        with pytest.raises(StructPEError):
            act(wrong)


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_functions_of_runs_explain_what_they_take(wrong: Any, tmp_path: Path) -> None:
    acts: list[Callable[[Any], Any]] = [structpe.load, load_run, text_run, run_of, train]
    acts += [partial(_nothing_for, load_picture)]
    for act in acts:
        with pytest.raises(StructPEError):
            act(wrong)


def _nothing_for(act: Callable[..., Any], folder: Any) -> None:
    act(folder, [])


def test_nothing_is_one_mistake_for_all(generator: Generator, predictor: Predictor) -> None:
    with pytest.raises(ReadError, match=r"^there is no item; give one or more$"):
        predictor.predict([])
    with pytest.raises(ReadError, match=r"^there is no item; give one or more$"):
        generator.generate([])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((["x"],), r"^item 1: a text does not say what it is; .* files are read with read\(\)$"),
        ((None,), "^no converter takes a builtins.NoneType; known are objects of "),
        (([path(["a"]), {"facts": [["a", "b"]], "id": "q"}],), r"^item 2: 'q': triple 1 is \('a', 'b'\); give three"),
        ((path(["a"]), None, 0), "^batch_size is 0; give a number of items, 1 or more"),
        ((path(["a"]), None, "many"), "^batch_size is 'many'; give a number of items, 1 or more"),
        ((path(["a"]), {"beam": 2}), "^search is {'beam': 2}; give a SearchConfig, or None for that of the run"),
    ],
)
def test_generate_says_what_is_wrong(generator: Generator, given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(StructPEError, match=message):
        generator.generate(*given)


def test_one_structure_or_item_is_one(generator: Generator) -> None:
    structure = path(["a"])
    for given in (structure, Item(structure, id="1"), [structure], iter([structure]), {"structure": structure}):
        (item,) = generator._items(given)
        assert (item.structure, item.id) == (structure, "1")


def test_a_table_has_an_id_for_each_graph() -> None:
    found = Predictions(np.array([0, 0, 1]), np.array([0, 1, 0]), np.zeros((3, 1)), {"a": np.zeros(3)})
    assert found.table(["x", "y"])["id"].tolist() == ["x", "x", "y"]
    for wrong in (["x"], ["x", "y", "z"], 3):
        with pytest.raises(ConfigError, match="give one for each of 2 graphs, or None for their numbers"):
            found.table(wrong)  # type: ignore[arg-type]


def test_a_folder_of_no_run_is_said() -> None:
    with pytest.raises(StructPEError, match=r"^None is not a path; give the folder of a run, the 'out' of its conf"):
        structpe.load(None)  # type: ignore[arg-type]

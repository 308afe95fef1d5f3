"""From items to batches: vocabulary, forms of the graph, padding, and the same after saving."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

import structpe
from structpe.data.prepare import PrepareConfig, Preparer
from structpe.encodings.distance import Distance
from structpe.encodings.order import Order
from structpe.errors import ConfigError, StoreError, StructureError
from structpe.formats import Item
from tests.datasets import SAMPLES
from tests.killing import every_moment

ENCODINGS = (Order(), Distance())


@pytest.fixture(scope="module")
def items() -> list[Item]:
    return list(structpe.read(SAMPLES / "amr_sample" / "train.txt"))[:60]


@pytest.mark.parametrize("graph", ["plain", "levi", "linear"])
def test_a_batch_holds_each_example_padded(items: list[Item], graph: str) -> None:
    preparer = Preparer.fit(items, PrepareConfig(graph=graph, vocabulary=600))  # type: ignore[arg-type]
    examples = preparer.examples(items[:5], ENCODINGS)
    batch = preparer.collate(examples, "together")
    assert batch.target is not None
    assert batch.edge_x is not None
    (positions,) = batch.positions
    for row, example in enumerate(examples[i] for i in batch.order.tolist()):
        size = example.graph.size
        assert batch.x[batch.graph == row].tolist() == example.graph.x.tolist()
        assert int(batch.sizes[row]) == size
        assert positions[Order()][row, :size].tolist() == example.graph.encoded[Order()].values.tolist()
        distances = positions[Distance()].dense()[row, :size, :size]
        np.testing.assert_array_equal(distances, example.graph.encoded[Distance()].pairs())
        target = batch.target[row].tolist()
        assert preparer.text(target[1 : target.index(preparer.last)]) == example.texts[0]
    assert int(batch.edge_x.max()) < preparer.edge_types.size


def test_texts_come_back_exactly_whatever_they_hold(items: list[Item]) -> None:
    preparer = Preparer.fit(items, PrepareConfig(vocabulary=500))
    for text in ("the lamp", "Ωμέγα 東京 🙂", "a  b", "x:ARG0 y"):
        assert preparer.text(preparer.target(text)[1:-1].tolist()) == text


def test_roles_are_one_unit_and_words_are_written_as_words(items: list[Item]) -> None:
    preparer = Preparer.fit(items, PrepareConfig(vocabulary=600))
    structure = preparer.structure(items[0])
    roles = [label for label in structure.nodes if label.startswith(":")]
    owners = structure.unit_owner.tolist()
    assert roles
    assert all(owners.count(node) == 1 for node, label in enumerate(structure.nodes) if label.startswith(":ARG"))
    assert not any(label.endswith("-01") for label in structure.nodes)


def test_every_text_of_a_training_item_is_an_example() -> None:
    items = list(structpe.read(SAMPLES / "kg_sample" / "train.xml"))
    preparer = Preparer.fit(items, PrepareConfig(vocabulary=600))
    every = preparer.examples(items, ENCODINGS, every_text=True)
    assert len(every) == sum(len(item.texts) for item in items) > len(items)
    assert len(preparer.examples(items, ENCODINGS)) == len(items)


def test_texts_that_are_too_long_are_left_out_of_training_only(items: list[Item]) -> None:
    preparer = Preparer.fit(items, PrepareConfig(vocabulary=600, longest_target=10))
    kept = preparer.examples(items, ENCODINGS, every_text=True)
    assert 0 < len(kept) < len(items)
    assert all(e.graph.target is not None and len(e.graph.target) <= 10 for e in kept)
    assert len(preparer.examples(items, ENCODINGS)) == len(items)


def test_a_structure_that_is_too_long_is_named(items: list[Item]) -> None:
    preparer = Preparer.fit(items, PrepareConfig(vocabulary=600, longest_source=5))
    with pytest.raises(StructureError, match=r"units, longest_source is 5; raise prepare.longest_source"):
        preparer.examples(items[:1], ENCODINGS)


def test_saved_and_loaded_it_prepares_the_same(items: list[Item], tmp_path: Path) -> None:
    preparer = Preparer.fit(items, PrepareConfig(graph="plain", vocabulary=600))
    preparer.save(tmp_path)
    again = Preparer.load(tmp_path)
    assert again.config == preparer.config
    assert again.edge_types == preparer.edge_types
    one, two = (p.collate(p.examples(items[:4], ENCODINGS)) for p in (preparer, again))
    assert torch.equal(one.x, two.x)
    assert torch.equal(one.edge_x, two.edge_x)
    assert torch.equal(one.adjacency.source, two.adjacency.source)
    assert torch.equal(one.adjacency.target, two.adjacency.target)


def test_killed_while_it_is_saved_again_it_is_what_it_was(items: list[Item], tmp_path: Path) -> None:
    preparer = Preparer.fit(items, PrepareConfig(vocabulary=600))
    preparer.save(tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for _ in every_moment(lambda: preparer.save(tmp_path), step=4):
        assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_folder_without_a_training_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"holds no tokenizer.json; give the folder of a finished or running training"):
        Preparer.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"[]", b"\xff\xfe"])
@pytest.mark.parametrize("file", ["tokenizer.json", "prepare.json"])
def test_a_damaged_file_is_named(items: list[Item], tmp_path: Path, file: str, content: bytes) -> None:
    Preparer.fit(items, PrepareConfig(vocabulary=600)).save(tmp_path)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(StoreError, match=rf"{file}: the file is damaged \(\w+: .*\); restore it, or train afresh"):
        Preparer.load(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"vocabulary": 259}, "prepare.vocabulary is 259; it must be 260 or more"),
        ({"longest_source": 0}, "prepare.longest_source is 0; it must be 1 or more"),
        ({"longest_target": -1}, "prepare.longest_target is -1; it must be 1 or more"),
    ],
)
def test_what_cannot_be_prepared_with(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PrepareConfig(**wrong)  # type: ignore[arg-type]


def test_an_item_without_text_has_no_target(items: list[Item]) -> None:
    preparer = Preparer.fit(items, PrepareConfig(vocabulary=600))
    silent = dataclasses.replace(items[0], texts=())
    examples = preparer.examples([silent], ENCODINGS)
    assert examples[0].graph.target is None
    assert preparer.collate(examples).target is None

"""What is written of units: texts, not a tokenizer's marks, in the order in which they are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from structpe.encodings import Distance, Offset, RandomWalk
from structpe.formats import read
from structpe.pictures import load, page, show
from structpe.pictures.heat import heat_of, in_order, unit_labels, unit_names
from structpe.pictures.view import view
from structpe.structure import Structure, path
from structpe.transforms.nodes import levi
from tests.pictures.cases import DIMS, MEANING, PARSE
from tests.pictures.measuring import faults
from tests.pictures.runs import written
from tests.pictures.test_page import plots, said
from tests.tasks.graph_to_text.tiny import AMR
from tests.together import together


def units(nodes: list[str], texts: list[list[str]]) -> Structure:
    owner = [node for node, own in enumerate(texts) for _ in own]
    return path(nodes).with_units([text for own in texts for text in own], owner)


@together(
    "nodes, texts, labels",
    [
        (["lighthouse", "old"], [["Ġlight", "house"], ["Ġ", "old"]], ["light", "house", "␣", "old"]),
        (["want-01"], [["Ġwant"]], ["want"]),
        (["café"], [["cafÃ©"]], ["café"]),
        (["東"], [["æĿ", "±"]], ["\N{REPLACEMENT CHARACTER}", "\N{REPLACEMENT CHARACTER}"]),
        (["Ġorġ"], [["Ġor", "ġ"]], ["Ġor", "ġ"]),  # Maltese, whose letters these are
        (["cafÃ©"], [["caf", "Ã©"]], ["caf", "Ã©"]),
        (["old house"], [["▁old", "▁house"]], ["old", "house"]),
        (["playing"], [["play", "##ing"]], ["play", "ing"]),
        (["## heading"], [["##", "heading"]], ["##", "heading"]),
        (["a", "b"], [[":ARG0"], ["<unk>"]], [":ARG0", "<unk>"]),
    ],
)
def test_units_are_written_as_people_read_them(nodes: list[str], texts: list[list[str]], labels: list[str]) -> None:
    assert unit_labels(units(nodes, texts)) == labels


def test_bytes_are_those_of_the_tokenizers_library() -> None:
    decoders = pytest.importorskip("tokenizers.decoders")
    from structpe.pictures.heat import BYTES

    assert len(BYTES) == len(set(BYTES.values())) == 256
    for character, byte in BYTES.items():
        assert bytes([byte]).decode("utf-8", errors="replace") == decoders.ByteLevel().decode([character])


def test_rows_are_in_reading_order() -> None:
    """Those of a Levi graph, whose relations are numbered after all its nodes and read between them."""
    graph = levi(PARSE)
    assert graph.order is not None
    read_out = [graph.nodes[node] for node in np.argsort(graph.order)]
    assert [name.partition(" ")[2] for name in unit_names(graph)] == read_out
    assert in_order(graph).tolist() != list(range(graph.size))
    offsets = heat_of(graph, Offset()).values
    np.testing.assert_array_equal(offsets, np.arange(graph.size)[None] - np.arange(graph.size)[:, None])
    walks = RandomWalk(steps=3)
    np.testing.assert_array_equal(heat_of(graph, walks).values, walks.one(graph).values[np.argsort(graph.order)])
    whole = Distance().one(graph).pairs()[np.ix_(np.argsort(graph.order), np.argsort(graph.order))]
    heat = heat_of(graph, Distance())
    there = np.isfinite(heat.values)
    np.testing.assert_array_equal(heat.values[there], whole[there])


def test_heads_and_pages_have_the_same_rows() -> None:
    from structpe.positions import build

    graph = levi(PARSE)
    (block,) = view(graph, [build({"name": "t5", "num_buckets": 4, "max_distance": 8}, DIMS)]).blocks
    for head in block.heads:  # a bias on the offset is the same along each diagonal, in reading order only
        assert all(len(np.unique(head.values.diagonal(k))) == 1 for k in range(-3, 4))
        assert head.rows == unit_names(graph)
    text = page(graph, [Offset()])
    told = said(text)
    assert told["owner"] == np.argsort(graph.order).tolist()  # type: ignore[arg-type]
    assert told["names"] == list(unit_names(graph))
    assert plots(text)["map0"][0][0]["z"][0] == list(range(graph.size))


@pytest.mark.slow
def test_a_trained_model_shows_no_marks_of_its_tokenizer(tmp_path: Path) -> None:
    item = read(AMR / "test.txt", "amr")[2]
    found = load(written(tmp_path), item)
    assert any("Ġ" in text for text in found.structure.unit_texts)
    names = unit_names(found.structure)
    assert not any("Ġ" in name for name in names)
    assert [int(name.partition(" ")[0]) for name in names[:4]] == [0, 0, 0, 9]  # sing, then the relation that is read
    assert not faults(show(item.structure, [found]))


def test_columns_are_counted_from_1() -> None:
    heat = heat_of(MEANING, RandomWalk(steps=3))
    assert heat.columns == ("1", "2", "3")
    assert heat.axes == ("unit", "steps")

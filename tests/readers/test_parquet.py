"""Tables with a graph in each row. The oracle is the converter of rows, given what pyarrow itself makes of a row."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import structpe
from structpe.errors import ReadError, StructureError
from structpe.formats import parquet, read, stream
from structpe.structure import Structure
from tests.readers.test_apart import Elsewhere

BOTH = [[0, 1, 1, 2], [1, 0, 2, 1]]
ROWS: list[dict[str, Any]] = [
    {"edge_index": BOTH, "num_nodes": 3, "node_feat": [[1, 2], [3, 4], [5, 6]], "edge_attr": [[1], [1], [2], [2]],
     "y": [0.5]},
    {"edge_index": [[0], [1]], "num_nodes": 2, "node_feat": [[7, 8], [9, 0]], "edge_attr": [[3]], "y": [1.0]},
    {"edge_index": [[], []], "num_nodes": 1, "node_feat": [[1, 1]], "edge_attr": [], "y": [2.0]},
]  # fmt: skip


def table(rows: list[dict[str, Any]], path: Path, **options: Any) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path, **options)
    return path


def assert_same(mine: Structure, theirs: Structure) -> None:
    assert (mine.nodes, mine.relations, mine.directed) == (theirs.nodes, theirs.relations, theirs.directed)
    np.testing.assert_array_equal(mine.edges, theirs.edges)
    assert set(mine.features) == set(theirs.features)
    for key, value in theirs.features.items():
        np.testing.assert_array_equal(mine.features[key], value)


@pytest.mark.parametrize("options", [{}, {"row_group_size": 1}, {"compression": "zstd", "data_page_version": "2.0"}])
def test_rows_are_structures(tmp_path: Path, options: dict[str, Any]) -> None:
    reading = read(table(ROWS, tmp_path / "a.parquet", **options))
    assert [item.id for item in reading] == ["1", "2", "3"]
    for item, row in zip(reading, ROWS, strict=True):
        assert_same(item.structure, structpe.as_structure(row))
        assert item.metadata["y"].tolist() == row["y"]
        assert item.metadata["num_nodes"] == row["num_nodes"]
    assert [item.structure.directed for item in reading] == [False, True, False]
    assert reading[0].structure.name == "a.parquet:1"


def test_many_batches_and_row_groups_and_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    rows = []
    for number in range(90):
        n = int(random.integers(1, 9))
        ends = random.integers(0, n, (2, int(random.integers(0, 12))))
        rows.append(
            {"id": f"g{number}", "edge_index": ends.tolist(), "num_nodes": n, "x": random.random((n, 2)).tolist()}
        )
    monkeypatch.setattr(parquet, "ROWS", 7)
    file = table(rows, tmp_path / "a.parquet", row_group_size=25)
    alone = list(stream(file))
    together = list(stream(file, executor=Elsewhere()))
    for item, other, row in zip(alone, together, rows, strict=True):
        assert item.id == other.id == row["id"]
        assert_same(item.structure, structpe.as_structure(row))
        assert_same(other.structure, item.structure)


def test_what_columns_may_be(tmp_path: Path) -> None:
    """Lists of a fixed size, large lists, floats of half the width, texts, categories, nothing at all."""
    columns = {
        "edge_index": pa.array([BOTH, [[0, 1], [1, 0]]], pa.list_(pa.large_list(pa.int32()), 2)),
        "x": pa.array([[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 0]]], pa.list_(pa.list_(pa.float32(), 2))),
        "labels": pa.array([["a", "b", "c"], None], pa.list_(pa.string())),
        "mask": pa.array([[True, False, True], [False, True]], pa.list_(pa.bool_())),
        "kind": pa.array(["odd", None]).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    first, second = read(tmp_path / "a.parquet", directed=False)
    assert first.structure.nodes == ("a", "b", "c")
    assert second.structure.nodes == ("", "")
    assert first.structure.features["x"].dtype == np.float32
    assert second.structure.features["x"].tolist() == [[7, 8], [9, 0]]
    assert first.structure.features["mask"].tolist() == [True, False, True]
    assert (dict(first.metadata), dict(second.metadata)) == ({"kind": "odd"}, {})
    narrow = pa.array([[[1, 2], [3, 4], [5, 6]], None, [[7, None]]], pa.list_(pa.list_(pa.float32())))
    rows = {"edge_index": pa.array([[[0], [1]]] * 3, pa.list_(pa.list_(pa.int64()))), "num_nodes": pa.array([3, 2, 2])}
    pq.write_table(pa.table({**rows, "x": narrow}), tmp_path / "b.parquet")  # what others lack changes no type
    one, two = read(tmp_path / "b.parquet", on_error="skip")
    assert (one.structure.features["x"].dtype, two.structure.features) == (np.float32, {})
    (chosen, _) = read(tmp_path / "a.parquet", features=["x"])
    assert set(chosen.structure.features) == {"x"}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"node_feat": [[1, 2], [3], [5, 6]]}, ReadError, "item 2: 'node_feat' of the row has parts of"),
        ({"node_feat": [[1, 2], [3, None], [5, 6]]}, ReadError, "item 2: 'node_feat' .* or lacks a value"),
        ({"edge_index": None}, ReadError, "item 2: a mapping is a row of a data set, with 'edge_index'"),
        ({"edge_index": [[0, 9], [1, 0]], "edge_attr": [[1], [1]]}, StructureError, "item 2: edge 1 is 9 -> 0, but"),
        ({"edge_index": [[0, 1]]}, ReadError, r"'edge_index' of the row has shape \(1, 2\); give \(2, edges\)"),
        ({"num_nodes": None, "node_feat": None}, ReadError, "the row has no 'num_nodes', 'node_feat' or 'x' to count"),
    ],
)  # fmt: skip
def test_bad_rows_are_named_and_passed_over(
    change: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    rows = [ROWS[0], {**ROWS[0], **change}, ROWS[0]]
    file = table(rows, tmp_path / "a.parquet")
    with pytest.raises(error, match=message):
        read(file)
    good = read(file, on_error="skip")
    assert [item.id for item in good] == ["1", "3"]


def test_what_is_no_table_of_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = table([{"smiles": "CC", "y": 1}], tmp_path / "a.parquet")
    with pytest.raises(
        ReadError, match=r"it has no column 'edge_index'; its columns are smiles, y\. Give a table with"
    ):
        read(file)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and no more PAR1")
    with pytest.raises(
        ReadError, match=r"b\.parquet: it is not a Parquet table, or damaged \(.*\); restore the original"
    ):
        read(tmp_path / "b.parquet")
    file = table(ROWS, tmp_path / "c.parquet")
    monkeypatch.setattr(parquet, "MOST", 100)
    with pytest.raises(
        ReadError, match=r"row group 0 takes 0\.0 GiB.*write the table again with smaller ones, such as"
    ):
        read(file)
    renamed = file.rename(tmp_path / "c.bin")
    with pytest.raises(ReadError, match=r"a Parquet table.*reader='parquet' reads it"):
        read(renamed)


def test_a_file_cut_or_changed_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    whole, random = io.BytesIO(), np.random.default_rng(0)
    pq.write_table(pa.Table.from_pylist(ROWS), whole)
    content, file = whole.getvalue(), tmp_path / "a.parquet"
    for at in random.integers(0, len(content), 60).tolist():
        file.write_bytes(content[:at])
        with pytest.raises(ReadError, match=r"a\.parquet: "):
            read(file)
        flipped = bytearray(content)
        flipped[at] ^= 1 << int(random.integers(8))
        file.write_bytes(bytes(flipped))
        with suppress(ReadError, StructureError):
            read(file)

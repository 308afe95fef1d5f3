"""Graphs in the rows of tables: pandas, Parquet, Hugging Face's datasets, any iterator; row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from torch_geometric.data import Data

from structpe import Structure, as_structure, as_structures
from structpe.data.store import write
from structpe.encodings import Distance
from structpe.formats import each_structure
from structpe.formats.converting import ConversionError
from tests.same import assert_same

ROWS: list[dict[str, Any]] = [
    {"edge_index": [[0, 1, 1, 2], [1, 0, 2, 1]], "node_feat": [[6], [6], [8]], "edge_attr": [[1]] * 4, "y": [0.5]},
    {"edge_index": [[], []], "node_feat": [[7]], "edge_attr": None, "y": [0.1]},
    {"edge_index": [[0], [1]], "node_feat": [[6], [7]], "edge_attr": [[3]], "y": [0.2]},
]
EXPECTED = [
    Structure(("",) * 3, [[0, 1], [1, 2]], directed=False, features={"x": [[6], [6], [8]], "edge_x": [[1], [1]]}),  # type: ignore[dict-item]
    Structure(("",), [], directed=False, features={"x": [[7]]}),  # type: ignore[dict-item]
    Structure(("",) * 2, [[0, 1]], features={"x": [[6], [7]], "edge_x": [[3]]}),  # type: ignore[dict-item]
]


def assert_expected(found: list[Structure]) -> None:
    assert len(found) == len(EXPECTED)
    for mine, theirs in zip(found, EXPECTED, strict=True):
        assert_same(mine, theirs)


def test_a_table_of_pandas_and_of_parquet(tmp_path: Path) -> None:
    frame = pandas.DataFrame(ROWS)
    assert_expected(as_structures(frame))
    frame.to_parquet(tmp_path / "graphs.parquet")
    assert_expected(as_structures(pandas.read_parquet(tmp_path / "graphs.parquet")))
    assert as_structures(frame, features=["node_feat"], directed=True)[0].features.keys() == {"x"}


class Dataset:
    """As Hugging Face's: gives rows when it is iterated."""

    def __init__(self) -> None:
        self.given = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for row in ROWS:
            self.given += 1
            yield row


@pytest.mark.parametrize("name", ["Dataset", "IterableDataset"])
def test_a_data_set_of_hugging_face_is_read_row_by_row(name: str) -> None:
    data = type(name, (Dataset,), {"__module__": "datasets.arrow_dataset"})()
    found = each_structure(data, features=["node_feat", "edge_attr"])
    assert data.given == 0
    assert_same(next(found), EXPECTED[0])
    assert data.given == 1
    assert_expected(as_structures(data))


def test_that_of_hugging_face_itself() -> None:
    datasets = pytest.importorskip("datasets")
    if not datasets.__file__:
        pytest.skip("needs Hugging Face's datasets")
    data = datasets.Dataset.from_list(ROWS)
    assert_expected(as_structures(data))
    assert_expected(as_structures(data.with_format("numpy")))
    assert_expected(as_structures(data.to_iterable_dataset()))


def test_any_iterator_of_objects_streams_into_a_store(tmp_path: Path) -> None:
    def rows() -> Iterator[Any]:
        yield from ROWS
        yield Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
        yield "(b / bark-01 :ARG0 (d / dog))"

    store = write(tmp_path / "store", each_structure(rows()), [Distance()])
    assert [int(store[i][Distance()].count) for i in range(5)] == [3, 1, 2, 2, 2]


def test_errors_name_the_row() -> None:
    wrong = [*ROWS[:1], {**ROWS[0], "edge_attr": [[1]]}]
    with pytest.raises(
        ConversionError, match=r"^row 1: 'edge_attr' is a feature, and has shape \(1, 1\); it needs 4 rows"
    ):
        as_structures(pandas.DataFrame(wrong))
    with pytest.raises(ConversionError, match=r"^row 1: .*no 'num_nodes', 'node_feat' or 'x'"):
        list(each_structure(iter([ROWS[0], {"edge_index": [[0], [1]]}])))


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (pandas.DataFrame(ROWS), {"relation": "pearson"}, "a graph in each row, .*has no option 'relation'"),
        (pandas.DataFrame({"a": [1, 2]}), {"directed": True}, "one graph, that of its columns, .*no option 'directed'"),
    ],
)
def test_options_are_of_columns_or_of_rows(frame: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        as_structures(frame, **options)


def test_a_row_of_arrays_of_objects() -> None:
    index = np.empty(2, dtype=object)
    index[:] = [np.array([0, 1]), np.array([1, 0])]
    assert as_structure({"edge_index": index, "num_nodes": 2}).edges.tolist() == [[0, 1]]
    index[1] = np.array([1])
    with pytest.raises(ConversionError, match="parts of different lengths"):
        as_structure({"edge_index": index, "num_nodes": 2})


class Row(Mapping[str, Any]):
    """What Hugging Face's ``datasets.map`` gives a function: no dict, and each column is made when it is asked for."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns = columns

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


def test_any_mapping_is_a_row() -> None:
    assert_expected([as_structure(Row(row)) for row in ROWS])
    assert_expected([as_structure(MappingProxyType(row)) for row in ROWS])

"""Data sets in OGB's formats: those of its ``DatasetSaver``, and the tables that it fetches."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np

from structpe.datasets.ogb import _imported


def saved(folder: Path, kind: str, graphs: list[dict[str, Any]], labels: Any, task: tuple[Any, ...]) -> Path:
    """A data set by ``DatasetSaver``; the first item is to train on, the second to select by, the others to test."""
    mapping = folder / "mapping"
    mapping.mkdir()
    (mapping / "README.md").write_text("none")
    saver = _imported("ogb.io").DatasetSaver(f"{kind}-mine", False, 1, root=str(folder / "own"))
    saver.save_graph_list(graphs)
    saver.save_target_labels(labels)
    numbers = np.arange(len(labels))
    saver.save_split({"train": numbers[:1], "valid": numbers[1:2], "test": numbers[2:]}, "random")
    saver.copy_mapping_dir(str(mapping))
    saver.save_task_info(*task)
    saver.get_meta_dict()
    return folder / f"own_{kind}_mine"


def both_ways(edges: list[list[int]]) -> Any:
    return np.array(edges + [edge[::-1] for edge in edges]).reshape(-1, 2).T


def own_graphs(folder: Path) -> Path:
    """Three molecules of sorts, undirected, with features; two labels each, of which two are not known."""
    edges = [[[0, 1], [1, 2], [2, 2]], [[0, 1]], []]
    made = [
        {
            "edge_index": both_ways(each),
            "num_nodes": 3,
            "node_feat": np.array([[0, 4], [1, 0], [2, 0]]),
            "edge_feat": np.tile(np.arange(len(each), dtype=np.float32), 2).reshape(-1, 1),
        }
        for each in edges
    ]
    labels = np.array([[0.0, np.nan], [1.0, 1.0], [np.nan, 0.0]])
    return saved(folder, "ogbg", made, labels, ("binary classification", "rocauc", 2))


def tables(folder: Path, graphs: list[dict[str, Any]], split: str, **more: Any) -> None:
    """Files as OGB gives them; the first item is to train on, the second to select by, the others to test."""
    lines = {key.replace("__", "-"): value for key, value in more.items()}
    lines["edge"] = np.concatenate([graph["edges"] for graph in graphs])
    lines["num-node-list"] = [graph["nodes"] for graph in graphs]
    lines["num-edge-list"] = [len(graph["edges"]) for graph in graphs]
    (folder / "raw").mkdir(parents=True)
    (folder / "split" / split).mkdir(parents=True)
    for name, rows in lines.items():
        table(folder / "raw" / name, rows)
    count = len(next(rows for name, rows in lines.items() if name.endswith("-label")))
    for part, numbers in {"train": [0], "valid": [1], "test": range(2, count)}.items():
        table(folder / "split" / split / part, list(numbers))
    (folder / "RELEASE_v1.txt").touch()


def table(file: Path, rows: Any) -> None:
    text = "".join(",".join(map(str, np.atleast_1d(row))) + "\n" for row in rows)
    with gzip.open(file.parent / f"{file.name}.csv.gz", "wt") as stream:
        stream.write(text)

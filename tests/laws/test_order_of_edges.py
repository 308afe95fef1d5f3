"""A graph whose edges are listed in another order, their labels and attributes with them, is the same labelled graph.

For all readers and converters that list edges apart from nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Data, HeteroData

from structpe import Structure, as_structure
from structpe.datasets.molecules import _molecule
from structpe.datasets.ogb import _structure
from structpe.errors import MissingExtra
from structpe.formats import import_dgl, read
from tests.together import together

LABELS = ("a", "b", "c", "d")
EDGES = [(1, 2, "7"), (0, 1, "5"), (3, 1, "8"), (2, 0, "6"), (3, 0, "5"), (2, 3, "9")]
"""Source, target and label; the attribute is the label as a number. Neither sorted, nor with the smaller node first."""
Row = tuple[int, int, str]
Made = Callable[[Sequence[Row], Path], Structure]


def index_of(rows: Sequence[Row]) -> Any:
    return np.array([row[:2] for row in rows]).T


def numbers(rows: Sequence[Row]) -> Any:
    return np.array([[int(row[2])] for row in rows])


def of_tu(rows: Sequence[Row], folder: Path) -> Structure:
    files = {
        "A": [f"{s + 1}, {t + 1}" for s, t, _ in rows],
        "edge_labels": [label for *_, label in rows],
        "edge_attributes": [label for *_, label in rows],
        "graph_indicator": ["1"] * 4,
        "node_labels": ["0", "1", "2", "3"],
    }
    for name, lines in files.items():
        (folder / f"S_{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    return read(folder / "S_A.txt", "tu")[0].structure


def row_of(rows: Sequence[Row]) -> dict[str, Any]:
    relations = [label for *_, label in rows]
    index = index_of(rows).tolist()
    return {"edge_index": index, "labels": list(LABELS), "relations": relations, "edge_attr": numbers(rows).tolist()}


def of_row(rows: Sequence[Row], folder: Path) -> Structure:
    return as_structure(row_of(rows))


def of_parquet(rows: Sequence[Row], folder: Path) -> Structure:
    pandas.DataFrame([row_of(rows)]).to_parquet(folder / "a.parquet")
    return read(folder / "a.parquet")[0].structure


def of_pyg(rows: Sequence[Row], folder: Path) -> Structure:
    more = {"edge_index": torch.from_numpy(index_of(rows)), "edge_attr": numbers_of(rows), "num_nodes": 4}
    return as_structure(Data(**{**row_of(rows), **more}))


def numbers_of(rows: Sequence[Row]) -> torch.Tensor:
    return torch.from_numpy(numbers(rows))


def of_hetero(rows: Sequence[Row], folder: Path) -> Structure:
    data = HeteroData()
    for label in LABELS:
        data[label].num_nodes = 1
    for s, t, relation in rows:  # types are in the order in which they are given
        data[LABELS[s], relation, LABELS[t]].edge_index = torch.zeros(2, 1, dtype=torch.long)
        data[LABELS[s], relation, LABELS[t]].edge_attr = torch.tensor([[int(relation)]])
    return as_structure(data)


def of_dgl(rows: Sequence[Row], folder: Path) -> Structure:
    dgl = dgl_or_skip()
    graph = dgl.graph(tuple(torch.from_numpy(index_of(rows))), num_nodes=4)
    graph.ndata["text"] = torch.tensor([[ord(label)] for label in LABELS], dtype=torch.uint8)
    graph.edata["text"] = torch.tensor([[ord(label)] for *_, label in rows], dtype=torch.uint8)
    graph.edata["x"] = numbers_of(rows)
    return as_structure(graph)


def dgl_or_skip() -> Any:
    try:
        return import_dgl()
    except MissingExtra:
        pytest.skip("DGL is not released for this Python or machine")


def of_networkx(kind: Any) -> Made:
    def made(rows: Sequence[Row], folder: Path) -> Structure:
        graph = kind()
        graph.add_nodes_from((place, {"label": label}) for place, label in enumerate(LABELS))
        graph.add_edges_from((s, t, {"relation": label, "x": [int(label)]}) for s, t, label in rows)
        return as_structure(graph)

    return made


def of_node_link(rows: Sequence[Row], folder: Path) -> Structure:
    nodes = [{"id": place, "label": label} for place, label in enumerate(LABELS)]
    links = [{"source": s, "target": t, "relation": label, "x": [int(label)]} for s, t, label in rows]
    return as_structure({"nodes": nodes, "links": links, "directed": True})


def of_scipy(rows: Sequence[Row], folder: Path) -> Structure:
    return as_structure(sparse.coo_array((numbers(rows)[:, 0], tuple(index_of(rows))), shape=(4, 4)))


def of_index(rows: Sequence[Row], folder: Path) -> Structure:
    return as_structure(index_of(rows), kind="edge_index")


def of_triples(rows: Sequence[Row], folder: Path) -> Structure:
    (folder / "a.tsv").write_text("".join(f"{LABELS[s]}\t{label}\t{LABELS[t]}\n" for s, t, label in rows))
    return read(folder / "a.tsv")[0].structure


def of_rdf(rows: Sequence[Row], folder: Path) -> Structure:
    lines = [f"<http://e/{LABELS[s]}> <http://e/{label}> <http://e/{LABELS[t]}> .\n" for s, t, label in rows]
    (folder / "a.nt").write_text("".join(lines))
    return read(folder / "a.nt")[0].structure


def of_rdkit(rows: Sequence[Row], folder: Path) -> Structure:
    from rdkit import Chem

    mol = Chem.RWMol()
    for symbol in ("C", "N", "O", "S"):
        mol.AddAtom(Chem.Atom(symbol))
    for s, t, label in rows:
        mol.AddBond(s, t, Chem.BondType.names[{"5": "SINGLE", "6": "DOUBLE"}.get(label, "TRIPLE")])
    return as_structure(mol)


def of_ogb(rows: Sequence[Row], folder: Path) -> Structure:
    graph = {"edge_index": index_of(rows), "num_nodes": 4, "edge_feat": numbers(rows)}
    named = (lambda x, size: LABELS, lambda edge_x: tuple(map(str, edge_x[:, 0].tolist())))
    return _structure(graph, True, np.ones(len(rows), dtype=bool), *named, "")


def of_zinc(rows: Sequence[Row], folder: Path) -> Structure:
    return _molecule("", np.arange(4), index_of(rows).T, numbers(rows)[:, 0])


BOTH = [*EDGES, *((t, s, label) for s, t, label in EDGES)]
MAKERS: dict[str, tuple[Made, list[Row]]] = {
    "tu": (of_tu, BOTH),
    "rows": (of_row, EDGES),
    "rows, undirected": (of_row, BOTH),
    "parquet": (of_parquet, BOTH),
    "pyg": (of_pyg, EDGES),
    "pyg, undirected": (of_pyg, BOTH),
    "pyg, types": (of_hetero, EDGES),
    "dgl": (of_dgl, EDGES),
    "dgl, undirected": (of_dgl, BOTH),
    "networkx": (of_networkx(networkx.DiGraph), EDGES),
    "networkx, undirected": (of_networkx(networkx.Graph), EDGES),
    "networkx, parallel edges": (of_networkx(networkx.MultiDiGraph), [*EDGES, (1, 2, "9")]),
    "node-link": (of_node_link, [*EDGES, (1, 2, "9")]),
    "scipy": (of_scipy, EDGES),
    "scipy, undirected": (of_scipy, BOTH),
    "edge_index": (of_index, EDGES),
    "triples": (of_triples, EDGES),
    "rdf": (of_rdf, EDGES),
    "rdkit": (of_rdkit, EDGES),
    "ogb": (of_ogb, EDGES),
    "zinc": (of_zinc, BOTH),
}


def edges_of(made: Structure, named: bool) -> Counter[tuple[Any, ...]]:
    """The edges with their labels and attributes, between labels of nodes or, without, their numbers."""
    found: Counter[tuple[Any, ...]] = Counter()
    features = {name: np.asarray(value) for name, value in made.features.items() if name.startswith("edge_")}
    for edge, ends in enumerate(made.edges.tolist()):
        pair = [made.nodes[end] if named else end for end in ends]
        values = [(name, *value[edge].reshape(-1).tolist()) for name, value in features.items()]
        found[*(pair if made.directed else sorted(pair)), made.relation(edge), *values] += 1
    return found


ALPHABETS = {"rdkit": "CNOS", "tu": "0123", "zinc": "0123"}


@together("name", MAKERS)
def test_the_order_of_edges_changes_nothing(name: str, tmp_path: Path) -> None:
    make, rows = MAKERS[name]
    expected = EDGES if rows is BOTH else rows
    for seed in range(5):
        made = make([rows[place] for place in np.random.default_rng(seed).permutation(len(rows))], tmp_path)
        assert made.directed == (rows is not BOTH and name not in ("networkx, undirected", "rdkit"))
        labels = ALPHABETS.get(name, LABELS) if any(made.nodes) else range(4)
        assert sorted(made.nodes) == sorted(labels if any(made.nodes) else [""] * 4)
        found = edges_of(made, any(made.nodes))
        assert sum(found.values()) == len(expected)
        for s, t, label in expected:
            ends = [labels[s], labels[t]] if made.directed else sorted([labels[s], labels[t]])
            assert [count for edge, count in found.items() if list(edge[:2]) == ends and says(edge, label)] == [1]


def says(edge: tuple[Any, ...], label: str) -> bool:
    """Whether all that an edge has, its relation and its numbers, says the label."""
    _, _, relation, *values = edge
    texts = {"single": "5", "double": "6"}
    said = [texts.get(relation, relation)] if relation not in ("", "triple") else []
    return all(each == label for each in [*said, *(str(int(value)) for _, value in values)])

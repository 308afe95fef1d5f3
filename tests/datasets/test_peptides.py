from __future__ import annotations

import csv
import gzip
import itertools

import numpy as np
import pytest

from structpe.datasets import load
from structpe.errors import ReadError
from structpe.objectives.classification import Multilabel
from tests.datasets import corpus

pytest.importorskip("rdkit", reason="rdkit reads SMILES; it comes with the extra 'bench'")

TABLE = "peptide_multi_class_dataset.csv.gz"
ROWS = [
    'CC(N)C(=O)O,A,"[0, 0, 0, 0, 1, 0, 0, 0, 0, 1]"',
    'NCC(=O)O,G,"[1, 0, 0, 0, 0, 0, 0, 0, 0, 0]"',
    'C,x,"[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]"',
]


def write(folder, *rows, header="smiles,peptide_seq,labels", **split):
    with gzip.open(folder / TABLE, "wt") as file:
        file.write("\n".join([header, *rows]) + "\n")
    np.savez(folder / "splits.npz", **({"train": [2], "val": [0], "test": [1]} | split))
    return folder


def test_a_peptide_is_its_molecule(tmp_path):
    data = load("peptides-func", write(tmp_path, *ROWS))
    glycine = data.graphs[1]
    assert glycine.nodes == ("N", "C", "C", "O", "O")
    assert glycine.edges.tolist() == [[0, 1], [1, 2], [2, 3], [2, 4]]
    # Atomic number less one, and type of bond, as in OGB.
    assert glycine.features["x"][:, 0].tolist() == [6, 5, 5, 7, 7]
    assert glycine.features["edge_x"][:, 0].tolist() == [0, 0, 1, 0]
    assert (glycine.features["x"].shape, glycine.features["edge_x"].shape) == ((5, 9), (4, 3))
    assert data.targets.tolist() == [[0, 0, 0, 0, 1, 0, 0, 0, 0, 1], [1] + [0] * 9, [0] * 10]
    assert [part.tolist() for part in data.splits[0]] == [[2], [0], [1]]
    assert data.objective == Multilabel("graph", 10, "ap")


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (['C(,x,"[0]"'], {}, f"{TABLE}: line 2: the labels are '[0]'; a list of 10 numbers 0 or 1 is needed"),
        (["C,x,__import__('os')"], {}, "line 2: the labels are \"__import__('os')\"; a list of 10 numbers 0 or 1"),
        ([ROWS[2].replace("C,", "C(,")], {}, f"{TABLE}: line 2: 'C(' is not a molecule that RDKit can read"),
        ([*ROWS, "C"], {}, f"{TABLE}: line 5: the row has another number of cells than the header"),
        (ROWS, {"header": "a,b,labels"}, f"{TABLE}: there is no column 'smiles'; the file has 'a', 'b', 'labels'"),
        ([ROWS[0], 'C,x,"' + "[" * 100_000 + '"'], {}, "line 3: the labels are '[[[["),
        ([ROWS[0], 'C,x,"[' + "9" * 5000 + ']"'], {}, "line 3: the labels are '[9999"),
        (ROWS, {"val": [0.5]}, "splits.npz: the split has dtype float64; integers are needed, bring back the original"),
        (ROWS, {"val": [1]}, "splits.npz: the split does not name each of the peptides 0..2 once"),
    ],
)
def test_damage_is_named(tmp_path, rows, options, message):
    with pytest.raises(ReadError) as caught:
        load("peptides-func", write(tmp_path, *rows, **options))
    assert message in str(caught.value)


def test_a_table_that_is_cut_or_not_compressed_is_refused(tmp_path):
    write(tmp_path, *ROWS)
    whole = (tmp_path / TABLE).read_bytes()
    for content in (whole[:-9], b"smiles,labels\n"):
        (tmp_path / TABLE).write_bytes(content)
        with pytest.raises(ReadError, match=r"csv.gz: not a compressed table \(.*\); bring back the original"):
            load("peptides-func", tmp_path)


def test_the_published_table_is_read_like_ogb_reads_it(tmp_path):
    utils = pytest.importorskip("ogb.utils", reason="ogb's own features are compared")
    with gzip.open(corpus("peptides_func") / TABLE, "rt", newline="") as file:
        rows = list(itertools.islice(csv.reader(file), 41))
    with gzip.open(tmp_path / TABLE, "wt", newline="") as file:
        csv.writer(file).writerows(rows)
    np.savez(tmp_path / "splits.npz", train=range(20), val=range(20, 30), test=range(30, 40))
    data = load("peptides-func", tmp_path)
    for graph, row in zip(data.graphs, rows[1:], strict=True):
        theirs = utils.smiles2graph(row[1])
        assert np.array_equal(graph.features["x"], theirs["node_feat"])
        # OGB has each bond both ways, one after the other.
        assert np.array_equal(graph.edges, theirs["edge_index"].T[::2])
        assert np.array_equal(graph.features["edge_x"], theirs["edge_feat"][::2])

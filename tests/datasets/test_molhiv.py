"""ogbg-molhiv and MoleculeNet made from tables: a small one made here, and the real ones where they are at hand."""

from __future__ import annotations

import csv
import itertools

import numpy as np
import pytest

from structpe.data.features import Categories
from structpe.datasets import load
from structpe.datasets.molecules import scaffold_split
from structpe.datasets.ogb import _imported
from structpe.errors import ReadError
from structpe.formats import read
from structpe.formats.smiles import molecule
from structpe.objectives.classification import Binary
from tests.datasets import corpus

TABLE = "smiles,activity,HIV_active\nCCO,CI,0\nCc1ccc([B-2]2(c3ccc(C)cc3)=NCCO2)cc1,CM,1\nc1ccccc1,CI,0\nC,CI,1\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "hiv.csv").write_text(TABLE)
    for part, rows in {"train": "3\n0\n", "valid": "1\n", "test": "2"}.items():
        (tmp_path / f"hiv_scaffold_{part}.idx").write_text(rows)
    return tmp_path


def test_rows_are_molecules_with_features(folder):
    benchmark = load("molhiv-rebuilt", folder)
    assert benchmark.name == "ogbg-molhiv (rebuilt)"
    assert [graph.size for graph in benchmark.graphs] == [3, 19, 6, 1]
    assert benchmark.graphs[0].features["x"][2].tolist() == [7, 0, 2, 5, 1, 0, 2, 0, 0]
    assert benchmark.graphs[3].features["edge_x"].shape == (0, 3)
    assert benchmark.targets.tolist() == [[0], [1], [0], [1]]
    assert [part.tolist() for part in benchmark.splits[0]] == [[3, 0], [1], [2]]
    assert benchmark.nodes == Categories((119, 5, 12, 12, 10, 6, 6, 2, 2))
    assert benchmark.edges == Categories((5, 6, 2))
    assert benchmark.objective == Binary("graph", 1, "rocauc")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("hiv.csv", None, "there is no file hiv.csv in"),
        ("hiv.csv", "smiles,HIV_active\n", "hiv.csv: there is no item in the file; reader 'smiles' reads"),
        ("hiv.csv", TABLE.replace("HIV_active", "active"), "hiv.csv:1: there is no column 'HIV_active'; the table has"),
        (
            "hiv.csv",
            TABLE.replace("CI,0", "CI,yes", 1),
            "hiv.csv:1: 'yes' in column 'HIV_active' is not a finite number; correct it, or leave the cell",
        ),
        ("hiv.csv", TABLE.replace("CM,1", "CM,inf"), "hiv.csv:2: 'inf' in column 'HIV_active' is not a finite number"),
        ("hiv.csv", TABLE.replace("CM,1", "CM,1e999"), "hiv.csv:2: '1e999' in column 'HIV_active' is not a finite"),
        ("hiv.csv", TABLE.replace("CM,1", "CM,-1e39"), "hiv.csv:2: '-1e39' in column 'HIV_active' is not a finite"),
        ("hiv.csv", TABLE.replace("CM,1", "CM,NaN"), "hiv.csv:2: 'NaN' in column 'HIV_active' is not a finite"),
        ("hiv.csv", TABLE.replace("CCO", "CC(", 1), "hiv.csv: item 1: line 2: 'CC(' is not a molecule"),
        ("hiv_scaffold_valid.idx", None, "there is no file hiv_scaffold_valid.idx in"),
        (
            "hiv_scaffold_valid.idx",
            "one\n",
            "hiv_scaffold_valid.idx: line 1: 'one' is given; numbers of rows from 0..3, ",
        ),
        ("hiv_scaffold_valid.idx", "9" * 5000, "line 1: '9999"),
        ("hiv_scaffold_valid.idx", "2\n", "the three .idx files name 4 rows (3 of them different) of the 4 in hiv.csv"),
        (
            "hiv_scaffold_valid.idx",
            "",
            "hiv_scaffold_valid.idx: the file is empty; numbers of rows from 0..3, each once, are needed",
        ),
    ],
)
def test_bad_files_are_named(folder, file, content, message):
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_text(content)
    with pytest.raises(ReadError) as caught:
        load("molhiv-rebuilt", folder)
    assert message in str(caught.value)


def test_unknown_labels_and_rows_that_are_no_molecules(tmp_path):
    labels = [f"T{i}" for i in range(12)]
    rows = ["1," * 11 + ",X1,CCO", "0," * 12 + "X2,CC(", "0," * 12 + "X3,O=CO[AlH3](OC=O)OC=O"]
    (tmp_path / "tox21.csv").write_text("\n".join([",".join([*labels, "mol_id", "smiles"]), *rows]))
    benchmark = load("moleculenet-tox21", tmp_path)
    assert benchmark.targets.shape == (2, 12)
    assert np.isnan(benchmark.targets).tolist() == [[False] * 11 + [True], [False] * 12]
    assert benchmark.note.endswith("; 1 of 3 rows are skipped, as RDKit cannot read them as molecules")


@pytest.mark.parametrize("column", ["mol", "smiles"])
def test_bace_is_read_from_either_copy(tmp_path, column):
    (tmp_path / "bace.csv").write_text(f"{column},CID,Class\nCCO,BACE_1,1\nc1ccccc1,BACE_2,0\n")
    benchmark = load("moleculenet-bace", tmp_path)
    assert benchmark.targets.tolist() == [[1], [0]]
    assert [graph.size for graph in benchmark.graphs] == [3, 6]


def test_a_table_without_the_column_says_so_once_and_in_short(tmp_path):
    (tmp_path / "bace.csv").write_text(",".join(f"descriptor {i}" for i in range(590)) + "\n" + "1," * 589 + "1\n")
    with pytest.raises(ReadError) as caught:
        load("moleculenet-bace", tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / 'bace.csv'}: there is no column 'mol' or 'smiles'; the table has 'descriptor 0', 'descriptor 1', "
        "'descriptor 2', 'descriptor 3', 'descriptor 4', 'descriptor 5', 'descriptor 6', 'descriptor 7' and 582 more"
    )


def test_a_label_is_0_or_1(tmp_path):
    (tmp_path / "bace.csv").write_text("mol,Class\nCCO,1\nCC,2\n")
    with pytest.raises(ReadError, match=r"bace.csv:2: 2 in column 'Class' is not a label; give 0 or 1"):
        load("moleculenet-bace", tmp_path)


def test_the_reader_reads_what_the_benchmark_reads(folder):
    graphs = load("molhiv-rebuilt", folder).graphs
    items = read(folder / "hiv.csv", strict=False, features="ogb")
    assert [same(*pair) for pair in zip(graphs, items.structures, strict=True)] == [True] * 4
    skipped = read(folder / "hiv.csv", on_error="skip", features="ogb").skipped
    assert [place for place, _ in skipped] == [f"{folder / 'hiv.csv'}: item 2: line 3"]
    assert "give strict=False to keep it" in skipped[0].message


def test_the_real_table_goes_on_behind_item_138(tmp_path):
    lines = (corpus("molecules/moleculenet") / "hiv.csv").read_text().splitlines(keepends=True)[:201]
    (tmp_path / "hiv.csv").write_text("".join(lines))
    with pytest.raises(ReadError, match=r"item 138: line 139: .* or give strict=False to keep it with this valence"):
        read(tmp_path / "hiv.csv")
    assert len(read(tmp_path / "hiv.csv", strict=False)) == 200
    reading = read(tmp_path / "hiv.csv", on_error="skip")
    assert (len(reading), len(reading.skipped)) == (199, 1)


def same(one, other):
    return (
        one.nodes == other.nodes
        and one.relations == other.relations
        and np.array_equal(one.edges, other.edges)
        and all(np.array_equal(one.features[key], other.features[key]) for key in ("x", "edge_x"))
    )


def test_the_scaffold_rule():
    # Six of benzene, one each of cyclohexane and pyridine, two without rings. Cut at 8 and 9 of 10.
    texts = [
        "Cc1ccccc1",
        "C1CCCCC1",
        "CCO",
        "c1ccccc1",
        "Oc1ccccc1",
        "Nc1ccccc1",
        "Fc1ccccc1",
        "c1ccncc1",
        "CC",
        "Clc1ccccc1",
    ]
    train, valid, test = scaffold_split(texts)
    assert train.tolist() == [0, 2, 3, 4, 5, 6, 8, 9]
    assert (valid.tolist(), test.tolist()) == ([7], [1])


def test_real_molecules_have_the_features_of_ogb():
    pytest.importorskip("ogb", reason="ogb is not installed")
    smiles2graph = _imported("ogb.utils.mol").smiles2graph
    with (corpus("molecules/moleculenet") / "hiv.csv").open(newline="") as stream:
        texts = [row["smiles"] for row in itertools.islice(csv.DictReader(stream), 0, 20_000, 200)]
    assert len(texts) == 100
    for text in texts:
        ours, theirs = molecule(text, features="ogb"), smiles2graph(text)
        assert np.array_equal(ours.features["x"], theirs["node_feat"])
        assert np.array_equal(ours.edges.T, theirs["edge_index"][:, ::2])
        assert np.array_equal(ours.edges[:, ::-1].T, theirs["edge_index"][:, 1::2])
        assert np.array_equal(ours.features["edge_x"], theirs["edge_feat"][::2])
        assert np.array_equal(ours.features["edge_x"], theirs["edge_feat"][1::2])


def test_a_real_table_of_numbers():
    benchmark = load("moleculenet-freesolv", corpus("molecules/moleculenet/freesolv.csv").parent)
    assert len(benchmark.graphs) == 642
    assert [len(part) for part in benchmark.splits[0]] == [513, 64, 65]
    assert benchmark.objective.metric == "rmse"


def test_a_table_without_molecules(tmp_path):
    (tmp_path / "lipo.csv").write_text("smiles,exp\nCC(,1.0\n")
    with pytest.raises(ReadError, match=r"lipo.csv: no item could be read; .* skipped 1 of 1 items"):
        load("moleculenet-lipo", tmp_path)

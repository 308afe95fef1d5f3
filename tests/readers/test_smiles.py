from __future__ import annotations

import pytest

from structpe.errors import ReadError
from structpe.readers import read
from structpe.readers.smiles import molecule
from tests.corpora import SAMPLES, corpus


def test_a_molecule_is_an_undirected_graph():
    structure = molecule("C=CC#N", name="x:1")
    assert structure.nodes == ("C", "C", "C", "N")
    assert structure.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert structure.relations == ("double", "single", "triple")
    assert not structure.directed
    assert structure.order is None
    assert structure.root is None


def test_a_ring_is_aromatic_and_an_atom_alone_a_graph():
    assert molecule("c1ccccc1").relations == ("aromatic",) * 6
    assert molecule("[Ar]").edges.shape == (0, 2)
    assert molecule("CC(=O)[O-].[Na+]").nodes == ("C", "C", "O", "O", "Na")


def test_a_table_keeps_its_other_columns(write):
    (item,) = read(write("a.csv", 'name,smiles,note\nethanol,CCO," a, ""b"""\n\n'))
    assert item.metadata == {"name": "ethanol", "smiles": "CCO", "note": ' a, "b"'}
    assert (item.id, item.structure.name) == ("1", "a.csv:1")
    assert read(write("b.csv", "mol\nC\n"), column="mol")[0].structure.nodes == ("C",)


def test_a_list_has_names(write):
    items = read(write("a.smi", "CCO ethyl alcohol\n\nC\n"))
    assert [item.id for item in items] == ["ethyl alcohol", "2"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("smiles\nC\nC(C\n", "a.csv: item 2: line 3: 'C(C' is not a molecule that RDKit can read: it does not f"),
        ("smiles\nC(C)(C)(C)(C)C\n", "'C(C)(C)(C)(C)C' is not a molecule that RDKit can read: Explicit valence"),
        ("smiles,x\n,1\n", "item 1: line 2: the SMILES is empty; give one, or remove the line"),
        ("smiles,x\nC\n", "item 1: line 2: the row has 1 cells, the header 2; quote cells that hold commas"),
        ("name\nC\n", "line 1: there is no column 'smiles'; give column=, one of: 'name'"),
        ("", "a.csv: the file is empty; the first line of a CSV file names its columns"),
        ('"smiles\nC\n', "a.csv: line 1: not CSV: unexpected end of data; check the quotes"),
        ('smiles\nC\n"C"x\n', "line 3: not CSV: ',' expected after '\"'; check the quotes"),
    ],
)
def test_a_bad_row_is_named(write, content, message, capfd):
    with pytest.raises(ReadError) as caught:
        read(write("a.csv", content))
    assert message in str(caught.value)
    assert capfd.readouterr().err == ""


def test_the_sample_has_what_its_card_says():
    items = read(SAMPLES / "molecules_sample" / "molecules.csv")
    assert ("Ar",) in [item.structure.nodes for item in items]


def test_real_molecules():
    assert len(read(corpus("molecules/moleculenet/esol.csv"))) == 1128
    reading = read(corpus("molecules/moleculenet/bbbp.csv"), on_error="skip")
    assert reading.report().startswith("skipped 11 of 2050 items:")

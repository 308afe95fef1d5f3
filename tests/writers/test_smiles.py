"""SMILES: what is written is what was read, in RDKit's canonical form."""

from __future__ import annotations

from pathlib import Path

import pytest

import structpe
from structpe import StructPEError
from structpe.formats import Item, as_text
from structpe.formats.smiles import molecule
from tests.datasets import SAMPLES

Chem = pytest.importorskip("rdkit.Chem")


def test_the_sample_there_and_back(tmp_path: Path) -> None:
    items = structpe.read(SAMPLES / "molecules_sample" / "molecules.csv", features="ogb")
    file = tmp_path / "all.smi"
    assert structpe.write(items, file) == len(items)
    back = structpe.read(file, features="ogb")
    for one, other in zip(items, back, strict=True):
        assert one.id == other.id
        isotopes = [atom.GetIsotope() for atom in Chem.MolFromSmiles(one.metadata["smiles"]).GetAtoms()]
        if not any(isotopes):
            assert as_text(one, "smiles") == as_text(other, "smiles")
            assert other.metadata["smiles"] == Chem.CanonSmiles(one.metadata["smiles"])


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    assert as_text(molecule("C(O)C"), "smiles", neutral=True) == "CCO\n"
    with pytest.raises(StructPEError, match=r"^item 1: there is no feature 'x', so charges"):
        structpe.write([molecule("CC")], tmp_path / "a.smi")
    with pytest.raises(StructPEError, match=r"the id 'a\\nb' contains a line end; give another"):
        as_text(Item(molecule("CC"), id="a\nb"), "smiles", neutral=True)

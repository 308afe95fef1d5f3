"""RDKit: molecules there and back, and what is lost."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from structpe import StructPEError, Structure, as_structure, convert
from structpe.formats.smiles import ATOM_CATEGORIES, SYMBOLS, molecule
from tests.datasets import SAMPLES, corpus
from tests.representatives import only
from tests.same import assert_same
from tests.together import together

Chem: Any = pytest.importorskip("rdkit.Chem")


def canonical(mol: Any) -> str:
    """The SMILES, without isotopes; of what is written once more, as RDKit has several for some stereo in rings."""
    for atom in mol.GetAtoms():
        atom.SetIsotope(0)
    return str(Chem.MolToSmiles(Chem.MolFromSmiles(Chem.MolToSmiles(mol))))


def molecules(path: Any, every: int = 1) -> Iterator[str]:
    """The SMILES of a file that RDKit can read."""
    with path.open(newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            if number % every == 0:
                yield row["smiles"]


def assert_comes_back(text: str) -> None:
    if (mol := Chem.MolFromSmiles(text)) is None:
        return
    structure = as_structure(mol, features="ogb")
    back = convert(structure, "rdkit")
    assert canonical(back) == canonical(mol)
    assert_same(structure, as_structure(back, features="ogb"))


def test_the_sample_comes_back() -> None:
    for text in molecules(SAMPLES / "molecules_sample" / "molecules.csv"):
        assert_comes_back(text)


@pytest.mark.parametrize(
    "name", only(("esol", "freesolv", "bbbp", "clintox", "sider", "tox21", "hiv"), "esol", "freesolv")
)
def test_molecules_of_data_sets_come_back(name: str) -> None:
    # All of them were tried: 22,822 molecules, every fifth of hiv.
    for text in molecules(corpus(f"molecules/moleculenet/{name}.csv"), {"hiv": 401, "tox21": 41}.get(name, 17)):
        assert_comes_back(text)


@together(
    "text",
    [
        r"C[C@@H]1[C@H](O)\C=C/C=C/C=C\C=C/C=C\C(=O)O1",  # stereo in a large ring
        r"CO/N=C(\C(=O)N[C@H]1C(=O)N2C1C2)c1csc(N)n1.[Na+]",
        r"C/C=C(/C=C/C)\C=C\C",  # of bonds that rank by the stereo of others
        "[NH3+]C[C@H]1CC[C@H](C(=O)[O-])CC1",
        "[CH3].[CH2]",
        "*C",
        "F[P-](F)(F)(F)(F)F",
        "N->[Cu]",
        "[H][H]",
        "c1cc[nH]c1",
    ],
)
def test_what_is_rare_comes_back(text: str) -> None:
    assert_comes_back(text)


def test_isotopes_and_map_numbers_are_lost() -> None:
    assert Chem.MolToSmiles(convert(molecule("[13CH4:1]", features="ogb"), "rdkit")) == "C"


def test_without_features_on_demand() -> None:
    acetate = molecule("CC(=O)[O-]", name="acetate")
    with pytest.raises(
        StructPEError, match=r"^acetate: there is no feature 'x', so charges, hydrogens and stereo are no"
    ):
        convert(acetate, "rdkit")
    assert Chem.MolToSmiles(convert(acetate, "rdkit", neutral=True)) == "CC(=O)O"
    assert Chem.MolToSmiles(convert(molecule("c1ccncc1"), "rdkit", neutral=True)) == "c1ccncc1"
    with pytest.raises(StructPEError, match=r"this is not a molecule: Explicit valence for atom # 1 N, 4, is greater"):
        convert(molecule("C[N+](C)(C)C"), "rdkit", neutral=True)


def test_names_and_conformers() -> None:
    mol = Chem.MolFromMolBlock(
        "water\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n    1.0000    2.0000    3.0000 O   0  0\nM  END\n"
    )
    structure = as_structure(mol)
    assert structure.name == "water"
    np.testing.assert_array_equal(structure.features["pos"], [[1, 2, 3]])
    back = convert(structure, "rdkit", neutral=True)
    assert back.GetProp("_Name") == "water"
    np.testing.assert_array_equal(back.GetConformer().GetPositions(), [[1, 2, 3]])
    assert "pos" not in as_structure(mol, conformer=None).features
    assert "pos" not in as_structure(Chem.MolFromSmiles("O")).features
    mol.AddConformer(Chem.Conformer(1), assignId=True)
    with pytest.raises(StructPEError, match=r"the molecule has 2 conformers, .* give conformer= one of 0, 1, or None"):
        as_structure(mol)
    np.testing.assert_array_equal(as_structure(mol, conformer=1).features["pos"], [[0, 0, 0]])
    mol.RemoveConformer(1)
    with pytest.raises(StructPEError, match="the molecule has no conformer 3; it has: 0"):
        as_structure(mol, conformer=3)


def changed(key: str, row: int, column: int, value: int) -> Structure:
    """Ethanol with another number among its features."""
    ethanol = molecule("CCO", features="ogb")
    table = np.array(ethanol.features[key])
    table[row, column] = value
    return replace(ethanol, features={**ethanol.features, key: table})


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        (changed("x", 0, 0, 7), "node 0 is labelled 'C', but by feature 'x' it is 'O'"),
        (changed("x", 2, 3, 11), r"the charge of node 2 \('O'\) is not among OGB's categories, so not known"),
        (changed("x", 1, 1, 3), r"the chirality of node 1 \('C'\) is not among OGB's categories, so not known"),
        (changed("x", 0, 4, 90), "feature 'x' has values outside of OGB's categories"),
        (changed("x", 1, 4, 7), "this is not a molecule: Explicit valence for atom # 1 C, 9"),
        (changed("edge_x", 0, 1, 1), "edge 0, 0 - 1, has stereo by feature 'edge_x', but an end has no"),
        (Structure(("C", "Q"), []), "there is no feature 'x'"),
    ],
)
def test_what_contradicts_itself_is_named(structure: Structure, message: str) -> None:
    with pytest.raises(StructPEError, match=message):
        convert(structure, "rdkit")


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        (Structure(("C", "Q"), []), "the label of node 1 is 'Q', which is not the symbol of an element"),
        (Structure(("C", "C"), [[0, 1]]), "the relation of edge 0 is ''; types of bonds are single, double"),
        (Structure(("C", "C"), [[0, 1], [1, 0]], ("single",) * 2), "edge 1, 1 - 0, is a second bond between the same"),
        (Structure(("C", "C"), [[0, 1]], ("other",)), "this is not a molecule, RDKit fails with 'Incomplete Code"),
        (Structure(("C",), [[0, 0]], ("single",)), "edge 0, 0 - 0, is a bond of an atom with itself"),
    ],
)
def test_what_is_no_molecule_is_named(structure: Structure, message: str) -> None:
    with pytest.raises(StructPEError, match=message):
        convert(structure, "rdkit", neutral=True)


def test_an_atom_of_no_element_is_named() -> None:
    with pytest.raises(StructPEError, match="there is no element of number 200; correct the molecule"):
        as_structure(Chem.MolFromSmiles("C[#200]", sanitize=False))


def test_features_drawn_at_random_make_a_molecule_or_a_named_error() -> None:
    drawn, made = np.random.default_rng(0), 0
    for _ in range(300):
        symbols = drawn.choice([5, 6, 7, 8, 14, 15], drawn.integers(1, 6))
        x = np.stack([drawn.integers(0, min(size, 7), len(symbols)) for size in ATOM_CATEGORIES], axis=1)
        x[:, 0], x[:, 3] = symbols, 5 + drawn.integers(-1, 2, len(symbols))
        edges = [(i, j) for i in range(len(symbols)) for j in range(i) if drawn.random() < 0.5]
        features = {"x": x, "edge_x": drawn.integers(0, 2, (len(edges), 3))}
        bonds = tuple(map(str, drawn.choice(["single", "double", "aromatic"], len(edges))))
        labels = tuple(SYMBOLS[number] for number in symbols)
        structure = Structure(labels, np.array(edges).reshape(-1, 2), bonds, directed=False, features=features)
        with contextlib.suppress(StructPEError):
            made += convert(structure, "rdkit", strict=False).GetNumAtoms() == len(symbols)
    assert made


def test_molecules_that_are_not_sanitized() -> None:
    with pytest.raises(StructPEError, match=r"the molecule is not sanitized; call Chem\.SanitizeMol"):
        as_structure(Chem.MolFromSmiles("CCO", sanitize=False), features="ogb")
    with pytest.raises(StructPEError, match="the graph has no node"):
        as_structure(Chem.MolFromSmiles(""))


def test_bonds_have_no_direction() -> None:
    pair = Structure(("C", "O"), np.array([[0, 1]]), ("single",))
    with pytest.raises(StructPEError, match="the edges are directed, and bonds have no direction; give Structure"):
        convert(pair, "rdkit", neutral=True)
    assert Chem.MolToSmiles(convert(replace(pair, directed=False), "rdkit", neutral=True)) == "CO"

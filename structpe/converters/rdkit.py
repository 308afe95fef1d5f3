"""RDKit: molecules as undirected graphs and back, as with the reader ``smiles``.

With ``features="ogb"`` the inverse has the same canonical SMILES, including hydrogens, charges, radicals and stereo.
OGB's features lack isotopes, atom map numbers and conformers, which are lost (``conformer=`` reads coordinates as the
feature ``pos``). They also lack charges beyond 5, more than 8 hydrogens or 4 radical electrons, and other stereo than
tetrahedral and cis/trans, for which the inverse raises an error. Without features the inverse needs ``neutral=True``:
no charges and stereo, and the hydrogens of the valence.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from structpe.converters.base import ConversionError, add_converter
from structpe.errors import StructureError, listed
from structpe.readers._molecules import as_molecule
from structpe.readers.smiles import Kind, of_molecule
from structpe.structure import Structure

__all__ = ["from_rdkit", "to_rdkit"]


def from_rdkit(mol: Any, features: Kind = "none", conformer: int | None = None) -> Structure:
    """The structure of an ``rdkit.Chem.Mol``: a node per atom, labelled by its symbol, an edge per bond.

    Args:
        mol: a molecule; its name (property ``_Name``) becomes that of the structure.
        features: ``ogb`` adds the features of the Open Graph Benchmark, ``x`` (n, 9) and ``edge_x`` (e, 3).
        conformer: number of the conformer whose coordinates, in angstroms, are the feature ``pos`` (n, 3); None: none.

    Raises:
        ConversionError: there is no such conformer.
        ReadError: the molecule is not sanitized, which features need.
        StructureError: it has no atom.
    """
    name = mol.GetProp("_Name") if mol.HasProp("_Name") else ""
    structure = of_molecule(mol, name, features)
    if conformer is None:
        return structure
    known = [each.GetId() for each in mol.GetConformers()]
    if conformer not in known:
        has = listed(known) if known else "none; AllChem.EmbedMolecule(mol) of RDKit makes one"
        raise ConversionError(f"the molecule has no conformer {conformer}; it has: {has}")
    places = np.array(mol.GetConformer(conformer).GetPositions(), dtype=np.float64)
    return replace(structure, features={**structure.features, "pos": places})


def to_rdkit(structure: Structure, neutral: bool = False, strict: bool = True) -> Any:
    """The structure as an ``rdkit.Chem.Mol``, sanitized.

    Args:
        structure: undirected; labels are symbols of elements, relations types of bonds such as ``double``.
        neutral: whether atoms of a structure without OGB's features are neutral and without stereo.
        strict: whether a valence that RDKit does not permit raises an error.

    Raises:
        ConversionError: it is not a molecule, or lacks required features; see ``structpe/readers/_molecules.py``.
    """
    try:
        mol = as_molecule(structure, neutral, strict)
    except StructureError as error:
        raise ConversionError(error.message).at(*error.places) from None
    if structure.name:
        mol.SetProp("_Name", structure.name)
    return mol


add_converter("rdkit", "rdkit.Mol", "molecules, and back", from_rdkit, to_rdkit)

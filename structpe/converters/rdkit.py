"""RDKit: molecules as undirected graphs and back, as with the reader ``smiles``.

With ``features="ogb"`` the inverse has the same canonical SMILES, including hydrogens, charges, radicals and stereo.
OGB's features lack isotopes and atom map numbers, which are lost; the coordinates of a conformer are the feature
``pos``. OGB's features also lack charges beyond 5, more than 8 hydrogens or 4 radical electrons, and other stereo than
tetrahedral and cis/trans, for which the inverse raises an error. Without features the inverse needs ``neutral=True``:
no charges and stereo, and the hydrogens of the valence. Order, root, units and other features are lost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from structpe.converters.base import ConversionError, add_converter
from structpe.errors import StructureError, listed
from structpe.readers._molecules import as_molecule
from structpe.readers.smiles import Kind, of_molecule
from structpe.structure import Structure

__all__ = ["from_rdkit", "to_rdkit"]


def from_rdkit(mol: Any, features: Kind = "none", conformer: int | Literal["only"] | None = "only") -> Structure:
    """The structure of an ``rdkit.Chem.Mol``: a node per atom, labelled by its symbol, an edge per bond.

    Args:
        mol: a molecule; its name (property ``_Name``) becomes that of the structure.
        features: ``ogb`` adds the features of the Open Graph Benchmark, ``x`` (n, 9) and ``edge_x`` (e, 3).
        conformer: number of the conformer whose coordinates, in angstroms, are the feature ``pos`` (n, 3); ``only``:
            the only one, if there is one; None: none.

    Raises:
        ConversionError: there is no such conformer, or there are several and ``conformer`` does not say which.
        ReadError: the molecule is not sanitized, which features need.
        StructureError: it has no atom.
    """
    name = mol.GetProp("_Name") if mol.HasProp("_Name") else ""
    structure = of_molecule(mol, name, features)
    known = [each.GetId() for each in mol.GetConformers()]
    if conformer is None or (conformer == "only" and not known):
        return structure
    if conformer == "only":
        conformer = known[0]
        if len(known) > 1:
            raise ConversionError(
                f"the molecule has {len(known)} conformers, a structure has place for the coordinates of one; give "
                f"conformer= one of {listed(known)}, or None for none"
            )
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
    if (places := np.asarray(structure.features.get("pos", ()))).shape == (structure.size, 3):
        _add_conformer(mol, places.astype(np.float64))
    if structure.name:
        mol.SetProp("_Name", structure.name)
    return mol


def _add_conformer(mol: Any, places: NDArray[np.float64]) -> None:
    from rdkit import Chem

    conformer = Chem.Conformer(len(places))
    for atom, place in enumerate(places.tolist()):
        conformer.SetAtomPosition(atom, place)
    mol.AddConformer(conformer)


add_converter("rdkit", "rdkit.Mol", "molecules, and back", from_rdkit, to_rdkit)

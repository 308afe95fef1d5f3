"""SMILES: molecules as canonical texts, one per line."""

from __future__ import annotations

from structpe.errors import StructureError
from structpe.readers._molecules import as_molecule
from structpe.readers.base import Item
from structpe.writers.base import WriteError, writer

__all__ = ["smiles"]


@writer("smiles", ".smi .smiles")
def smiles(item: Item, neutral: bool = False, strict: bool = True) -> str:
    """A canonical SMILES by RDKit, and after a space the id of the item, one molecule per line.

    Args:
        item: a molecule from the reader ``smiles`` with ``features="ogb"``, which contain charges, hydrogens and
            stereo. Isotopes and atom map numbers are lost.
        neutral: whether atoms of a structure without features are neutral and without stereo.
        strict: whether a valence that RDKit does not permit raises an error.

    Raises:
        WriteError: the structure is not a molecule or lacks the features, or the id contains a line end.
    """
    try:
        molecule = as_molecule(item.structure, neutral, strict)
    except StructureError as error:
        raise WriteError(error.message).at(*error.places) from None
    if item.id.splitlines() not in ([], [item.id]):
        raise WriteError(f"the id {item.id!r} holds an end of line; give another")
    from rdkit import Chem

    return f"{Chem.MolToSmiles(molecule)} {item.id}".rstrip() + "\n"

"""Molecules of RDKit from structures: from symbols, bonds and OGB's features, without guessing."""

from __future__ import annotations

from typing import Any

import numpy as np

from structpe.errors import needing
from structpe.readers._ogb_features import ATOM_CATEGORIES, BOND_CATEGORIES, SYMBOLS
from structpe.readers._text import shown
from structpe.structure import Ids, Structure

__all__ = ["as_molecule", "ring_bonds", "too_large"]

ATOMS, RINGS = 3_000, 500
"""The largest molecule: RDKit takes a second for many rings, time grows with the cube, and no signal is heard in it."""
UNKNOWN = {1: (3, "chirality"), 3: (11, "charge"), 4: (9, "number of hydrogens"), 5: (5, "number of radical electrons")}
"""Per column of atoms, the first category that means 'something else' and cannot be converted. The chirality
``CHI_OTHER`` can end the process within RDKit."""
CHIRALITY = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW")
STEREO = ("STEREONONE", "STEREOZ", "STEREOE", "STEREOCIS", "STEREOTRANS", "STEREOANY")
SIDES = {"STEREOZ": "STEREOCIS", "STEREOE": "STEREOTRANS", "STEREOCIS": "STEREOCIS", "STEREOTRANS": "STEREOTRANS"}
BONDS = ("single", "double", "triple", "aromatic")


def too_large(atoms: int, rings: int) -> str:
    """What is wrong with a molecule of so many atoms, and bonds that close rings; empty if nothing."""
    for count, most, what in ((atoms, ATOMS, "atoms"), (rings, RINGS, "bonds that close rings")):
        if count > most:
            return f"has {count} {what}; a molecule has {most} at most, leave it out"
    return ""


def ring_bonds(structure: Structure) -> int:
    """Edges that close rings: those that are in no tree of each connected part."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, edges = structure.size, structure.edges
    parts, _ = connected_components(coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n)), False)
    return len(edges) - n + int(parts)


def as_molecule(structure: Structure, neutral: bool = False, strict: bool = True) -> Any:
    """The molecule of a structure, as from the reader ``smiles``: atoms by labels, bonds by relations.

    Hydrogens, charges, radicals and stereo are those of the features ``x`` and ``edge_x`` (``features="ogb"``). These
    lack isotopes, atom map numbers and conformers, and so does the molecule.

    Args:
        structure: undirected; labels are symbols, ``*`` for any atom, relations are types of bonds.
        neutral: True ignores features: atoms are neutral, without stereo, and have the hydrogens of their valence.
            False raises an error if features are missing.
        strict: whether a valence that RDKit does not permit raises an error.

    Raises:
        StructureError: edges are directed, there are more than 3,000 atoms or 500 rings, a label is not a symbol, a
            relation not a type of bond, two bonds join the same atoms, features are missing, contradict the labels or
            mean 'something else', or the valences are invalid.
    """
    with needing("rdkit", "mol"):
        from rdkit import Chem, rdBase
    if wrong := too_large(structure.size, ring_bonds(structure)):
        raise structure.error(f"this structure {wrong}")
    atoms, bonds = (None, None) if neutral else _features(structure)
    draft: Any = Chem.RWMol()
    for node, symbol in enumerate(structure.nodes):
        draft.AddAtom(_atom(structure, node, symbol, None if atoms is None else atoms[node].tolist()))
    for edge, (source, target) in enumerate(structure.edges.tolist()):
        _bond(structure, draft, edge, source, target)
    quiet = rdBase.BlockLogs()
    try:
        draft.UpdatePropertyCache(strict=False)
        Chem.SanitizeMol(draft, Chem.SANITIZE_ALL if strict else Chem.SANITIZE_ALL ^ Chem.SANITIZE_PROPERTIES)
        if bonds is not None:
            _set_stereo(structure, draft, bonds[:, 1])
        Chem.AssignStereochemistry(draft, cleanIt=True, force=True)
    except ValueError as error:  # including RDKit's own errors about molecules
        raise structure.error(f"this is no molecule: {str(error).strip()}; correct it, or give strict=False") from None
    except (RuntimeError, KeyError) as error:  # if a check inside RDKit fails, or a rank has not been computed
        reason = shown(" ".join(str(error).split()))
        raise structure.error(f"this is no molecule, RDKit fails with {reason}; correct it") from None
    finally:
        del quiet
    if structure.directed:
        raise structure.error("the edges are directed, and bonds have no direction; give Structure(directed=False)")
    return draft.GetMol()


def _features(structure: Structure) -> tuple[Ids, Ids]:
    found = []
    for key, sizes, rows in (("x", ATOM_CATEGORIES, structure.size), ("edge_x", BOND_CATEGORIES, len(structure.edges))):
        if key not in structure.features:
            raise structure.error(
                f"there is no feature {key!r}, so charges, hydrogens and stereo are not known; read the molecule with "
                "features='ogb', or give neutral=True to take atoms as neutral and without stereo"
            )
        values = np.asarray(structure.features[key])
        if values.shape != (rows, len(sizes)) or values.dtype.kind not in "iu":
            raise structure.error(
                f"feature {key!r} has shape {values.shape} and dtype {values.dtype}; OGB's are integers of shape "
                f"({rows}, {len(sizes)}), give those, or neutral=True"
            )
        if ((values < 0) | (values >= np.array(sizes))).any():
            raise structure.error(f"feature {key!r} has values outside of OGB's categories, of which there are {sizes}")
        found.append(values)
    return found[0], found[1]


def _atom(structure: Structure, node: int, symbol: str, row: list[int] | None) -> Any:
    from rdkit import Chem

    if symbol not in SYMBOLS:
        raise structure.error(f"the label of node {node} is {symbol!r}, which is not the symbol of an element")
    number = SYMBOLS.index(symbol)
    atom: Any = Chem.Atom(0 if symbol == "*" else number + 1)
    if row is None:
        return atom
    if row[0] != number:
        raise structure.error(f"node {node} is labelled {symbol!r}, but by feature 'x' it is {SYMBOLS[row[0]]!r}")
    for column, (unknown, what) in UNKNOWN.items():
        if row[column] >= unknown:
            raise structure.error(f"the {what} of node {node} ({symbol!r}) is not among OGB's categories, so not known")
    atom.SetChiralTag(Chem.ChiralType.names[CHIRALITY[row[1]]])
    atom.SetFormalCharge(row[3] - 5)
    atom.SetNumExplicitHs(row[4])
    atom.SetNoImplicit(True)
    atom.SetNumRadicalElectrons(row[5])
    atom.SetIsAromatic(bool(row[7]))
    return atom


def _bond(structure: Structure, draft: Any, edge: int, source: int, target: int) -> None:
    from rdkit import Chem

    given = structure.relation(edge)
    kind = Chem.BondType.names.get(given.upper())
    if kind is None or given != given.lower():
        raise structure.error(f"the relation of edge {edge} is {given!r}; types of bonds are {', '.join(BONDS)}, ...")
    if source == target or draft.GetBondBetweenAtoms(source, target) is not None:
        what = "a bond of an atom with itself" if source == target else "a second bond between the same atoms"
        raise structure.error(f"edge {edge}, {source} - {target}, is {what}; a molecule has none, remove it")
    draft.AddBond(source, target, kind)
    if given == "aromatic":
        draft.GetBondBetweenAtoms(source, target).SetIsAromatic(True)
        for atom in (source, target):
            draft.GetAtomWithIdx(atom).SetIsAromatic(True)


def _set_stereo(structure: Structure, draft: Any, stereo: Ids) -> None:
    """Set the stereo of double bonds: Z and E are the sides of the neighbours of highest rank (CIP).

    Ranks may depend on the stereo of other bonds, so this is repeated until nothing changes.
    """
    from rdkit import Chem

    for edge, kind in enumerate(stereo.tolist()):
        if STEREO[kind] == "STEREOANY":
            draft.GetBondWithIdx(edge).SetStereo(Chem.BondStereo.STEREOANY)
    waiting = [edge for edge, kind in enumerate(stereo.tolist()) if STEREO[kind] in SIDES]
    while waiting:
        Chem.AssignStereochemistry(draft, cleanIt=False, force=True, flagPossibleStereoCenters=True)
        ready = {edge: ends for edge in waiting if (ends := _highest(draft.GetBondWithIdx(edge))) is not None}
        for edge, ends in ready.items():
            draft.GetBondWithIdx(edge).SetStereoAtoms(*ends)
            draft.GetBondWithIdx(edge).SetStereo(Chem.BondStereo.names[SIDES[STEREO[int(stereo[edge])]]])
        if not ready:
            source, target = structure.edges[waiting[0]]
            raise structure.error(
                f"edge {waiting[0]}, {source} - {target}, has stereo by feature 'edge_x', but an end of it has no "
                "neighbour of highest rank, which stereo needs"
            )
        waiting = [edge for edge in waiting if edge not in ready]
    Chem.SetDoubleBondNeighborDirections(draft)  # from which RDKit reads stereo again, as it does from SMILES


def _highest(bond: Any) -> tuple[int, int] | None:
    """The neighbour of highest rank at each end; None if an end has none."""
    ends = bond.GetBeginAtom(), bond.GetEndAtom()
    found = []
    for end, other in (ends, ends[::-1]):
        ranks = sorted(
            (int(a.GetProp("_CIPRank")), a.GetIdx()) for a in end.GetNeighbors() if a.GetIdx() != other.GetIdx()
        )
        if not ranks or (len(ranks) > 1 and ranks[-1][0] == ranks[-2][0]):
            return None
        found.append(ranks[-1][1])
    return found[0], found[1]

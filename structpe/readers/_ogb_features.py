"""Features of atoms and bonds as in the Open Graph Benchmark (Hu et al. 2020), from RDKit only.

The columns of an atom: atomic number, chirality, degree with hydrogens, formal charge, hydrogens, radical electrons,
hybridization, whether aromatic, whether in a ring. Those of a bond: type, stereo, whether conjugated. Numbers and names
have a last category for anything else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from structpe.errors import ReadError
from structpe.structure import Ids

__all__ = ["ATOM_CATEGORIES", "BOND_CATEGORIES", "SYMBOLS", "atom_features", "bond_features"]

ATOM_CATEGORIES = (119, 5, 12, 12, 10, 6, 6, 2, 2)
"""Number of categories of each column of an atom."""

BOND_CATEGORIES = (5, 6, 2)
"""Number of categories of each column of a bond."""

TABLE = (
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr "
    "Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu "
    "Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr "
    "Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og *"
)
SYMBOLS = tuple(TABLE.split())
"""Symbol of each category of the first column of an atom."""

CHIRALITY = {"CHI_UNSPECIFIED": 0, "CHI_TETRAHEDRAL_CW": 1, "CHI_TETRAHEDRAL_CCW": 2, "CHI_OTHER": 3}
HYBRIDIZATION = {"SP": 0, "SP2": 1, "SP3": 2, "SP3D": 3, "SP3D2": 4}
BONDS = {"SINGLE": 0, "DOUBLE": 1, "TRIPLE": 2, "AROMATIC": 3}
STEREO = {"STEREONONE": 0, "STEREOZ": 1, "STEREOE": 2, "STEREOCIS": 3, "STEREOTRANS": 4, "STEREOANY": 5}


def atom_features(atoms: Iterable[Any]) -> Ids:
    """(n, 9) categories of the atoms of an RDKit molecule."""
    return np.array([_atom(atom) for atom in atoms], dtype=np.int64).reshape(-1, len(ATOM_CATEGORIES))


def bond_features(bonds: Iterable[Any]) -> Ids:
    """(e, 3) categories of the bonds of an RDKit molecule.

    Raises:
        ReadError: a bond has a stereo without a category in OGB (an atropisomer).
    """
    return np.array([_bond(bond) for bond in bonds], dtype=np.int64).reshape(-1, len(BOND_CATEGORIES))


def _atom(atom: Any) -> tuple[int, ...]:
    return (
        _within(atom.GetAtomicNum(), 1, 118),
        CHIRALITY.get(atom.GetChiralTag().name, 4),
        _within(atom.GetTotalDegree(), 0, 10),
        _within(atom.GetFormalCharge(), -5, 5),
        _within(atom.GetTotalNumHs(), 0, 8),
        _within(atom.GetNumRadicalElectrons(), 0, 4),
        HYBRIDIZATION.get(atom.GetHybridization().name, 5),
        int(atom.GetIsAromatic()),
        int(atom.IsInRing()),
    )


def _bond(bond: Any) -> tuple[int, ...]:
    stereo = bond.GetStereo().name
    if stereo not in STEREO:
        raise ReadError(f"a bond has the stereo {stereo}, which is not among OGB's categories: {', '.join(STEREO)}")
    return BONDS.get(bond.GetBondType().name, 4), STEREO[stereo], int(bond.GetIsConjugated())


def _within(number: int, low: int, high: int) -> int:
    """The index of a number in low..high; one past the last for any other number."""
    return number - low if low <= number <= high else high - low + 1

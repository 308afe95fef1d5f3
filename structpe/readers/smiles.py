"""SMILES: molecules as undirected graphs of atoms and bonds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from structpe.errors import ReadError, listed, needing
from structpe.readers._csv import rows
from structpe.readers._molecules import too_large
from structpe.readers._ogb_features import ATOM_CATEGORIES, BOND_CATEGORIES, SYMBOLS, atom_features, bond_features
from structpe.readers._text import cut_off, ended_lines, shown
from structpe.readers.base import Item, Yielded, attempt, reader
from structpe.structure import Ids, Structure

__all__ = ["ATOM_CATEGORIES", "BOND_CATEGORIES", "SYMBOLS", "molecule", "of_molecule", "parsed", "smiles"]

Kind = Literal["none", "ogb"]
Made = Callable[[str, str], Structure]
LONGEST = 30_000
"""Characters of a SMILES, before anything looks at them."""
ATOM = re.compile(r"\[[^][]*]|Br?|Cl?|[NOPSFIbcnops*]")
BRACKETS = re.compile(r"\[[^][]*]")
CLOSURE = re.compile(r"%\([0-9]{1,5}\)|%[0-9]{2}|[0-9]")
LARGE = re.compile(r"[H+-][0-9]{3}")
"""An impossible number of hydrogens or charge of an atom: RDKit keeps them in a byte, so 260 would become 4."""
KEEP = "give strict=False to keep it with this valence, or on_error='skip' to skip it"


def molecule(smiles: str, name: str = "", features: Kind = "none", strict: bool = True) -> Structure:
    """A molecule: a node per heavy atom, labelled by its symbol, an undirected edge per bond, labelled by its type.

    Bond types are ``single``, ``double``, ``triple`` and ``aromatic`` (and RDKit's rarer ones). Hydrogens are implicit,
    unless the SMILES writes them as separate atoms. There is no reading order and no root.

    Args:
        smiles: the text.
        name: where it comes from, for error messages.
        features: ``ogb`` adds the features of the Open Graph Benchmark: ``x`` (n, 9) and ``edge_x`` (e, 3), integers
            of :data:`ATOM_CATEGORIES` and :data:`BOND_CATEGORIES`.
        strict: whether a valence that RDKit does not permit raises an error; see :func:`parsed`.

    Raises:
        ReadError: the text is not SMILES, a valence is invalid, or ``features`` is unknown.
    """
    _check(features)
    return of_molecule(parsed(smiles, strict), name, features)


def of_molecule(found: Any, name: str = "", features: Kind = "none") -> Structure:
    """The structure of a molecule of RDKit, as in :func:`molecule`.

    Args:
        found: a sanitized ``rdkit.Chem.Mol``; atoms keep their numbers, explicit hydrogens are nodes.
        name: where it comes from, for error messages.
        features: as in :func:`molecule`.

    Raises:
        ReadError: ``features`` is unknown, or needs a sanitized molecule, or an atom is not an element.
    """
    _check(features)
    # Once, as RDKit makes new objects each time; and by number, as its own iterators count them anew for each.
    atoms = [found.GetAtomWithIdx(number) for number in range(found.GetNumAtoms())]
    bonds = [found.GetBondWithIdx(number) for number in range(found.GetNumBonds())]
    try:
        symbols = tuple(atom.GetSymbol() for atom in atoms)
    except RuntimeError:  # RDKit's
        numbers = listed(atom.GetAtomicNum() for atom in atoms if atom.GetAtomicNum() >= len(SYMBOLS))
        raise ReadError(f"there is no element of number {numbers}; correct the molecule") from None
    return Structure(
        symbols,
        np.array([(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds], dtype=np.int64).reshape(-1, 2),
        tuple(bond.GetBondType().name.lower() for bond in bonds),
        directed=False,
        features=_features(atoms, bonds) if features == "ogb" else {},
        name=name,
    )


def _check(features: str) -> None:
    if features not in ("none", "ogb"):
        raise ReadError(f"there are no features {features!r} of molecules; known: 'none', 'ogb'")


def _features(atoms: list[Any], bonds: list[Any]) -> dict[str, Ids]:
    try:
        return {"x": atom_features(atoms), "edge_x": bond_features(bonds)}
    except RuntimeError:  # from RDKit, for missing properties
        raise ReadError("the molecule is not sanitized; call Chem.SanitizeMol of RDKit on it first") from None


@reader("smiles", ".csv .smi .smiles", apart=True)
def smiles(path: Path, column: str = "smiles", features: Kind = "none", strict: bool = True) -> Iterator[Yielded]:
    """SMILES: a column of a CSV file with a header; in other files a SMILES per line, and after a space its name.

    The other columns become ``metadata``, and so does the SMILES.

    Args:
        path: a CSV file, with the suffix ``.csv``, or a list.
        column: the column of the CSV file with the SMILES.
        features: features of atoms and bonds, as in :func:`molecule`.
        strict: whether a valence that RDKit does not permit raises an error, as in :func:`molecule`.
    """
    made = partial(molecule, features=features, strict=strict)
    return _table(path, column, made) if path.suffix == ".csv" else _list(path, made)


def _table(path: Path, column: str, made: Made) -> Iterator[Yielded]:
    found = rows(path)
    _, header = next(found)
    if column not in header:
        known = listed(map(shown, header))
        raise ReadError(f"there is no column {shown(column)}; give column=, one of: {known}").at("line 1")
    for number, (line, row) in enumerate(found, 1):
        yield attempt(partial(_row, header, row, column, number, path.name, made), line=line)


def _list(path: Path, made: Made) -> Iterator[Yielded]:
    named = True  # every line so far
    for number, (line, text, ended) in enumerate((each for each in ended_lines(path) if each[1].strip()), 1):
        smiles, name = (*text.strip().split(None, 1), "")[:2]
        lacks = "it has no name, and all lines before have one" if named and number > 1 and not name else ""
        if not ended and (cut := cut_off(text, line, lacks)) is not None:
            yield cut
            return
        named = named and bool(name)
        yield attempt(partial(_item, smiles, name or str(number), {}, path.name, made), name, line)


def _row(header: list[str], row: list[str], column: str, number: int, file: str, made: Made) -> Item:
    if len(row) != len(header):
        raise ReadError(f"the row has {len(row)} cells, the header {len(header)}; quote cells with commas")
    cells = dict(zip(header, row, strict=True))
    return _item(cells[column].strip(), cells.get("id", str(number)), cells, file, made)


def _item(smiles: str, id: str, metadata: Mapping[str, str], file: str, made: Made) -> Item:
    return Item(made(smiles, f"{file}:{id}"), id=id, metadata={"smiles": smiles, **metadata})


def parsed(smiles: str, strict: bool = True) -> Any:
    """A SMILES as a molecule of RDKit.

    Args:
        smiles: the text.
        strict: whether a valence that RDKit does not permit raises an error. RDKit permits fewer valences of boron and
            metals than in the past, so this affects molecules of older data sets. Without ``strict`` everything else
            that RDKit computes (rings, aromaticity, hybridization, stereo, hydrogens) is the same.

    Raises:
        ReadError: the text is not SMILES, or not a molecule, or it has more than 3,000 atoms or 500 rings, or 30,000
            characters.
    """
    with needing("rdkit", "mol"):
        from rdkit import rdBase
    if not smiles.strip():
        raise ReadError("the SMILES is empty; give one, or remove the line")
    if wraps := _check_size(smiles):
        problem = f"{shown(wraps)} has a number of three digits or more, which RDKit would take for a small one"
        raise ReadError(f"{shown(smiles)} is not a molecule: {problem}; correct or remove it")
    # RDKit's output becomes part of the error.
    quiet = rdBase.BlockLogs()
    try:
        found, reason = _read(smiles, strict)
    except MemoryError:
        raise
    except Exception as error:  # RuntimeError and others, if a check inside RDKit fails
        found, reason = None, f"{type(error).__name__}: {shown(' '.join(str(error).split()))}; correct or remove it"
    finally:
        del quiet
    if found is not None:
        return found
    raise ReadError(f"{shown(smiles)} is not a molecule that RDKit can read: {reason}")


def _check_size(smiles: str) -> str:
    """Check that RDKit is done with a text within a second or so; returns an atom with too large a number, or nothing.

    Raises:
        ReadError: it is too long, or has too many atoms or rings.
    """
    if len(smiles) > LONGEST:
        raise ReadError(f"the SMILES has {len(smiles)} characters; {LONGEST} at most, leave the molecule out")
    atoms = ATOM.findall(smiles)
    wrong = too_large(len(atoms), len(CLOSURE.findall(BRACKETS.sub("", smiles))) // 2)
    if wrong:
        raise ReadError(f"{shown(smiles)} {wrong}")
    return next((atom for atom in atoms if LARGE.search(atom)), "")


def _read(smiles: str, strict: bool) -> tuple[Any, str]:
    """The molecule, or None and an error message."""
    from rdkit import Chem

    found: Any = Chem.MolFromSmiles(smiles)
    if found is not None:
        return found, ""
    draft: Any = Chem.MolFromSmiles(smiles, sanitize=False)
    if draft is None:
        return None, "it does not follow the grammar; correct or remove it"
    problems = list(Chem.DetectChemistryProblems(draft))
    valence = all(problem.GetType() == "AtomValenceException" for problem in problems)
    if problems and valence and not strict:
        return _with_any_valence(draft), ""
    keep = f", or {KEEP}" if problems and valence else ""
    return None, f"{problems[0].Message() if problems else 'no reason is given'}; correct or remove it{keep}"


def _with_any_valence(draft: Any) -> Any:
    """The steps of ``MolFromSmiles`` after parsing, without the check of valences."""
    from rdkit import Chem

    draft.UpdatePropertyCache(strict=False)
    Chem.SanitizeMol(draft, Chem.SANITIZE_ALL ^ Chem.SANITIZE_PROPERTIES)
    found: Any = Chem.RemoveHs(draft, sanitize=False)
    found.UpdatePropertyCache(strict=False)  # removed hydrogens become implicit
    Chem.AssignStereochemistry(found, cleanIt=True, force=True)
    return found

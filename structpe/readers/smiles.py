"""SMILES: molecules as undirected graphs of atoms and bonds."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from structpe.errors import MissingExtra, ReadError
from structpe.readers._text import lines, shown
from structpe.readers.base import Item, Outcome, attempt, reader
from structpe.structure import Structure

__all__ = ["molecule", "smiles"]


def molecule(smiles: str, name: str = "") -> Structure:
    """A molecule: a node per heavy atom, labelled by its symbol, an undirected edge per bond, by its type.

    Bond types are ``single``, ``double``, ``triple`` and ``aromatic`` (and RDKit's rarer ones); hydrogens are left
    implicit unless SMILES writes them as atoms of their own. There is no reading order and no root.

    Raises:
        ReadError: the text is no SMILES, or no molecule by the rules of valence.
    """
    parsed = _parsed(smiles)
    edges = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in parsed.GetBonds()]
    return Structure(
        tuple(atom.GetSymbol() for atom in parsed.GetAtoms()),
        np.array(edges, dtype=np.int64).reshape(-1, 2),
        tuple(str(bond.GetBondType()).lower() for bond in parsed.GetBonds()),
        directed=False,
        name=name,
    )


@reader("smiles", ".csv .smi .smiles")
def smiles(path: Path, column: str = "smiles") -> Iterator[Outcome]:
    """SMILES: a column of a CSV file with a header, or in other files a SMILES per line and after a blank its name.

    The other columns become ``metadata``, and so does the SMILES.

    Args:
        path: a CSV file, by its suffix ``.csv``, or a list.
        column: the column of the CSV file that holds the SMILES.
    """
    return _table(path, column) if path.suffix == ".csv" else _list(path)


def _table(path: Path, column: str) -> Iterator[Outcome]:
    rows = _rows(csv.reader((line + "\n" for _, line in lines(path)), strict=True))
    _, header = next(rows, (1, []))
    if not header:
        raise ReadError("the file is empty; the first line of a CSV file names its columns")
    if column not in header:
        known = ", ".join(map(shown, header))
        raise ReadError(f"there is no column {column!r}; give column=, one of: {known}").at("line 1")
    for number, (line, row) in enumerate(rows, 1):
        yield attempt(partial(_row, header, row, column, number, path.name), line=line)


def _list(path: Path) -> Iterator[Outcome]:
    for number, (line, text) in enumerate(((n, t.strip()) for n, t in lines(path) if t.strip()), 1):
        smiles, name = (*text.split(None, 1), "")[:2]
        yield attempt(partial(_item, smiles, name or str(number), {}, path.name), name, line)


def _rows(rows: Any) -> Iterator[tuple[int, list[str]]]:
    while True:
        line = rows.line_num + 1
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise ReadError(f"not CSV: {error}; check the quotes").at(f"line {line}") from None
        if row is None:
            return
        if row:
            yield line, row


def _row(header: list[str], row: list[str], column: str, number: int, file: str) -> Item:
    if len(row) != len(header):
        raise ReadError(f"the row has {len(row)} cells, the header {len(header)}; quote cells that hold commas")
    cells = dict(zip(header, row, strict=True))
    return _item(cells[column].strip(), cells.get("id", str(number)), cells, file)


def _item(smiles: str, id: str, metadata: Mapping[str, str], file: str) -> Item:
    return Item(molecule(smiles, f"{file}:{id}"), id=id, metadata={"smiles": smiles, **metadata})


def _parsed(smiles: str) -> Any:
    try:
        from rdkit import Chem, rdBase
    except ImportError:
        raise MissingExtra("rdkit", "mol") from None
    if not smiles.strip():
        raise ReadError("the SMILES is empty; give one, or remove the line")
    # What RDKit would print is said in the error instead.
    quiet = rdBase.BlockLogs()
    parsed: Any = Chem.MolFromSmiles(smiles)
    draft: Any = Chem.MolFromSmiles(smiles, sanitize=False) if parsed is None else None
    problems = [] if draft is None else [problem.Message() for problem in Chem.DetectChemistryProblems(draft)]
    del quiet
    if parsed is not None:
        return parsed
    reason = problems[0] if problems else "it does not follow the grammar"
    raise ReadError(f"{shown(smiles)} is not a molecule that RDKit can read: {reason}; correct or remove it")

"""Data sets of MoleculeNet (Wu et al. 2018) from their tables, ogbg-molhiv (Hu et al. 2020) among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from structpe.data.features import Categories
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.datasets.files.arrays import indices, needed
from structpe.datasets.molecules import _cells
from structpe.datasets.molecules._scaffolds import scaffold_split
from structpe.errors import ReadError, listed, located
from structpe.formats import Reading, read
from structpe.formats.smiles import ATOM_CATEGORIES, BOND_CATEGORIES
from structpe.formats.tables import rows
from structpe.formats.text import shown
from structpe.objectives import Objective
from structpe.objectives.classification import Binary, Multilabel
from structpe.objectives.regression import Regression

__all__ = ["molhiv_rebuilt"]


@dataclass(frozen=True)
class Table:
    """A table of molecules.

    Attributes:
        what: what is predicted, for the documentation.
        labels: columns with the targets; empty if all columns except the SMILES and ``others`` are targets.
        objective: class of the objective.
        smiles: possible names of the column with the SMILES.
        strict: whether to skip molecules with a valence that RDKit does not permit. OGB keeps all molecules of hiv and
            tox21.
        others: columns that are neither targets nor SMILES, if ``labels`` is empty.
    """

    what: str
    labels: tuple[str, ...]
    objective: type[Objective]
    smiles: tuple[str, ...] = ("smiles",)
    strict: bool = True
    others: tuple[str, ...] = ()


TABLES = {
    "esol": Table("solubility", ("measured log solubility in mols per litre",), Regression),
    "freesolv": Table("free energy of hydration", ("expt",), Regression),
    "lipo": Table("lipophilicity", ("exp",), Regression),
    "bbbp": Table("whether the blood-brain barrier is passed", ("p_np",), Binary),
    "bace": Table("whether an enzyme is inhibited", ("Class",), Binary, smiles=("mol", "smiles")),
    "tox21": Table("12 toxicities", (), Multilabel, strict=False, others=("mol_id",)),
    "sider": Table("27 kinds of side effects", (), Multilabel),
    "clintox": Table("approval, and toxicity in trials", ("FDA_APPROVED", "CT_TOX"), Multilabel),
    "hiv": Table("whether HIV is inhibited", ("HIV_active",), Binary, strict=False),
}


@benchmark("molhiv-rebuilt")
def molhiv_rebuilt(folder: Path) -> Benchmark:
    """ogbg-molhiv made from MoleculeNet's table: 41,127 molecules with OGB's features and OGB's scaffold split.

    The features are those of ``ogb.utils.smiles2graph``. A few molecules have valences that RDKit permitted when OGB
    was made and does not permit now (7 in RDKit 2026.9); only their valences are not checked.

    Files: ``hiv.csv`` with columns ``smiles`` and ``HIV_active``; ``hiv_scaffold_train.idx``, ``..._valid.idx`` and
    ``..._test.idx`` with row numbers, where the first row after the header is 0.
    """
    reading, column = _reading(folder, "hiv", skip=False)
    files = (folder / f"hiv_scaffold_{part}.idx" for part in Split._fields)
    numbers = Split(*(indices(file, len(reading), "rows") for file in files))
    named = np.sort(np.concatenate(numbers))
    if not np.array_equal(named, np.arange(len(reading))):
        raise ReadError(
            f"the three .idx files name {len(named)} rows ({len(np.unique(named))} of them different) of the "
            f"{len(reading)} in hiv.csv; they must name each once; give files that belong together"
        ).at(folder)
    note = "made from MoleculeNet's table and OGB's split; features by the installed version of RDKit"
    return _benchmark("ogbg-molhiv (rebuilt)", "hiv", column, reading, numbers, note)


def of_moleculenet(name: str) -> Callable[..., Benchmark]:
    """Make the loader of one of :data:`TABLES`."""

    def load(folder: Path) -> Benchmark:
        reading, column = _reading(folder, name, skip=True)
        texts = [str(item.metadata[column]).strip() for item in reading]
        split = scaffold_split(texts, TABLES[name].strict)
        note = "the scaffold split is rebuilt by its rule, and not compared with the official indices"
        note += _cells.skipped(reading)
        return _benchmark(f"MoleculeNet {name} (rebuilt split)", name, column, reading, split, note)

    column = "`` or ``".join(TABLES[name].smiles)
    load.__doc__ = f"""MoleculeNet's {name}: {TABLES[name].what}; OGB's features, a scaffold split made by its rule.

    Files: ``{name}.csv``, a column ``{column}`` and the columns of the labels; an empty cell is an unknown label.
    """
    return load


for _name in TABLES:
    if _name != "hiv":
        benchmark(f"moleculenet-{_name}")(of_moleculenet(_name))


def _benchmark(title: str, name: str, column: str, reading: Reading, split: Split, note: str) -> Benchmark:
    table = TABLES[name]
    columns = table.labels or _other_columns(reading[0].metadata, table)
    of, metric = (_cells.number, "rmse") if table.objective is Regression else (_cells.label, "rocauc")
    targets = [[of(item.metadata, label, item.structure.name) for label in columns] for item in reading]
    return Benchmark(
        name=title,
        graphs=reading.structures,
        targets=np.array(targets, dtype=np.float32),
        splits=(split,),
        nodes=Categories(ATOM_CATEGORIES),
        edges=Categories(BOND_CATEGORIES),
        objective=table.objective("graph", len(columns), metric),
        note=note,
        names=columns,
        reader="smiles",
        options=_options(name, column),
    )


def _reading(folder: Path, name: str, skip: bool) -> tuple[Reading, str]:
    """Read a table with the reader ``smiles``; also return the name of the column with the SMILES."""
    table, file = TABLES[name], needed(folder / f"{name}.csv")
    with located(file):
        _, header = next(rows(file))
    column = next((column for column in table.smiles if column in header), None)
    if column is None:
        wanted = " or ".join(map(repr, table.smiles))
        raise ReadError(f"there is no column {wanted}; the table has {listed(map(shown, header))}").at(file)
    on_error: Literal["raise", "skip"] = "skip" if skip else "raise"
    return read(file, "smiles", on_error, **_options(name, column)), column


def _options(name: str, column: str) -> dict[str, Any]:
    """Options of the reader."""
    return {"column": column, "features": "ogb", "strict": TABLES[name].strict}


def _other_columns(cells: Mapping[str, str], table: Table) -> tuple[str, ...]:
    return tuple(column for column in cells if column not in ("smiles", *table.smiles, *table.others))

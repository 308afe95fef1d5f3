"""Data sets of molecules: MoleculeNet, ZINC-12k, Peptides, and tables of your own."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np
from numpy.typing import NDArray

from structpe.data.features import Categories
from structpe.datasets.archives import RATIO, SLACK
from structpe.datasets.arrays import (
    arrays,
    check_counts,
    check_ends,
    check_list,
    check_range,
    indices,
    needed,
    read_packed,
    slices,
)
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.datasets.own import check_options, label, number, numbers, of_items, split_of
from structpe.errors import ReadError, listed, located
from structpe.formats import Reading, read
from structpe.formats.smiles import ATOM_CATEGORIES, BOND_CATEGORIES, molecule, parsed
from structpe.formats.tables import rows
from structpe.formats.text import shown
from structpe.objectives import Objective
from structpe.objectives.classification import Binary, Multilabel
from structpe.objectives.regression import Regression
from structpe.plain import from_json
from structpe.structure import Structure

__all__ = ["molhiv_rebuilt", "peptides_func", "scaffold_split", "skipped", "smiles", "zinc_stand_in"]


def skipped(reading: Reading) -> str:
    """The end of a note about skipped rows; empty if there are none."""
    count = len(reading.skipped)
    total = count + len(reading)
    return f"; {count} of {total} rows are skipped, as RDKit cannot read them as molecules" if count else ""


LARGEST = 600
"""Atoms in rings, between them and next to them: of so many, RDKit finds the scaffold in about a second."""


def scaffold_split(smiles: Sequence[str], strict: bool = True, shares: tuple[float, float] = (0.8, 0.1)) -> Split:
    """Split molecules by scaffold: those with the same rings and connections between them stay together.

    Scaffolds are sorted by their number of molecules, largest first; among equals, the one that comes last in the list
    is first. Each goes to the training part if it fits there, else to the validation part, else to the test part.

    Args:
        smiles: the molecules.
        strict: whether valences must be permitted; see :func:`structpe.formats.smiles.parsed`.
        shares: shares of the training and the validation molecules.

    Raises:
        ReadError: a text is not a molecule, or there are more than 600 atoms in its rings and what connects them.
    """
    groups: dict[str, list[int]] = {}
    for place, text in enumerate(smiles):
        molecule = _without_tails(parsed(text, strict))
        if molecule.GetNumAtoms() > LARGEST:
            what = f"{molecule.GetNumAtoms()} atoms in rings and what connects them"
            raise ReadError(f"{shown(text)} has {what}; a scaffold has {LARGEST} at most, leave the molecule out")
        groups.setdefault(_scaffold(molecule), []).append(place)
    train: list[int] = []
    valid: list[int] = []
    test: list[int] = []
    for group in sorted(groups.values(), key=lambda group: (len(group), group[0]), reverse=True):
        if len(train) + len(group) <= shares[0] * len(smiles):
            train += group
        elif len(train) + len(valid) + len(group) <= sum(shares) * len(smiles):
            valid += group
        else:
            test += group
    return Split(*(np.array(sorted(part), dtype=np.int64) for part in (train, valid, test)))


def _scaffold(molecule: Any) -> str:
    """The scaffold of a molecule without tails, as SMILES without chirality.

    RDKit's ``MurckoScaffoldSmiles`` does the same, but fails if a valence is not permitted.
    """
    from rdkit import Chem

    scaffold = Chem.MurckoDecompose(molecule)
    scaffold.ClearComputedProps()
    scaffold.UpdatePropertyCache(strict=False)
    Chem.GetSymmSSSR(scaffold)
    return str(Chem.MolToSmiles(scaffold, isomericSmiles=False))


def _without_tails(molecule: Any) -> Any:
    """The molecule without the atoms two bonds or more from its rings and what connects them, which no scaffold has.

    RDKit removes such atoms too, in time that grows with the cube of their number.
    """
    from rdkit import Chem

    neighbours = [[other.GetIdx() for other in atom.GetNeighbors()] for atom in molecule.GetAtoms()]
    degrees, inner = [len(each) for each in neighbours], [True] * len(neighbours)
    ends = [atom for atom, degree in enumerate(degrees) if degree < 2]
    for atom in ends:  # which grow
        inner[atom] = False
        for other in neighbours[atom]:
            degrees[other] -= 1
            ends += [other] if degrees[other] == 1 and inner[other] else []
    draft: Any = Chem.RWMol(molecule)
    draft.BeginBatchEdit()
    for atom in (atom for atom in ends if not any(inner[other] for other in neighbours[atom])):
        draft.RemoveAtom(atom)
    draft.CommitBatchEdit()
    Chem.GetSymmSSSR(draft)
    return draft


@dataclass(frozen=True)
class MoleculeTable:
    """A table of molecules.

    Attributes:
        what: the predicted property, for the documentation.
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
    "esol": MoleculeTable("solubility", ("measured log solubility in mols per litre",), Regression),
    "freesolv": MoleculeTable("free energy of hydration", ("expt",), Regression),
    "lipo": MoleculeTable("lipophilicity", ("exp",), Regression),
    "bbbp": MoleculeTable("whether the blood-brain barrier is passed", ("p_np",), Binary),
    "bace": MoleculeTable("whether an enzyme is inhibited", ("Class",), Binary, smiles=("mol", "smiles")),
    "tox21": MoleculeTable("12 toxicities", (), Multilabel, strict=False, others=("mol_id",)),
    "sider": MoleculeTable("27 kinds of side effects", (), Multilabel),
    "clintox": MoleculeTable("approval, and toxicity in trials", ("FDA_APPROVED", "CT_TOX"), Multilabel),
    "hiv": MoleculeTable("whether HIV is inhibited", ("HIV_active",), Binary, strict=False),
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
        rows_named = f"{len(named)} rows ({len(np.unique(named))} of them different) of the {len(reading)} in hiv.csv"
        wrong = f"the three .idx files name {rows_named}; they must name each once"
        raise ReadError(f"{wrong}; give files that belong together").at(folder)
    note = "made from MoleculeNet's table and OGB's split; features by the installed version of RDKit"
    return _benchmark("ogbg-molhiv (rebuilt)", "hiv", column, reading, numbers, note)


def of_moleculenet(name: str) -> Callable[..., Benchmark]:
    """Make the loader of one of :data:`TABLES`."""

    def load(folder: Path) -> Benchmark:
        reading, column = _reading(folder, name, skip=True)
        texts = [str(item.metadata[column]).strip() for item in reading]
        split = scaffold_split(texts, TABLES[name].strict)
        note = "the scaffold split is rebuilt by its rule, and not compared with the official indices"
        note += skipped(reading)
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
    others = ("smiles", *table.smiles, *table.others)
    columns = table.labels or tuple(column for column in reading[0].metadata if column not in others)
    of, metric = (number, "rmse") if table.objective is Regression else (label, "rocauc")
    return Benchmark(
        name=title,
        graphs=reading.structures,
        targets=numbers(of, reading, columns)[0],
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


@benchmark("smiles")
def smiles(
    folder: Path,
    file: str,
    targets: list[str],
    objective: str = "regression",
    column: str = "smiles",
    metric: str | None = None,
    split: str = "random",
    shares: tuple[float, ...] = (0.8, 0.1, 0.1),
    seed: int = 0,
    strict: bool = True,
    on_error: Literal["raise", "skip"] = "raise",
) -> Benchmark:
    """A table of your own molecules, with OGB's features of atoms and bonds; any columns as targets.

    Args:
        folder: folder of the table.
        file: a CSV file with a header.
        targets: columns to predict; an empty cell is an unknown target.
        objective: ``regression``, ``binary`` (0 or 1 in one column), ``multilabel`` (0 or 1 in each column), or
            ``multiclass`` (one column of any words).
        column: column with the SMILES.
        metric: ``mae`` or ``rmse`` for regression, ``rocauc`` or ``ap`` for binary and multilabel, ``accuracy`` for
            multiclass.
        split: ``random``, ``scaffold``, or a column with ``train``, ``valid`` or ``test``.
        shares: shares of the training, validation and test molecules, if no column gives the split.
        seed: seed of the random split.
        strict: whether a valence that RDKit does not permit is an error, as in the reader ``smiles``.
        on_error: ``raise`` stops at the first row that is not a molecule, ``skip`` skips such rows.

    Raises:
        ConfigError: an option is wrong, or does not fit another one.
        ReadError: a row is not a molecule, or a cell does not fit the objective.
    """
    check_options(objective, targets, shares, metric)
    items = read(needed(folder / file), "smiles", on_error, column=column, features="ogb", strict=strict)
    note = f"{split} split" if split in ("random", "scaffold") else f"split by column {split!r}"
    with located(folder / file):
        if split == "scaffold":
            texts = [str(item.metadata[column]).strip() for item in items]
            parts = scaffold_split(texts, strict, (shares[0], shares[1]))
        else:
            parts = split_of(items, split, shares, seed, "random, scaffold")
        return of_items(
            items,
            targets,
            objective,
            metric,
            parts,
            name=Path(file).stem,
            nodes=Categories(ATOM_CATEGORIES),
            edges=Categories(BOND_CATEGORIES),
            note=note + skipped(items),
            reader="smiles",
            options={"column": column, "features": "ogb", "strict": strict},
        )


TABLE, SPLITS = "peptide_multi_class_dataset.csv.gz", "splits.npz"
LABELS = 10
LONGEST = 1 << 20
"""Characters of a line; the longest peptide has a few thousand."""


@benchmark("peptides-func")
def peptides_func(folder: Path) -> Benchmark:
    """Peptides-func of the Long Range Graph Benchmark: ten functions of 15,535 peptides; its split.

    Atoms and bonds have the features of the Open Graph Benchmark. Reading takes a minute.

    Files: ``peptide_multi_class_dataset.csv.gz`` (columns ``smiles`` and ``labels``), and ``splits.npz`` with the
    numbers of peptides ``train``, ``val``, ``test``.
    """
    table = folder / TABLE
    graphs: list[Structure] = []
    targets: list[list[int]] = []
    for line, row in _rows(table):
        with located(table, f"line {line}"):
            targets.append(_labels(row["labels"]))
            graphs.append(molecule(row["smiles"], f"{TABLE}:{len(graphs)}", features="ogb"))
    return Benchmark(
        name="Peptides-func",
        graphs=graphs,
        targets=np.array(targets, dtype=np.float32),
        splits=(_read_split(folder / SPLITS, len(graphs)),),
        nodes=Categories(ATOM_CATEGORIES),
        edges=Categories(BOND_CATEGORIES),
        objective=Multilabel("graph", LABELS, "ap"),
        note="the published split",
        reader="smiles",
        options={"features": "ogb"},
    )


def _rows(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with gzip.open(needed(file), "rt", encoding="utf-8", newline="") as text:
            rows = csv.DictReader(_lines(text, file.stat().st_size * RATIO + SLACK), strict=True)
            if lacking := [name for name in ("smiles", "labels") if name not in (rows.fieldnames or ())]:
                known = listed(map(repr, rows.fieldnames or ()))
                raise ReadError(f"there is no column {lacking[0]!r}; the file has {known}").at(file)
            for row in rows:
                if None in row or None in row.values():
                    wrong = "the row has another number of cells than the header"
                    raise ReadError(wrong).at(file, f"line {rows.line_num}")
                yield rows.line_num, row
    except (OSError, EOFError, zlib.error, csv.Error, UnicodeDecodeError) as error:
        raise ReadError(f"not a compressed table ({error}); bring back the original").at(file) from None


def _lines(text: TextIO, most: int) -> Iterator[str]:
    """Iterate over lines, with limits on the length of a line and of the text.

    Raises:
        csv.Error: a limit is exceeded.
    """
    while line := text.readline(LONGEST + 1):
        most -= len(line)
        if len(line) > LONGEST or most < 0:
            raise csv.Error(f"a line of more than {LONGEST} characters" if len(line) > LONGEST else "it grows too much")
        yield line


def _labels(text: str) -> list[int]:
    try:
        labels = from_json(text)
    except ValueError:
        labels = None
    if not isinstance(labels, list) or len(labels) != LABELS or any(label not in (0, 1) for label in labels):
        raise ReadError(f"the labels are {shown(text)}; a list of {LABELS} numbers 0 or 1 is needed")
    return labels


def _read_split(file: Path, count: int) -> Split:
    parts = arrays(file, "train", "val", "test")
    if wrong := [part.dtype for part in parts if part.dtype.kind not in "iu"]:
        raise ReadError(f"the split has dtype {wrong[0]}; integers are needed, bring back the original").at(file)
    split = Split(*(numbers.astype(np.int64).reshape(-1) for numbers in parts))
    if not np.array_equal(np.sort(np.concatenate(split)), np.arange(count)):
        raise ReadError(f"the split does not name each of the peptides 0..{count - 1} once").at(file)
    return split


ATOMS, BONDS = 28, 4  # bond 0 is unused, as in the official files
NAMES = ("x", "edge_index", "edge_attr", "y", "n_nodes", "n_edges")


@benchmark("zinc-stand-in")
def zinc_stand_in(folder: Path, train: int = 10_000) -> Benchmark:
    """ZINC-12k with its official validation and test molecules, and a stand-in for its 10,000 training molecules.

    The files do not have the official training SMILES; ``train`` other molecules of the same population of 250,000
    replace them (or all, if the file has fewer), with targets by the same formula. Results are similar to those on
    ZINC-12k, but do not follow its protocol.

    Files: ``zinc_altpool23k.npz``, ``zinc12k_val.npz``, ``zinc12k_test.npz``; each with ``x`` (atom types),
    ``edge_index`` (2, e; each bond both ways), ``edge_attr`` (1, 2, 3), ``y``, ``n_nodes``, ``n_edges``.
    """
    parts = [
        _molecules(folder / "zinc_altpool23k.npz", train),
        _molecules(folder / "zinc12k_val.npz"),
        _molecules(folder / "zinc12k_test.npz"),
    ]
    ends = np.cumsum([len(graphs) for graphs, _ in parts])
    numbers = np.split(np.arange(ends[-1]), ends[:-1])
    return Benchmark(
        name="ZINC-12k (stand-in training molecules)",
        graphs=[graph for graphs, _ in parts for graph in graphs],
        targets=np.concatenate([targets for _, targets in parts])[:, None],
        splits=(Split(*numbers),),
        nodes=Categories((ATOMS,)),
        edges=Categories((BONDS,)),
        objective=Regression("graph", 1, "mae"),
        note="official validation and test molecules; training molecules are others of the same population",
    )


def _molecules(file: Path, most: int | None = None) -> tuple[list[Structure], NDArray[np.float32]]:
    packed = read_packed(file, NAMES, _check_packed)
    x, index, bonds = packed["x"], packed["edge_index"].T, packed["edge_attr"]
    graphs = [_molecule(f"{file.name}:{i}", x[n], index[e], bonds[e]) for i, (n, e) in enumerate(slices(packed)[:most])]
    return graphs, packed["y"][: len(graphs)].astype(np.float32)


def _check_packed(packed: Mapping[str, NDArray[Any]]) -> None:
    """Check that the arrays fit together.

    Raises:
        ReadError: they do not, or a value is out of range.
    """
    check_list(packed, "y", "iuf", max(packed["y"].size, 1), "a target for each molecule")
    check_range(packed, "y", -np.inf, np.inf)
    nodes, edges = check_counts(packed, "molecule")
    check_list(packed, "x", "iu", nodes, f"one per node, {nodes}")
    check_range(packed, "x", 0, ATOMS)
    check_list(packed, "edge_attr", "iu", edges, f"one per edge, {edges}")
    check_range(packed, "edge_attr", 1, BONDS)
    check_ends(packed, edges, ("bond", "molecule", "atom"))


def _molecule(name: str, atoms: NDArray[Any], edges: NDArray[Any], bonds: NDArray[Any]) -> Structure:
    once = edges[:, 0] < edges[:, 1]
    features = {"x": atoms.reshape(-1, 1).astype(np.int64), "edge_x": bonds[once].reshape(-1, 1).astype(np.int64)}
    labels, relations = (tuple(map(str, of.reshape(-1))) for of in (atoms, bonds[once]))
    return Structure(labels, edges[once], relations, directed=False, features=features, name=name)

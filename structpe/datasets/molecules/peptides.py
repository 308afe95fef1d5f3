"""Peptides-func: ten functions of peptides, each present or not (Dwivedi et al. 2022)."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np

from structpe.data.features import Categories
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.datasets.files.arrays import arrays, needed
from structpe.datasets.files.zips import RATIO, SLACK
from structpe.errors import ReadError, listed, located
from structpe.formats.smiles import ATOM_CATEGORIES, BOND_CATEGORIES, molecule
from structpe.formats.text import shown
from structpe.objectives.classification import Multilabel
from structpe.plain import from_json
from structpe.structure import Structure

__all__ = ["peptides_func"]

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
        splits=(_split(folder / SPLITS, len(graphs)),),
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
                    raise ReadError("the row has another number of cells than the header").at(
                        file, f"line {rows.line_num}"
                    )
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


def _split(file: Path, count: int) -> Split:
    parts = arrays(file, "train", "val", "test")
    if wrong := [part.dtype for part in parts if part.dtype.kind not in "iu"]:
        raise ReadError(f"the split has dtype {wrong[0]}; integers are needed, bring back the original").at(file)
    split = Split(*(numbers.astype(np.int64).reshape(-1) for numbers in parts))
    if not np.array_equal(np.sort(np.concatenate(split)), np.arange(count)):
        raise ReadError(f"the split does not name each of the peptides 0..{count - 1} once").at(file)
    return split

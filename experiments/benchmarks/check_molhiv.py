"""Is ogbg-molhiv, rebuilt from MoleculeNet's table, what OGB's own ``smiles2graph`` makes of every molecule?

    python experiments/benchmarks/check_molhiv.py FOLDER

FOLDER holds hiv.csv and the three hiv_scaffold_*.idx. Compares nodes, edges and all features of each graph with those
of ``ogb.utils.smiles2graph``, and the official split with the scaffold rule of MoleculeNet. Of molecules whose valences
RDKit permitted when OGB was made and does not now, ``smiles2graph`` fails; it is given these without that check.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from rdkit import Chem, rdBase

from structpe.datasets import load
from structpe.datasets.molecules import scaffold_split
from structpe.datasets.ogb import _imported
from structpe.structure import Structure


def without_valences(text: str) -> Any:
    """A molecule as RDKit reads it when told to check everything but valences."""
    molecule = Chem.MolFromSmiles(text, sanitize=False)
    molecule.UpdatePropertyCache(strict=False)
    Chem.SanitizeMol(molecule, Chem.SANITIZE_ALL ^ Chem.SANITIZE_PROPERTIES)
    return molecule


def equal(graph: Structure, theirs: dict[str, Any]) -> bool:
    """Whether a structure is the graph of OGB: an edge there is two, one after the other."""
    edges, features = theirs["edge_index"], theirs["edge_feat"]
    return (
        graph.size == theirs["num_nodes"]
        and np.array_equal(graph.features["x"], theirs["node_feat"])
        and np.array_equal(graph.edges.T, edges[:, ::2])
        and np.array_equal(graph.edges[:, ::-1].T, edges[:, 1::2])
        and np.array_equal(graph.features["edge_x"], features[::2])
        and np.array_equal(graph.features["edge_x"], features[1::2])
    )


def main(folder: Path) -> int:
    """Compare all; the number of graphs and parts that differ."""
    benchmark = load("molhiv-rebuilt", folder)
    with (folder / "hiv.csv").open(newline="", encoding="utf-8") as stream:
        texts = [row["smiles"].strip() for row in csv.DictReader(stream)]
    smiles2graph, quiet = _imported("ogb.utils.mol").smiles2graph, rdBase.BlockLogs()
    different, refused = [], []
    for number, (graph, text) in enumerate(zip(benchmark.graphs, texts, strict=True)):
        if Chem.MolFromSmiles(text) is None:
            refused.append(number)
            with mock.patch.object(Chem, "MolFromSmiles", return_value=without_valences(text)):
                theirs = smiles2graph(text)
        else:
            theirs = smiles2graph(text)
        if not equal(graph, theirs):
            different.append(number)
    del quiet
    print(f"{len(texts)} graphs, {len(texts) - len(different)} equal to smiles2graph; different: {different or 'none'}")
    print(f"{len(refused)} with valences that this RDKit ({rdBase.rdkitVersion}) does not permit, rows {refused}")
    for number in refused:
        print(f"  {number}: {texts[number]}")
    ruled = scaffold_split(texts, strict=False)
    parts = [set(a.tolist()) == set(b.tolist()) for a, b in zip(benchmark.splits[0], ruled, strict=True)]
    sizes = ", ".join(f"{len(part)} ({int(benchmark.targets[part].sum())} active)" for part in benchmark.splits[0])
    print(f"train, valid, test: {sizes}; equal to the scaffold rule: {parts}")
    return len(different) + parts.count(False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    sys.exit(main(parser.parse_args().folder) > 0)

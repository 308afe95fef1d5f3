"""Writes molecules.csv: molecules with two arms on a core, and how many bonds their two farthest atoms are apart.

python datasets/diameters_sample/make.py
"""

from __future__ import annotations

import csv
import random
from itertools import product
from pathlib import Path

from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from structpe.formats.smiles import molecule

CORES = (
    "{}c1ccc({})cc1", "{}c1cccc({})c1", "{}c1ccccc1{}", "{}c1ccc({})nc1", "{}C1CCC({})CC1", "{}C1CCC({})C1",
    "{}c1ccc({})o1", "{}c1ccc({})s1", "{}C(=O)N{}", "{}OC(=O){}", "{}C#C{}",
)  # fmt: skip
LEFT = ("C", "CC", "CCC", "CCCC", "CC(C)", "FC", "ClCC", "OCC", "CC(N)", "N#CC")
RIGHT = ("C", "CC", "CCC", "CCCC", "C(C)C", "CF", "CCCl", "CCO", "CC(C)N", "CC#N")
COUNT = 400


def diameter(smiles: str) -> int:
    """Bonds between the two atoms that are farthest apart."""
    structure = molecule(smiles)
    ends = structure.edges
    bonds = coo_array(([1] * len(ends), (ends[:, 0], ends[:, 1])), shape=(structure.size, structure.size))
    return int(shortest_path(bonds.tocsr(), directed=False, unweighted=True).max())


def main() -> None:
    """Write the table beside this file."""
    every = [core.format(left, right) for core, left, right in product(CORES, LEFT, RIGHT)]
    chosen = random.Random(0).sample(every, COUNT)
    with (Path(__file__).parent / "molecules.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("smiles", "diameter"))
        writer.writerows((smiles, diameter(smiles)) for smiles in chosen)


if __name__ == "__main__":
    main()

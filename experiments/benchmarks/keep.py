"""Copy the finished rows of a study into ``results/NAME``. They replace older rows of the same name; other rows stay.

    structpe study experiments/benchmarks/minesweeper.yaml --root CORPORA --only 'minesweeper/sage-4/*'
    python experiments/benchmarks/keep.py runs/minesweeper
    python experiments/pages.py

NAME is the name of the folder, and of the study's file beside this script. If the costs of a replaced row were measured
apart, they are removed. Learning curves are copied only if they show all rows.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from costs_tables import as_csv, kept, published
from costs_tables import write as with_costs

from structpe.files import atomic_text, atomic_write
from structpe.tasks.prediction import scores
from structpe.tasks.prediction.report import Row

__all__ = ["keep"]

HERE = Path(__file__).parent


def main() -> None:
    """Copy the rows, and print their names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("made", type=Path, help="folder of the study that was run, with table.csv and scores.csv")
    made: Path = parser.parse_args().made
    if not (made / "table.csv").exists():
        parser.error(f"{made} has no table.csv; give the folder that the study wrote, its 'out'")
    if not (study := HERE / f"{made.resolve().name}.yaml").exists():
        parser.error(f"there is no study {study.name} beside this script; the folder is to have the study's name")
    for name in keep(made, study, HERE / "results" / study.stem):
        print(name)


def keep(made: Path, study: Path, results: Path) -> list[str]:
    """Copy the rows, and return the names of those that are new or replaced.

    Args:
        made: folder of the study that was run.
        study: its file.
        results: folder of the results. It is created if it does not exist.
    """
    new = {_name(row): row for row in published(made / "table.csv") if row.seeds}
    results.mkdir(parents=True, exist_ok=True)
    old = {_name(row): row for row in published(results / "table.csv")} if (results / "table.csv").exists() else {}
    rows = list((old | new).values())
    atomic_write(results / "table.csv", lambda hidden: as_csv(rows, hidden))
    file = results / "scores.csv"
    before = [each for each in scores.read(file) if each.row not in new] if file.exists() else []
    scores.write([*before, *(each for each in scores.read(made / "scores.csv") if each.row in new)], file)
    if (costs := kept(results)) and new.keys() & costs.keys():
        left = {name: found for name, found in costs.items() if name not in new}
        atomic_text(results / "costs.json", json.dumps(left, indent=1) + "\n")
        if not left:
            (results / "costs.json").unlink()
    with_costs(study, results)
    if all(_name(row) in new or not row.seeds for row in rows):
        for curves in made.glob("curves-*.png"):
            shutil.copy(curves, results)
    return list(new)


def _name(row: Row) -> str:
    return f"{row.data}/{row.model}/{row.position}"


if __name__ == "__main__":
    main()

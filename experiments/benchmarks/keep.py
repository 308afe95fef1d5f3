"""Copy the finished rows of a study into ``results/NAME``. They replace older rows of the same name; other rows stay.

    structpe study experiments/benchmarks/minesweeper.yaml --root CORPORA --only 'minesweeper/sage-4/*'
    python experiments/benchmarks/keep.py runs/minesweeper
    python experiments/benchmarks/keep.py runs/minesweeper --add    # its seeds are further ones of the same rows
    python experiments/pages.py

NAME is the name of the folder, and of the study's file beside this script. If the costs of a replaced row were measured
apart, they are removed. With ``--add`` a row has its old seeds and the new ones; scores are those of all, costs those
of the part with more seeds. Learning curves are copied only if they show all rows and seeds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from costs_tables import as_csv, kept, published
from costs_tables import write as with_costs

from structpe.system.files import atomic_text, atomic_write
from structpe.tasks.prediction import report as report_module
from structpe.tasks.prediction.report import TableRow

__all__ = ["keep"]

HERE = Path(__file__).parent


def main() -> None:
    """Copy the rows, and print their names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("made", type=Path, help="folder of the study that was run, with table.csv and scores.csv")
    parser.add_argument("--add", action="store_true", help="add seeds to rows instead of replacing these")
    given = parser.parse_args()
    made: Path = given.made
    if not (made / "table.csv").exists():
        parser.error(f"{made} has no table.csv; give the folder that the study wrote, its 'out'")
    if not (study := HERE / f"{made.resolve().name}.yaml").exists():
        parser.error(f"there is no study {study.name} beside this script; the folder is to have the study's name")
    try:
        names = keep(made, study, HERE / "results" / study.stem, given.add)
    except ValueError as error:
        parser.error(str(error))
    print("\n".join(names))


def keep(made: Path, study: Path, results: Path, add: bool = False) -> list[str]:
    """Copy the rows, and return the names of those that are new or replaced.

    Args:
        made: folder of the study that was run.
        study: its file.
        results: folder of the results. It is created if it does not exist.
        add: whether rows keep the seeds that they have.

    Raises:
        ValueError: a row has a seed that is to be added, or the scores of its own seeds are unknown.
    """
    new = {_name(row): row for row in published(made / "table.csv") if row.seeds}
    results.mkdir(parents=True, exist_ok=True)
    old = {_name(row): row for row in published(results / "table.csv")} if (results / "table.csv").exists() else {}
    file = results / "scores.csv"
    before = [each for each in report_module.read_scores(file) if add or each.row not in new] if file.exists() else []
    each_seed = [*before, *(each for each in report_module.read_scores(made / "scores.csv") if each.row in new)]
    if add:
        each_seed.sort(key=lambda each: (list(old | new).index(each.row), each.seed))
        new |= {name: _joined(old[name], new[name], each_seed) for name in old.keys() & new.keys()}
    rows = list((old | new).values())
    atomic_write(results / "table.csv", lambda hidden: as_csv(rows, hidden))
    report_module.write_rows(each_seed, report_module.Score, file)
    if not add and (costs := kept(results)) and new.keys() & costs.keys():
        left = {name: found for name, found in costs.items() if name not in new}
        atomic_text(results / "costs.json", json.dumps(left, indent=1) + "\n")
        if not left:
            (results / "costs.json").unlink()
    with_costs(study, results)
    if not add and all(_name(row) in new or not row.seeds for row in rows):
        for curves in made.glob("curves-*.png"):
            shutil.copy(curves, results)
    return list(new)


def _joined(old: TableRow, new: TableRow, each_seed: Sequence[report_module.Score]) -> TableRow:
    """A row of the seeds of both. Further metrics are left out, as they are means of one part."""
    mine = [each for each in each_seed if each.row == _name(old)]
    if len({each.seed for each in mine}) < len(mine):
        raise ValueError(f"{_name(old)} has seeds {sorted(each.seed for each in mine)}, some twice; leave out --add")
    if len(mine) != old.seeds + new.seeds:
        raise ValueError(f"{_name(old)} has {old.seeds} seeds, and scores.csv not the score of each; leave out --add")
    tests, valid = [each.test for each in mine], [each.valid for each in mine if each.valid is not None]
    return replace(
        max(new, old, key=lambda row: row.seeds),
        seeds=len(mine),
        planned=max(old.planned, new.planned, len(mine)),
        others="",
        test=statistics.mean(tests),
        deviation=statistics.stdev(tests),
        valid=statistics.mean(valid) if valid else None,
        commit=_both(old.commit, new.commit),
        versions=_both(old.versions, new.versions),
        device=_both(old.device, new.device),
        day=_both(old.day, new.day),
    )


def _both(first: str, second: str) -> str:
    return " and ".join(dict.fromkeys([*first.split(" and "), second]))


def _name(row: TableRow) -> str:
    return f"{row.data}/{row.model}/{row.position}"


if __name__ == "__main__":
    main()

"""Published numbers beside ours: each `published` entry of a study that names the row that reproduces it.

    python experiments/pages.py --only "reproduced"

Counted are entries with a deviation and a number of seeds. z = (ours - theirs) / sqrt(s1^2 / n1 + s2^2 / n2).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from costs_tables import published

from structpe.tasks.prediction.report import TableRow, standard_errors
from structpe.tasks.prediction.study import Published, StudyConfig, load_study

__all__ = ["table"]

HERE = Path(__file__).parent
NEAR = 2.0  # standard errors


def cells() -> Iterator[tuple[str, StudyConfig, Published, TableRow]]:
    """Each number that a row of a study reproduces: name of the study, the study, the number, our row."""
    for file in sorted((HERE / "results").glob("*/table.csv")):
        name = file.parent.name
        if not (HERE / f"{name}.yaml").exists():
            continue
        study, rows = load_study(HERE / f"{name}.yaml"), published(file)
        for theirs in study.published:
            for row in rows:
                if theirs.row == [row.model, row.position] and row.data == theirs.data and row.seeds:
                    yield name, study, theirs, row


def table() -> str:
    """The table, and how many cells are within two standard errors."""
    lines, near, tried, transformers = [], 0, 0, [0, 0]
    for name, study, theirs, row in cells():
        z = standard_errors(row, theirs)
        if z is None:
            continue
        attends = study.models[row.model].get("attention", {}) is not None
        tried, near = tried + 1, near + (abs(z) < NEAR)
        transformers = [transformers[0] + attends, transformers[1] + (attends and abs(z) < NEAR)]
        lines.append(
            f"| {row.title or row.data} | {theirs.name} | {_number(theirs.value, theirs.deviation, theirs.seeds)} "
            f"| {_number(row.test, row.deviation, row.seeds)} | {z:+.2f} | {'yes' if abs(z) < NEAR else 'no'} "
            f"| {row.cpu_minutes or row.minutes:.1f} | {row.commit[:7]} | `{name}.yaml`, `{row.model}/{row.position}` "
            f"| {theirs.source} |"
        )
    head = "| data | network | published | ours | z | within 2 | CPU minutes a run | commit | study, row | source |"
    count = f"Tried {tried} cells; {near} are within two standard errors. Graph Transformers among them: "
    count += f"{transformers[1]} of {transformers[0]}."
    return "\n".join([count, "", head, "|---|---|---:|---:|---:|---|---:|---|---|---|", *lines])


def _number(value: float | None, deviation: float | None, seeds: int | None) -> str:
    return f"{value:.4f} ± {deviation:.4f} ({seeds})"

"""Costs that were measured apart from the trainings, put into the published tables."""

from __future__ import annotations

import csv
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeAlias, get_args, get_type_hints

from structpe.system.files import atomic_write
from structpe.tasks.prediction.report import TableRow, markdown
from structpe.tasks.prediction.study import load_study

__all__ = ["Measured", "as_csv", "kept", "published", "write"]

Measured: TypeAlias = dict[str, Any]
COLUMNS = ("encoding_seconds", "step_ms", "minutes", "peak_mib")


def kept(folder: Path) -> dict[str, Measured]:
    """What was measured, by row."""
    file = folder / "costs.json"
    found: dict[str, Measured] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def published(file: Path) -> list[TableRow]:
    """The rows of a table in CSV."""
    hints = get_type_hints(TableRow)
    with file.open(encoding="utf-8", newline="") as stream:
        return [
            TableRow(**{name: _value(hints[name], text) for name, text in row.items()})
            for row in csv.DictReader(stream)
        ]


def write(study: Path, folder: Path) -> None:
    """Put what was measured, if anything was, into ``table.csv`` and ``table.md``; rows without results stay empty."""
    known, table = kept(folder), published(folder / "table.csv")
    mine = [known.get(f"{row.data}/{row.model}/{row.position}") for row in table]
    rows = [
        replace(row, **{name: found[name] for name in COLUMNS}) if found and row.seeds else row
        for row, found in zip(table, mine, strict=True)
    ]
    used = [found for row, found in zip(table, mine, strict=True) if found and row.seeds]
    text = markdown(rows, load_study(study).published) + _told(used, sum(row.seeds > 0 for row in table))
    atomic_write(folder / "table.md", lambda hidden: hidden.write_text(text, encoding="utf-8"))
    atomic_write(folder / "table.csv", lambda hidden: as_csv(rows, hidden))


def _told(used: list[Measured], count: int) -> str:
    if not used:
        return ""
    days, commits = (sorted({str(found[name]) for found in used}) for name in ("day", "commit"))
    steps = [found["steps"] for found in used]
    rows = "" if len(used) == count else f" of {len(used)} of {count} rows"
    return (
        f"The columns of costs{rows} (encoding, step, minutes, peak) were measured apart from the trainings, on "
        f"{', '.join(days)}, commit {', '.join(commits)}: one thread, nothing else running, {min(steps)} to "
        f"{max(steps)} steps of each row in a process of its own. Minutes are all steps and validations of the "
        f"training, each as long as those measured.\n"
    )


def _value(hint: Any, text: str) -> Any:
    if not text and type(None) in get_args(hint):
        return None
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    return kinds[0](text)


def as_csv(rows: list[TableRow], path: Path) -> None:
    """What ``published`` reads."""
    names = [field.name for field in fields(TableRow)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([getattr(row, name) for name in names] for row in rows)

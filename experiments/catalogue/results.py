"""The results of the comparison: one JSON-lines file per task, one line per model and seed."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from structpe.system.files import atomic_write

__all__ = ["FOLDER", "Results", "add", "finished", "read"]

FOLDER = Path(__file__).parent / "results"
Results = dict[str, dict[str, list[dict[str, Any]]]]
"""Task, model, one entry per seed."""


def read(folder: Path = FOLDER) -> Results:
    """All results."""
    found: Results = defaultdict(lambda: defaultdict(list))
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            run = json.loads(line)
            found[run["task"]][run["model"]].append(run)
    return found


def finished(folder: Path = FOLDER) -> set[tuple[str, str, int]]:
    """Task, model and seed of each result."""
    found = read(folder)
    return {(task, model, run["seed"]) for task in found for model in found[task] for run in found[task][model]}


def add(run: dict[str, Any], folder: Path = FOLDER) -> None:
    """Insert a result in the file of its task, in the order of model and seed."""
    file = folder / f"{run['task']}.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    runs = sorted([*map(json.loads, lines), run], key=lambda each: (each["model"], each["seed"]))
    text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in runs)
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(file, lambda hidden: hidden.write_text(text, encoding="utf-8"))

"""How many pairs of graphs that are hard to tell apart each encoding tells apart.

    python experiments/expressivity/run.py FOLDER [--sets csl exp sr25 brec] [--only VIEW ...] [--write]

FOLDER holds the files of the sets (see docs/expressivity.md); a set whose files are not there is left out, and said to
be. CSL is made by its definition. With --write the counts are kept in results.json, of which
``python experiments/pages.py`` makes the table of docs/expressivity.md; with --only, rows of other views stay in it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import scipy

from structpe.system.files import atomic_text
from structpe.transforms import renumbered

sys.path.insert(0, str(Path(__file__).parent))

from graphs import SETS, GraphSet, Missing
from views import VIEWS, View, differ

RESULTS = Path(__file__).parent / "results.json"
CELLS = 200_000
"""Pairs of nodes that are held at once: what bounds the memory."""


@dataclass(frozen=True)
class Count:
    """What one encoding did on one set.

    Attributes:
        apart: pairs told apart.
        pairs: of how many.
        copies: graphs told apart from a copy of themselves with other numbers; each of them is an error.
        graphs: of how many.
    """

    apart: int
    pairs: int
    copies: int
    graphs: int


def count(view: View, given: GraphSet) -> Count:
    """Each pair, and each graph against a copy."""
    apart, copies, generator, fitted = 0, 0, np.random.default_rng(0), view.fitted(given.graphs)
    for pairs in batches(given):
        numbers = sorted({i for pair in pairs for i in pair})
        graphs = [given.graphs[i] for i in numbers]
        rows = dict(zip(numbers, fitted.of(graphs), strict=True))
        again = fitted.of([renumbered(graph, generator) for graph in graphs])
        copies += sum(differ(rows[i], other) for i, other in zip(numbers, again, strict=True))
        apart += sum(differ(rows[i], rows[j]) for i, j in pairs)
    return Count(apart, len(given.pairs), copies, len(given.graphs))


def batches(given: GraphSet) -> Iterator[list[tuple[int, int]]]:
    """All pairs at once where graphs are few and in many of them, else as many as find room, each with its own two."""
    if len(given.graphs) < 2 * len(given.pairs):
        yield given.pairs
        return
    batch: list[tuple[int, int]] = []
    for pair in given.pairs:
        batch.append(pair)
        if sum(given.graphs[i].size ** 2 for each in batch for i in each) > CELLS:
            yield batch
            batch = []
    if batch:
        yield batch


def read(folder: Path, names: Sequence[str]) -> list[GraphSet]:
    """The sets whose files are there; says of the others that they are not."""
    found: list[GraphSet] = []
    for name in names:
        try:
            found.extend(SETS[name](folder))
        except Missing as missing:
            print(f"{name} is left out: {missing}", file=sys.stderr)
    return found


def table(counts: dict[str, dict[str, Count]]) -> str:
    """A row for each encoding, a column for each set, and the errors of all sets together.

    A number stands in brackets where copies of the graphs of that set were told apart too: it then says nothing.
    """
    sets = list(next(iter(counts.values())))
    several = [name for name in sets if name.startswith("BREC")]
    shown = [*sets, *(["BREC, all"] if several else [])]
    first = next(iter(counts.values()))
    sizes = {name: first[name].pairs for name in sets} | {"BREC, all": sum(first[name].pairs for name in several)}
    lines = ["| encoding | " + " | ".join(f"{name} ({sizes[name]})" for name in shown) + " | copies |"]
    lines.append("|" + "---|" * (len(shown) + 2))
    for view, of_sets in counts.items():
        groups = [[of_sets[name]] for name in sets] + ([[of_sets[name] for name in several]] if several else [])
        cells = [(sum(c.apart for c in group), sum(c.copies for c in group)) for group in groups]
        wrong, graphs = sum(c.copies for c in of_sets.values()), sum(c.graphs for c in of_sets.values())
        shown_cells = " | ".join(f"({apart})" if errors else str(apart) for apart, errors in cells)
        lines.append(f"| {view} | {shown_cells} | {wrong} of {graphs} |")
    return "\n".join(lines) + "\n"


def made(seconds: dict[str, float]) -> str:
    """When, with what, and how long it took, on one core that has nothing else to do."""
    versions = f"Python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}"
    times = ", ".join(f"{name} {took:.0f} s" for name, took in seconds.items())
    today = datetime.datetime.now(tz=datetime.UTC).date()
    return f"Made on {today} with {versions}, networkx {networkx.__version__}. CPU time: {times}.\n"


def kept(file: Path = RESULTS) -> str:
    """The table of the counts that were written, and what they were made with."""
    found = json.loads(file.read_text(encoding="utf-8"))
    counts = {
        view: {name: Count(**each) for name, each in of_sets.items()} for view, of_sets in found["counts"].items()
    }
    return table(counts) + "\n" + str(found["made"])


def main() -> None:
    """Count, print the table, and write it where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="where the files of the sets are")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--only", nargs="+", choices=[view.name for view in VIEWS], metavar="VIEW")
    parser.add_argument("--write", action="store_true", help=f"keep the counts in {RESULTS.name}")
    asked = parser.parse_args()
    seconds: dict[str, float] = {}
    views = [view for view in VIEWS if view.name in (asked.only or [each.name for each in VIEWS])]
    counts: dict[str, dict[str, Count]] = {view.name: {} for view in views}
    for given in read(asked.folder, asked.sets):
        begin = time.process_time()
        for view in views:
            counts[view.name][given.name] = count(view, given)
        seconds[given.name] = time.process_time() - begin
        print(f"{given.name}: {len(given.pairs)} pairs in {seconds[given.name]:.1f} s", file=sys.stderr)
    if not seconds:
        sys.exit("no set is there; give the folder that holds them")
    circumstances = made(seconds)
    print(table(counts) + "\n" + circumstances)
    if asked.write:
        write(
            {view: {name: asdict(each) for name, each in of_sets.items()} for view, of_sets in counts.items()},
            circumstances,
        )


def write(counts: dict[str, Any], circumstances: str) -> None:
    """Keep the counts; those of other views, and what they were made with, stay."""
    old = json.loads(RESULTS.read_text(encoding="utf-8")) if len(counts) < len(VIEWS) else {"counts": {}, "made": ""}
    every = old["counts"] | counts
    ordered = {view.name: every[view.name] for view in VIEWS if view.name in every}
    told = (
        f"{old['made'].strip()}\n\nLater rows ({'; '.join(counts)}): {circumstances}" if old["made"] else circumstances
    )
    atomic_text(RESULTS, json.dumps({"made": told, "counts": ordered}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""BREC by its own protocol: can hybrid models with different positions be trained to tell pairs of graphs apart?

    python experiments/benchmarks/brec.py FOLDER --positions none rwse signnet [--kinds basic str] [--out runs/brec]
    python experiments/benchmarks/brec.py --table [--out runs/brec]

FOLDER holds the files of BREC. A line per pair is written as soon as it is judged, so that an interrupted run goes on
where it stopped. A model has 3 layers of width 32 and gives 16 numbers per graph. ``python experiments/pages.py`` puts
the table of ``results/brec`` into docs/expressivity.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from brec_protocol import BrecConfig, Verdict, count, judge

from structpe.data.batch import Batch, Example, collate
from structpe.datasets.expressivity import KINDS, Pair, brec_pairs
from structpe.nn.graph_model import GraphModel, GraphModelConfig
from structpe.positions.build import Config, build, fitted
from structpe.structure import Structure
from structpe.system.files import append_line
from structpe.tasks.prediction.study import versions

NUMBERS = 16
MODEL = GraphModelConfig(width=32, layers=3, feedforward=64, norm="batch", readout="sum", head_layers=1)
"""Normalised over the batch, which makes small differences of two graphs large."""
POSITIONS: dict[str, Any] = {
    "none": [],
    "rwse": {"name": "rwse", "width": 16},
    "laplacian": {"name": "lap-pe", "width": 16},
    "signnet": {"name": "signnet"},
    "rrwp": {"name": "grit", "encoding": {"name": "rrwp", "steps": 16}},
    "resistance": {"name": "graphormer-gd"},
    "t5-distance": {"name": "t5", "encoding": {"name": "undirected-distance"}},
}
PROTOCOL = BrecConfig(learning_rate=1e-3, epsilon=1e-7)


def main() -> None:
    """Judge what is not judged, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="with the files of BREC")
    parser.add_argument("--positions", nargs="+", choices=POSITIONS, default=["none", "rwse", "laplacian"])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--out", type=Path, default=Path("runs/brec"))
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if not given.table:
        if given.folder is None:
            parser.error("FOLDER is missing; only --table needs none")
        pairs = brec_pairs(given.folder)
        for position in given.positions:
            run(position, pairs, given.kinds, given.out)
    print(table(given.out))


def run(position: str, pairs: Sequence[Pair], kinds: Sequence[str], out: Path) -> None:
    """Judge the pairs of some kinds."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{position}.jsonl"
    done = judged(file)
    left = [number for number, pair in enumerate(pairs) if pair.kind in kinds and number not in done]
    config = fitted(POSITIONS[position], MODEL.dims, lambda: [graph for pair in pairs for graph in pair[1:]])
    made = {key: value for key, value in versions(torch.device("cpu")).items() if key in ("commit", "torch", "day")}
    started = time.monotonic()
    for finished, number in enumerate(left, 1):
        before = time.process_time()
        verdict = judge(pairs[number], lambda: model(config), lambda graphs: batch(config, graphs), PROTOCOL, number)
        row = {"number": number, **verdict._asdict(), "cpu seconds": round(time.process_time() - before, 2), **made}
        append_line(file, json.dumps(row))
        each = (time.monotonic() - started) / finished
        print(f"{position} {finished}/{len(left)}  {each:.1f} s per pair", file=sys.stderr, flush=True)


class Vectors(torch.nn.Module):
    """The numbers of each graph, in the order in which graphs were given."""

    def __init__(self, inner: GraphModel) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, given: Batch) -> torch.Tensor:
        return self.inner(given)[given.order.argsort()]


def model(position: Config) -> Vectors:
    """A new one."""
    return Vectors(GraphModel(MODEL, build(position, MODEL.dims), None, None, NUMBERS))


def batch(position: Config, graphs: Sequence[Structure]) -> Batch:
    """Graphs as the model reads them."""
    inner = model(position).inner
    encoded = {encoding: encoding.many(graphs) for encoding in inner.position.encodings}
    nothing = torch.zeros(1).numpy()
    examples = [
        Example.of(graph, {e: each[i] for e, each in encoded.items()}, nothing) for i, graph in enumerate(graphs)
    ]
    return collate(examples, inner.grouping)


def judged(file: Path) -> dict[int, tuple[Verdict, dict[str, Any]]]:
    """The verdict of each pair by its number, and how it was made; a last line that was cut off is judged again."""
    found = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        found[row.pop("number")] = Verdict(*(row.pop(field) for field in Verdict._fields)), row
    return found


def table(out: Path) -> str:
    """Pairs told apart and reliable, of those judged, by kind; and of all by the threshold of BREC's paper."""
    kinds = (*KINDS, "all")
    lines = [f"| position | {' | '.join(kinds)} | by the paper | unreliable | CPU minutes | commit |"]
    lines.append("|---|" + "---:|" * (len(kinds) + 3) + "---|")
    for file in sorted(out.glob("*.jsonl")):
        verdicts, made = zip(*judged(file).values(), strict=True)
        counts = count(verdicts)
        cells = [f"{counts[k].sound} of {counts[k].pairs}" if k in counts else "-" for k in kinds]
        minutes = sum(each["cpu seconds"] for each in made) / 60
        commits = ", ".join(sorted({each["commit"] for each in made}))
        last = f"{sum(map(by_the_paper, verdicts))} | {counts['all'].unreliable} | {minutes:.0f} | {commits} |"
        lines.append(f"| {file.stem} | {' | '.join(cells)} | {last}")
    return "\n".join(lines)


def by_the_paper(verdict: Verdict) -> bool:
    """Whether a pair is told apart, and reliably, where q T is compared with the threshold."""
    found, alike = (PROTOCOL.copies * each for each in (verdict.statistic, verdict.control))
    return alike < PROTOCOL.threshold < found


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()

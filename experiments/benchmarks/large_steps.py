"""What steps of the study of a large graph take: CPU seconds and memory of a few steps of each of its rows.

    python experiments/benchmarks/large.py runs/large/data
    python experiments/benchmarks/large_steps.py runs/large --steps 4 [--only 'large/gcn/*']

Each row is a process of its own with one thread. Time is CPU time, the median of the steps after the first, so that a
busy machine counts little; making the batch is told apart. Memory is what the process takes at the most.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from structpe.datasets import load
from structpe.nn.graph_model import GraphModel
from structpe.positions.build import build
from structpe.tasks.prediction.sources import SOURCES
from structpe.tasks.prediction.study import load_study
from structpe.tasks.prediction.task import Prediction
from structpe.tasks.training.batches import BatchPlan
from structpe.tasks.training.reporting import peak_memory

STUDY = Path(__file__).with_name("large.yaml")


def main() -> None:
    """Measure every row, or the one that is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, help="the folder that holds data/")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--row", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.row:
        print(measured(given.root, given.row, given.steps), flush=True)
        return
    print(
        f"torch {torch.__version__}, 1 thread\n\n| row | nodes | messages | batch s | step s | peak MiB |\n"
        + "|---" * 6
        + "|"
    )
    study = load_study(STUDY, [f"root={given.root}"])
    for key in study.keys(given.only):
        command = [sys.executable, __file__, str(given.root), "--steps", str(given.steps), "--row", str(key)]
        subprocess.run(command, check=True)


def measured(root: Path, row: str, steps: int) -> str:
    """A line of the table."""
    torch.set_num_threads(1)
    study = load_study(STUDY, [f"root={root}"])
    (key,) = study.keys([row])
    config = study.run(key)
    benchmark = load(config.data.name, config.data.folder, **config.data.options)
    position = build(config.position, config.model.dims, fit=benchmark.graphs)
    objective = benchmark.objective
    model = GraphModel(config.model, position, benchmark.nodes, benchmark.edges, objective.numbers, objective.level)
    data = SOURCES["node"].data(config, benchmark, benchmark.splits[0], model, root / "encodings")
    task = Prediction(model, objective, data.valid, data.scored)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.training.optimiser.learning_rate, fused=True)
    makes, takes = [], []
    for numbers in BatchPlan(data.sizes, config.training.batch_size, 0).batches(0, steps):
        start = time.process_time()
        batch = data.collate([data.train[i] for i in numbers])
        makes.append(time.process_time() - start)
        start = time.process_time()
        total, count = task.loss(batch)
        (total / count).backward()
        optimizer.step()
        optimizer.zero_grad()
        takes.append(time.process_time() - start)
    cells = [row, f"{len(batch.graph):,}", f"{len(batch.adjacency.source):,}"]
    cells += [f"{statistics.median(each[1:] or each):.2f}" for each in (makes, takes)]
    return f"| {' | '.join([*cells, f'{peak_memory() / 2**20:,.0f}'])} |"


if __name__ == "__main__":
    main()

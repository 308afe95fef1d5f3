"""What the fixed cost of a bucket is taken for, and what a training step of a hybrid takes then.

    python experiments/speed/buckets.py CORPORA --device cuda

A batch is cut into buckets of least cost, where a bucket costs its cells and a fixed number of cells
(``structpe.data.batch``): few cells make many buckets, many cells make one.
Medians of rounds in which they take turns.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from unittest.mock import patch

import torch

from structpe.data import batch as batches

sys.path.insert(0, str(Path(__file__).parent))
import gps
from timing import medians

COSTS = (1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 40)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    parser.add_argument("--batch", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print("| graphs | batch | cells of a bucket's start | buckets | ms of a step |\n|---|---|---|---|---|")
    for case in gps.cases(given.corpora, given.batch):
        own = case.models()[0].to(given.device)
        optimizer = torch.optim.AdamW(own.parameters(), fused=True)
        examples = [gps.example(s, own) for s in case.parts()[0]]
        made = {}
        for cost in COSTS:
            with patch.object(batches, "overhead", lambda device, cost=cost: cost):
                made[cost] = batches.collate(examples, own.grouping).to(given.device)
        ways = {str(cost): partial(gps.own_step, own, optimizer, batch) for cost, batch in made.items()}
        for cost, took in medians(ways, given.rounds, given.device, warm=2).items():
            print(
                f"| {case.name} | {case.size} | {cost} | {len(made[int(cost)].layout)} | {took * 1e3:.2f} |", flush=True
            )


if __name__ == "__main__":
    main()

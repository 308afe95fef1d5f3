"""Encodings computed on a device beside those of the CPU: whether they are the same, and how long each takes.

    python experiments/speed/on_device.py --device cuda
    python experiments/speed/on_device.py --device cpu --quick   # tries everything without a GPU

Random graphs, from many small ones to a few large ones. Times are medians of wall-clock seconds per batch, in turns.
The exit status is 1 if a value differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import median

import networkx as nx
import numpy as np
import torch

import structpe
from structpe.encodings import Eigenvalues, Encoding, RandomWalk
from structpe.structure import Structure

BATCHES = ((1024, 24), (64, 200), (8, 1000), (1, 4000))
"""Graphs, and nodes of each."""
ENCODINGS: tuple[Encoding, ...] = (RandomWalk(steps=16), Eigenvalues(k=8))


def drawn(nodes: int, seed: int) -> Structure:
    """A random graph with twice as many edges as nodes."""
    graph = nx.gnm_random_graph(nodes, 2 * nodes, seed=seed)
    return Structure(("",) * nodes, np.array(graph.edges), directed=False)


def values(positions: structpe.Positions, encoding: Encoding) -> torch.Tensor:
    """Values of an encoding, on the CPU."""
    made: torch.Tensor = positions[encoding]
    return made.cpu()


def seconds(graphs: list[Structure], encoding: Encoding, device: str | None) -> float:
    """Wall-clock seconds of one batch, its work on the device included."""
    began = time.perf_counter()
    structpe.encode(graphs, [encoding], device)
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def main() -> int:
    """Compares and times each encoding; 1 if a value differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="smaller batches, one round")
    given = parser.parse_args()
    name = torch.cuda.get_device_name() if given.device == "cuda" else given.device
    print(f"structpe {structpe.__version__}, torch {torch.__version__}, {name}\n")
    print("| encoding | graphs | nodes | CPU ms | device ms | CPU / device | largest difference |")
    print("|---|---|---|---|---|---|---|")
    same = True
    for graphs, nodes in ((4, 24), (2, 100)) if given.quick else BATCHES:
        some = [drawn(nodes, seed) for seed in range(graphs)]
        for encoding in ENCODINGS:
            here, there = (values(structpe.encode(some, [encoding], on), encoding) for on in (None, given.device))
            off = float((here.double() - there.double()).abs().max())
            same &= off < 1e-5
            rounds = range(1 if given.quick else given.rounds)
            times = [[seconds(some, encoding, on) for on in (None, given.device)] for _ in rounds]
            cpu, device = (1000 * median(each) for each in zip(*times, strict=True))
            figures = f"{cpu:.1f} | {device:.1f} | {cpu / device:.2f} | {off:.1e}"
            print(f"| {encoding.name} | {graphs} | {nodes} | {figures} |")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

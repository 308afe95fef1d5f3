"""What structpe costs inside models of PyG: encodings as a transform, and biases in attention, as ratios in one run.

    python experiments/speed/adapters.py
    python experiments/speed/adapters.py --rounds 3

Two tables, as Markdown, of the larger molecules of ``bench``. Results are compared before anything is timed; what a row
compares takes turns, on one thread, and the time is that of the processor.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch_geometric
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, GPSConv, TransformerConv
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE

sys.path.insert(0, str(Path(__file__).parent / "bench"))

from peers import pyg_data
from samples import sample
from turns import medians

import structpe
from structpe.adapters import pyg

WIDTH, HEADS, BATCH = 64, 4, 128
CLOSE = 1e-5
WALKS, SPECTRUM = AddRandomWalkPE(16), AddLaplacianEigenvectorPE(8, is_undirected=True)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        "adapters", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="turns of each")
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    graphs = [pyg_data(each) for each in sample("larger molecules")]
    print(
        f"PyTorch {torch.__version__}, PyG {torch_geometric.__version__}, {len(graphs)} molecules of 10 atoms or more"
    )
    print("\n| transform | PyG, us per graph | `AddEncoding`, graph by graph | `.many` |\n|---|---|---|---|")
    for name, theirs, ours in (
        ("AddRandomWalkPE(16)", WALKS, pyg.AddEncoding({"name": "random-walk", "steps": 16})),
        ("AddLaplacianEigenvectorPE(8)", SPECTRUM, pyg.AddEncoding({"name": "laplacian", "k": 8})),
    ):
        print(transforms(name, graphs, theirs, ours, rounds), flush=True)
    print("\n| layer, batches of 128, ms | plain | with a bias of distances | ratio |\n|---|---|---|---|")
    for name, layer in (
        ("GPSConv", GPSConv(WIDTH, GINConv(nn.Linear(WIDTH, WIDTH)), heads=HEADS)),
        ("TransformerConv", TransformerConv(WIDTH, WIDTH // HEADS, HEADS)),
    ):
        for training in (False, True):
            print(layers(name, layer, graphs[:BATCH], training, rounds), flush=True)
    return 0


def transforms(name: str, graphs: list[Data], theirs: Any, ours: pyg.AddEncoding, rounds: int) -> str:
    """A row: the ratios are to PyG."""
    _same(theirs, ours, graphs)
    times = medians(
        {
            "theirs": lambda: [theirs(data.clone()) for data in graphs],
            "each": lambda: [ours(data) for data in graphs],
            "many": lambda: ours.many(graphs),
        },
        rounds,
    )
    micro = {key: value / len(graphs) * 1e6 for key, value in times.items()}
    cells = [f"{micro[key]:.0f} ({micro['theirs'] / micro[key]:.1f} times as fast)" for key in ("each", "many")]
    return f"| `{name}` | {micro['theirs']:.0f} | {' | '.join(cells)} |"


def _same(theirs: Any, ours: pyg.AddEncoding, graphs: list[Data]) -> None:
    """Walks must agree; of eigenvectors, which turn, the products V V^T where all eight are there need not."""
    (encoding,) = ours.encodings
    if encoding.name == "random-walk":
        for mine, data in zip(ours.many(graphs), graphs, strict=True):
            difference = (mine.pe_random_walk - theirs(data.clone()).random_walk_pe).abs().max()
            assert difference < CLOSE, difference


def layers(name: str, layer: nn.Module, graphs: list[Data], training: bool, rounds: int) -> str:
    """A row: forward, and in training backward."""
    position = structpe.build({"name": "t5", "encoding": "undirected-distance"}, structpe.Dims(WIDTH, HEADS, 1))
    nn.init.zeros_(position.get_parameter("table.weight"))
    given = [data.clone() for data in graphs]
    for data in given:
        data.x = torch.randn(data.num_nodes, WIDTH)
    batch = next(iter(DataLoader(pyg.AddEncoding(*position.encodings).many(given), batch_size=BATCH)))  # type: ignore[arg-type]
    arguments = (batch.x, batch.edge_index, *((batch.batch,) if name == "GPSConv" else ()))
    layer.train(training)
    handle = structpe.inject(layer, position, start="own")
    with torch.no_grad():
        with handle.reading(None):
            before = layer(*arguments)
        with handle.reading(batch):
            assert torch.allclose(layer(*arguments), before, atol=CLOSE)

    def run(reads: Any) -> Callable[[], object]:
        def once() -> object:
            with torch.set_grad_enabled(training), handle.reading(reads):
                out = layer(*arguments)
            return out.sum().backward() if training else out

        return once

    times = medians({"plain": run(None), "biased": run(batch)}, 3 * rounds)
    structpe.eject(layer)
    kind = "forward and backward" if training else "forward"
    plain, biased = times["plain"] * 1e3, times["biased"] * 1e3
    return f"| `{name}`, {kind} | {plain:.1f} | {biased:.1f} | {biased / plain:.2f} |"


if __name__ == "__main__":
    sys.exit(main())

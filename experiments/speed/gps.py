"""What a training step of GPS takes here and in PyTorch Geometric, of the same weights and the same molecules.

    python experiments/speed/gps.py CORPORA                   # a folder with zinc12k/ and peptides_func/
    python experiments/speed/gps.py CORPORA --threads 2 --rounds 15
    python experiments/speed/gps.py CORPORA --device cuda --compile

Both models have the same layers (message passing with edge features beside attention, batch normalisation after each
sum), embeddings, mean over nodes and head. Before anything is timed, their outputs and the gradients of all parameters
are compared. A step is forward, backward and update; the two take turns in one process, so that a busy machine slows
both alike, and only their ratio is meant to be read. With one thread the time is that of the processor, in which other
programs do not count; with more, and on a GPU, it is that of the wall clock. ``--compile`` compiles both, for the
shapes of the batches that are timed. Prints Markdown.
"""

from __future__ import annotations

import argparse
import copy
import csv
import gzip
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch_geometric
from timing import medians
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GINEConv, GPSConv, global_mean_pool

from structpe.data.batch import Batch as OwnBatch
from structpe.data.batch import Example, collate
from structpe.data.features import Categories
from structpe.datasets.molecules import ATOMS, BONDS, _molecules
from structpe.formats.smiles import ATOM_CATEGORIES, BOND_CATEGORIES, molecule
from structpe.nn.graph_model import GraphModel, GraphModelConfig
from structpe.nn.layer import Layer
from structpe.positions import build
from structpe.structure import Structure

WIDTH, HEADS, LAYERS = 64, 4, 4
GRAPHS = 256
EXTRAS = ("pyg_lib", "torch_scatter")
CLOSE = 1e-9
POSITIONS: dict[str, Any] = {"rwse": "rwse", "t5 on distance": {"name": "t5", "encoding": "undirected-distance"}}
"""At the input; and a bias of each pair, which PyTorch Geometric's layer has no place for."""


class Peer(nn.Module):
    """The model as one writes it with PyTorch Geometric.

    Args:
        nodes, edges: sizes of the columns of features.
    """

    def __init__(self, nodes: Sequence[int], edges: Sequence[int]) -> None:
        super().__init__()
        self.nodes = nn.ModuleList(nn.Embedding(size, WIDTH) for size in nodes)
        self.edges = nn.ModuleList(nn.Embedding(size, WIDTH) for size in edges)
        self.layers = nn.ModuleList(GPSConv(WIDTH, _convolution(), heads=HEADS) for _ in range(LAYERS))
        self.head = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))

    def forward(self, data: Batch) -> Tensor:
        """(g, 1)."""
        x = sum(table(column) for table, column in zip(self.nodes, data.x.T, strict=True))
        edges = sum(table(column) for table, column in zip(self.edges, data.edge_attr.T, strict=True))
        for layer in self.layers:
            x = layer(x, data.edge_index, data.batch, edge_attr=edges)
        out: Tensor = self.head(global_mean_pool(x, data.batch))
        return out


def _convolution() -> GINEConv:
    mlp = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
    return GINEConv(mlp, train_eps=True)


def parameters(own: GraphModel, peer: Peer) -> Iterator[tuple[str, list[Tensor], list[Tensor]]]:
    """Those of both models that say the same; joined, either side is one tensor."""
    yield "nodes", [own.nodes.table.weight], [table.weight for table in peer.nodes]
    yield "edges", [own.stack.edges.table.weight], [table.weight for table in peer.edges]
    yield from _pairs("head", own.head, peer.head)
    for i, (mine, theirs) in enumerate(zip(own.stack.layers, peer.layers, strict=True)):
        assert isinstance(mine, Layer)
        attention = mine.attention
        for kind in ("weight", "bias"):
            projected = [getattr(part, kind) for part in (attention.query, attention.key_value)]
            yield f"{i}.projections.{kind}", projected, [getattr(theirs.attn, f"in_proj_{kind}")]
        yield from _pairs(f"{i}.out", attention.out, theirs.attn.out_proj)
        yield from _pairs(f"{i}.mlp", mine.messages.convolution.mlp, theirs.conv.nn)
        yield f"{i}.own", [mine.messages.convolution.own], [theirs.conv.eps]
        yield from _pairs(f"{i}.messages norm", mine.messages_norm, theirs.norm1)
        yield from _pairs(f"{i}.attention norm", mine.attention_norm, theirs.norm2)
        yield from _pairs(f"{i}.feedforward norm", mine.feedforward_norm, theirs.norm3)
        yield from _pairs(f"{i}.feedforward", mine.feedforward, theirs.mlp)


def _pairs(name: str, mine: nn.Module, theirs: nn.Module) -> Iterator[tuple[str, list[Tensor], list[Tensor]]]:
    for (key, a), b in zip(mine.named_parameters(), theirs.parameters(), strict=True):
        yield f"{name}.{key}", [a], [b]


def equal(own: GraphModel, peer: Peer) -> None:
    """Give the peer the weights of our model."""
    with torch.no_grad():
        for _, mine, theirs in parameters(own, peer):
            given = torch.cat([part.flatten() for part in mine])
            for part, numbers in zip(theirs, given.split([part.numel() for part in theirs]), strict=True):
                part.copy_(numbers.view_as(part))


def difference(own: GraphModel, peer: Peer, batch: OwnBatch, data: Batch) -> dict[str, float]:
    """The largest between outputs, and between gradients by the mean absolute error; of copies in float64."""
    own, peer = copy.deepcopy(own).double(), copy.deepcopy(peer).double()
    mine, theirs = own(batch), peer(data)
    (mine - batch.target.double()).abs().mean().backward()
    (theirs - data.y.double()).abs().mean().backward()
    found = {"outputs": (mine - theirs[batch.order]).abs().max().item()}
    for name, *both in parameters(own, peer):
        a, b = (torch.cat([part.grad.flatten() for part in parts]) for parts in both)
        found[name] = (a - b).abs().max().item()
    return found


@dataclass(frozen=True)
class Case:
    """Graphs to train on.

    Args:
        name: of the row of the table.
        structures: the graphs.
        nodes, edges: sizes of the columns of features.
        size: graphs in a batch.
    """

    name: str
    structures: Sequence[Structure]
    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    size: int

    def models(self, position: Any = ()) -> tuple[GraphModel, Peer]:
        """Ours and theirs, of the same weights."""
        torch.manual_seed(0)
        config = GraphModelConfig(WIDTH, LAYERS, HEADS, feedforward=2 * WIDTH)
        own = GraphModel(config, build(position, config.dims), Categories(self.nodes), Categories(self.edges), 1)
        peer = Peer(self.nodes, self.edges)
        equal(own, peer)
        return own, peer

    def parts(self) -> list[Sequence[Structure]]:
        """The graphs of each batch; at most two."""
        most = min(len(self.structures), 2 * self.size)
        return [self.structures[i : i + self.size] for i in range(0, most, self.size)]


def example(structure: Structure, model: GraphModel) -> Example:
    """A graph as we batch it. What is to be predicted does not matter to speed: here, its number of nodes."""
    target = np.array([structure.size / 100], dtype=np.float32)
    encoded = {encoding: encoding.one(structure) for encoding in model.position.encodings}
    return Example.of(structure, encoded, target)


def data(structure: Structure) -> Data:
    """The same as they do."""
    both = np.concatenate([structure.edges, structure.edges[:, ::-1]]).T
    edge_x = np.tile(structure.features["edge_x"], (2, 1))
    arrays = {"x": structure.features["x"], "edge_index": both, "edge_attr": edge_x}
    y = torch.tensor([[structure.size / 100]], dtype=torch.float32)
    return Data(**{name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}, y=y)


def own_step(model: GraphModel, optimizer: torch.optim.Optimizer, batch: OwnBatch) -> None:
    """Forward, backward, update."""
    loss = (model(batch) - batch.target).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def peer_step(model: Peer, optimizer: torch.optim.Optimizer, batch: Batch) -> None:
    """Forward, backward, update."""
    loss = (model(batch) - batch.y).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@dataclass(frozen=True)
class Way:
    """Where and how models are timed.

    Args:
        device: where.
        compiled: whether both are compiled.
    """

    device: torch.device
    compiled: bool

    def model(self, model: nn.Module) -> Any:
        """The model as it is timed."""
        return torch.compile(model, dynamic=False) if self.compiled else model


def jobs(case: Case, how: Way) -> dict[str, Callable[[], None]]:
    """What takes turns: a pass over all graphs of the case, each way."""
    own, peer = (model.to(how.device) for model in case.models())
    examples = [[example(s, own) for s in part] for part in case.parts()]
    graphs = [[data(s) for s in part] for part in case.parts()]

    def joined(part: Any, model: GraphModel = own) -> OwnBatch:
        return collate(part, model.grouping, device=how.device.type).to(how.device)

    def theirs_joined(part: Any) -> Batch:
        return Batch.from_data_list(part).to(how.device)

    made, peers = [joined(part) for part in examples], [theirs_joined(part) for part in graphs]
    differing = {name: by for name, by in difference(own, peer, made[0], peers[0]).items() if by > CLOSE}
    assert not differing, f"they compute different things: {differing}"
    mine = torch.optim.AdamW(own.parameters(), fused=True)
    theirs, plain = torch.optim.AdamW(peer.parameters(), fused=True), torch.optim.AdamW(peer.parameters())
    ours, others = how.model(own), how.model(peer)

    def each(step: Callable[..., None], *fixed: Any, of: Sequence[Any], batch: Callable[[Any], Any]) -> None:
        for part in of:
            step(*fixed, batch(part))

    def same(part: Any) -> Any:
        return part

    found = {
        "own": partial(each, own_step, ours, mine, of=made, batch=same),
        "peer": partial(each, peer_step, others, theirs, of=peers, batch=same),
        "peer, its optimiser": partial(each, peer_step, others, plain, of=peers, batch=same),
        "own from graphs": partial(each, own_step, ours, mine, of=examples, batch=joined),
        "peer from graphs": partial(each, peer_step, others, theirs, of=graphs, batch=theirs_joined),
    }
    for position, config in POSITIONS.items():
        with_it = case.models(config)[0].to(how.device)
        given = [joined([example(s, with_it) for s in part], with_it) for part in case.parts()]
        optimizer = torch.optim.AdamW(with_it.parameters(), fused=True)
        found[f"own with {position}"] = partial(each, own_step, how.model(with_it), optimizer, of=given, batch=same)
    return found


def measured(case: Case, rounds: int, how: Way) -> dict[str, float]:
    """Milliseconds per batch of each, medians over rounds in which they take turns."""
    took = medians(jobs(case, how), rounds, how.device)
    return {name: mine / len(case.parts()) * 1e3 for name, mine in took.items()}


def line(case: Case, threads: int, took: dict[str, float]) -> str:
    """A row of the table: theirs / ours, so that more is faster."""
    cells = [case.name, str(case.size), str(threads), f"{took['own']:.1f}", f"{took['peer']:.1f}"]
    cells += [f"{took[over] / took['own']:.2f}" for over in ("peer", "peer, its optimiser")]
    cells += [f"{took['peer from graphs'] / took['own from graphs']:.2f}"]
    cells += [f"{took['peer'] / took[f'own with {position}']:.2f}" for position in POSITIONS]
    return f"| {' | '.join(cells)} |"


def extra(name: str) -> str:
    """Whether PyG can use a package that makes it faster."""
    return f"{'with' if importlib.util.find_spec(name) else 'without'} {name.replace('_', '-')}"


def head(device: torch.device, compiled: bool) -> str:
    """The head of the table, and what it was made with."""
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    columns = ["graphs", "batch", "threads", "ours, ms", "PyG, ms", "PyG / ours", "... its own optimiser"]
    columns += ["... batches made in the step", *(f"... ours with {position}" for position in POSITIONS)]
    made_with = (
        f"torch {torch.__version__}, torch_geometric {torch_geometric.__version__} {' and '.join(map(extra, EXTRAS))}, "
        f"Python {sys.version.split()[0]}; {where}{', both compiled' if compiled else ''}"
    )
    return (
        f"{made_with}; d {WIDTH}, {HEADS} heads, {LAYERS} layers\n\n| {' | '.join(columns)} |\n{'|---' * len(columns)}|"
    )


def cases(corpora: Path, sizes: Sequence[int]) -> Iterator[Case]:
    """Molecules of ZINC in batches of several sizes, and peptides."""
    molecules = _molecules(corpora / "zinc12k" / "zinc12k_test.npz", GRAPHS)[0]
    for size in sizes:
        yield Case("ZINC", molecules, (ATOMS,), (BONDS,), size)
    with gzip.open(corpora / "peptides_func" / "peptide_multi_class_dataset.csv.gz", "rt", encoding="utf-8") as text:
        rows = list(islice(csv.DictReader(text), 0, 64 * 100, 100))
    peptides = [molecule(row["smiles"], str(i), features="ogb") for i, row in enumerate(rows)]
    yield Case("peptides", peptides, ATOM_CATEGORIES, BOND_CATEGORIES, 64)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch", type=int, nargs="*", default=[32, 128, 256])
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    parser.add_argument("--compile", action="store_true", help="compile both; the first round takes minutes")
    given = parser.parse_args()
    print(head(given.device, given.compile))
    for case in cases(given.corpora, given.batch):
        for threads in given.threads:
            torch.set_num_threads(threads)
            how = Way(given.device, given.compile)
            print(line(case, threads, measured(case, given.rounds, how)), flush=True)


if __name__ == "__main__":
    main()

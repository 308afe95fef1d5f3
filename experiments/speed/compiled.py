"""What torch.compile makes of a training step: forward, loss and backward.

    python experiments/speed/compiled.py CORPORA                      # a folder with zinc12k/
    python experiments/speed/compiled.py CORPORA --device cuda --only "ZINC 32"
    python experiments/speed/compiled.py --only texts                 # needs no corpora

Molecules of ZINC in batches of 32 and 256, to a model with message passing beside attention and T5's bias of graph
distances; and an encoder of texts that are as long as AMR graphs have nodes, with T5's bias of offsets. Batches are the
first 30 as training draws them, of different sizes. Without compiling, graphs are in buckets; with it in one, which has
the same form in each batch. ``one shape`` is one of the batches again and again, compiled for its sizes.

Losses are compared first. Then both ways take turns in one process. On a CPU the time is that of the processor, one
thread, in which other programs do not count; on a GPU that of the wall clock. Compiling takes wall-clock time
everywhere. Prints Markdown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timing import medians, shown
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch.nn import functional

from structpe.data.batch import Batch, Example, collate
from structpe.data.features import Categories
from structpe.datasets.molecules import ATOMS, BONDS, _molecules
from structpe.formats import read
from structpe.nn.graph_model import GraphModel, GraphModelConfig
from structpe.nn.layer import StackConfig
from structpe.nn.stack import Stack
from structpe.positions import Dims, build
from structpe.structure import path
from structpe.tasks.training.batches import BatchPlan

COUNT, CLOSE = 30, 1e-4
VOCABULARY = 4000
AMR = Path(__file__).parents[2] / "datasets" / "amr_sample" / "train.txt"


class TextEncoder(nn.Module):
    """Ids to scores of each unit, by an encoder of the size that graph to text has by default."""

    def __init__(self) -> None:
        super().__init__()
        dims = Dims(256, 4, 4)
        self.embedding = nn.Embedding(VOCABULARY, dims.width)
        self.stack = Stack(StackConfig.transformer(dims, 1024), build("t5", dims))

    @property
    def position(self) -> Any:
        """The position model."""
        return self.stack.position

    @property
    def grouping(self) -> Any:
        """How batches are made without compiling."""
        return self.stack.grouping

    def forward(self, batch: Batch) -> Tensor:
        """(N, v)."""
        return functional.linear(self.stack(self.embedding(batch.x), batch), self.embedding.weight)


@dataclass(frozen=True)
class Case:
    """A model and what it is trained on.

    Args:
        name: of the row.
        model: what is trained.
        examples: all of them.
        size: of a batch.
        loss: of what the model makes of a batch.
    """

    name: str
    model: nn.Module
    examples: Sequence[Example]
    size: int
    loss: Callable[[Tensor, Batch], Tensor]

    def step(self, batch: Batch) -> Tensor:
        """The loss of a batch."""
        return self.loss(self.model(batch), batch)

    def batches(self, grouping: Any, device: torch.device) -> list[Batch]:
        """The first of an epoch."""
        sizes = np.array([example.size for example in self.examples])
        plan = BatchPlan(sizes, self.size, 0, by_size=True)  # in one bucket all are padded to the largest
        parts = (plan.epoch(number) for number in range(-(-COUNT // plan.per_epoch)))
        chosen = [part for epoch in parts for part in epoch][:COUNT]
        return [collate([self.examples[i] for i in part], grouping).to(device) for part in chosen]


def zinc(corpora: Path, size: int) -> Case:
    """Molecules, and the number that is predicted of each: here that of its atoms, as it does not matter to speed."""
    config = GraphModelConfig(64, 4, feedforward=128)
    position = build({"name": "t5", "encoding": "undirected-distance"}, config.dims)
    model = GraphModel(config, position, Categories((ATOMS,)), Categories((BONDS,)), 1)
    graphs = _molecules(corpora / "zinc12k" / "zinc12k_test.npz", 1000)[0]
    known = {encoding: encoding.many(graphs) for encoding in position.encodings}
    targets = [np.array([graph.size / 100], dtype=np.float32) for graph in graphs]
    made = zip(graphs, targets, strict=True)
    examples = [Example.of(graph, {e: v[i] for e, v in known.items()}, y) for i, (graph, y) in enumerate(made)]
    return Case(f"ZINC {size}", model, examples, size, lambda out, batch: functional.l1_loss(out, batch.target))


def texts(corpora: Path | None) -> Case:
    """Texts of drawn ids."""
    del corpora
    model, drawn = TextEncoder(), np.random.default_rng(0)
    sizes = [item.structure.size for item in read(AMR)]
    examples = []
    for size in sizes:
        text, ids = path([""] * size), drawn.integers(VOCABULARY, size=size)
        encoded = {encoding: encoding.one(text) for encoding in model.position.encodings}
        plain = Example.of(text, encoded)
        examples.append(Example(ids, plain.edges, None, encoded, None, size))
    return Case("texts", model, examples, 64, lambda out, batch: functional.cross_entropy(out, batch.x))


CASES: dict[str, Callable[[Any], Case]] = {
    "ZINC 32": partial(zinc, size=32),
    "ZINC 256": partial(zinc, size=256),
    "texts": texts,
}


def trained(case: Case, step: Callable[[Batch], Tensor], batches: Sequence[Batch]) -> list[float]:
    """Forward, loss and backward of each batch; the losses."""
    losses = []
    for batch in batches:
        case.model.zero_grad()
        loss = step(batch)
        loss.backward()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


def compiled(case: Case, batches: Sequence[Batch], expected: Sequence[float], **how: Any) -> tuple[Any, float, int]:
    """A compiled step that has seen all batches; the seconds that this took, and how often it was compiled.

    Raises:
        ValueError: it computes other losses.
    """
    torch._dynamo.reset()
    counters.clear()
    step = torch.compile(case.step, fullgraph=True, **how)
    start = time.perf_counter()
    losses = trained(case, step, batches)
    took = time.perf_counter() - start
    if not np.allclose(losses, expected, rtol=CLOSE, atol=CLOSE):
        raise ValueError(f"{case.name}: compiled, the losses are {losses}, not {expected}; nothing is timed")
    return step, took, counters["stats"]["unique_graphs"]


def row(case: Case, device: torch.device, rounds: int, backend: str) -> list[str]:
    """The cells of a case."""
    case.model.to(device)
    plain, whole = (case.batches(grouping, device) for grouping in (case.model.grouping, "together"))
    expected = trained(case, case.step, plain)
    step, took, count = compiled(case, whole, expected, dynamic=True, backend=backend)
    ways = {"eager": partial(trained, case, case.step, plain), "compiled": partial(trained, case, step, whole)}
    each = medians(ways, rounds, device, warm=0)
    one, same = [plain[0]] * COUNT, [whole[0]] * COUNT
    step, fixed, _ = compiled(case, whole[:1], expected[:1], dynamic=False, backend=backend)
    alone = medians(
        {"eager": partial(trained, case, case.step, one), "compiled": partial(trained, case, step, same)},
        rounds,
        device,
        warm=0,
    )
    cells = [
        case.name,
        *(f"{each[name] / COUNT * 1e3:.1f}" for name in ways),
        f"{each['eager'] / each['compiled']:.2f}",
    ]
    cells += [str(count), f"{took:.0f}", f"{alone['eager'] / alone['compiled']:.2f}", f"{fixed:.0f}"]
    return cells


COLUMNS = ["batches", "eager, ms", "compiled, ms", "eager / compiled", "compilations in 30 batches"]
COLUMNS += ["the first pass, s", "one shape: eager / compiled", "its compiling, s"]


def table(names: Sequence[str], given: argparse.Namespace) -> Iterator[str]:
    """The lines of the table."""
    if given.device.type == "cuda":
        yield f"On an {torch.cuda.get_device_name(given.device)}.\n"
    yield f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|"
    for name in names:
        torch.manual_seed(0)
        yield f"| {' | '.join(row(CASES[name](given.corpora), given.device, given.rounds, given.backend))} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path, nargs="?")
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES), metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--backend", default="inductor", help="of torch.compile; eager traces only, to try the script")
    parser.add_argument("--write", action="store_true", help="keep the table, which is one of docs/speed.md")
    given = parser.parse_args()
    if given.corpora is None and any(name.startswith("ZINC") for name in given.only):
        parser.error("ZINC needs CORPORA, a folder with zinc12k/; without it give --only texts")
    torch.set_num_threads(1)
    shown("compiled", table(given.only, given), given.write)


if __name__ == "__main__":
    main()

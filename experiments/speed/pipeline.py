"""Is preparing graphs slower than training on them? Milliseconds per graph, side by side in one run.

    python experiments/speed/pipeline.py FILE.txt        # PENMAN; by default the AMR sample of the project

Each is done once per graph here; a training reads and encodes once, and collates every epoch. The training step is
forward, backward and update of the default encoder-decoder (d 256, 4 + 4 layers), in batches of 32.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch

import structpe
from structpe.data.prepare import PrepareConfig, Preparer
from structpe.nn.seq2seq import EncoderDecoder, TransformerConfig
from structpe.positions import build

ROUNDS, BATCH = 5, 32
MODELS = {
    "levi, graformer": ("levi", "graformer"),
    "linear, sinusoidal": ("linear", "sinusoidal"),
    "plain, zhu-cnn": ("plain", "zhu-cnn"),
}


def main() -> None:
    """Print one line per form of the graph and position model."""
    torch.set_num_threads(1)
    path = sys.argv[1] if len(sys.argv) > 1 else "datasets/amr_sample/train.txt"
    print(f"torch {torch.__version__}, 1 thread, {path}; median of {ROUNDS} rounds, ms per graph")
    print(
        f"{'':20} {'units':>6} {'read':>6} {'split+encode':>13} {'collate':>8} {'sum':>6} {'step':>7} {'step/sum':>9}"
    )
    for name, (graph, position) in MODELS.items():
        line(name, path, graph, position)


def line(name: str, path: str, graph: str, position: str) -> None:
    """Measure one of them; the parts take turns, so that a busy machine slows all alike."""
    items = list(structpe.read(path, "amr"))[:320]
    preparer = Preparer.fit(items, PrepareConfig(graph=graph, vocabulary=2000, longest_source=4096))  # type: ignore[arg-type]
    config = TransformerConfig()
    dims = config.dims("encoder")
    model = build(position, dims, fit=[preparer.structure(item) for item in items])
    decoder = build("sinusoidal", config.dims("decoder"))
    net = EncoderDecoder(config, preparer.vocabulary_size, model, decoder, preparer.edge_types.size)
    optimizer = torch.optim.AdamW(net.parameters())
    examples = preparer.examples(items, model.encodings)
    parts = [examples[i : i + BATCH] for i in range(0, len(examples), BATCH)]
    batches = [preparer.collate(part) for part in parts]

    def step() -> None:
        for batch in batches:
            loss, count = net.loss(batch, preparer.padding, 0.1)
            optimizer.zero_grad()
            (loss / count).backward()
            optimizer.step()

    jobs: list[Callable[[], object]] = [
        lambda: list(structpe.read(path, "amr")),
        lambda: preparer.examples(items, model.encodings),
        lambda: [preparer.collate(part) for part in parts],
        step,
    ]
    counts = [len(list(structpe.read(path, "amr"))), len(items), len(items), len(items)]
    times: list[list[float]] = [[] for _ in jobs]
    for _ in range(ROUNDS):
        for job, count, mine in zip(jobs, counts, times, strict=True):
            start = time.perf_counter()
            job()
            mine.append((time.perf_counter() - start) / count * 1e3)
    read, encode, collate, train = (statistics.median(mine) for mine in times)
    units = statistics.mean(e.graph.size for e in examples)
    total = read + encode + collate
    parts_of_it = f"{read:6.3f} {encode:13.3f} {collate:8.3f} {total:6.3f}"
    print(f"{name:20} {units:6.1f} {parts_of_it} {train:7.2f} {train / total:9.1f}")


if __name__ == "__main__":
    main()

"""The sentence, the trees and the trainings of ``structpe demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from structpe.data.batch import Batch
from structpe.data.features import Categories
from structpe.encodings import Depth, Order, UndirectedDistance
from structpe.formats import tree
from structpe.nn.graph_model import GraphModel, GraphModelConfig
from structpe.positions import build
from structpe.positions.batch import encode
from structpe.positions.build import Config
from structpe.structure import Structure

if TYPE_CHECKING:
    from structpe.tasks.graph_to_text.generator import Generated

__all__ = ["SENTENCE", "error_after", "positions", "written"]

SENTENCE = tree(["the", "keeper", "lit", "the", "old", "lamp"], heads=[2, 3, 0, 6, 6, 3])
BATCH, TREES = 32, 512


def positions() -> list[list[str]]:
    """A row for each word: its head, its index in the text, its depth, and its distances to all words."""
    found = encode([SENTENCE], [Order(), Depth(), UndirectedDistance()])
    order, depth = found[Order()][0].tolist(), found[Depth()][0].tolist()
    distances = found[UndirectedDistance()].dense()[0].tolist()
    heads = {int(child): SENTENCE.nodes[parent] for parent, child in SENTENCE.edges}
    return [
        [word, heads.get(i, "(root)"), str(order[i]), str(depth[i]), *map(str, distances[i])]
        for i, word in enumerate(SENTENCE.nodes)
    ]


def error_after(position: Config, steps: int) -> float:
    """Train a small Transformer to predict the distance of two marked nodes; return its mean error in edges."""
    torch.manual_seed(0)
    config = GraphModelConfig(width=32, layers=2, feedforward=64, norm="layer", message_passing=None)
    model = GraphModel(config, build(position, config.dims), Categories((2,)), None, 1)
    random = np.random.default_rng(0)
    trees = [grown(random) for _ in range(TREES)]
    model.start_at(torch.tensor([float(np.mean([apart for _, apart in trees]))]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    for _ in range(steps):
        loss = errors(model, [trees[i] for i in random.integers(0, TREES, BATCH)]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return float(errors(model.eval(), [grown(random) for _ in range(200)]).abs().mean())


def errors(model: GraphModel, trees: list[tuple[Structure, int]]) -> Any:
    """(g) the predicted minus the true distances."""
    batch = Batch.of([each for each, _ in trees], model.position.encodings)
    return model(batch)[:, 0] - torch.tensor([float(apart) for _, apart in trees])


def grown(random: np.random.Generator) -> tuple[Structure, int]:
    """A random tree of 12 nodes, each joined to one of the three before it; and the distance of two marked nodes."""
    parents = [int(random.integers(max(0, i - 3), i)) for i in range(1, 12)]
    away = np.zeros((12, 12), dtype=np.int64)
    for child, parent in enumerate(parents, 1):
        away[child, :child] = away[:child, child] = away[parent, :child] + 1
    one, other = random.choice(12, 2, replace=False)
    marked = np.isin(np.arange(12), [one, other]).astype(np.int64)[:, None]
    edges = np.stack([np.asarray(parents), np.arange(1, 12)], axis=1)
    return Structure(("",) * 12, edges, directed=False, features={"x": marked}), int(away[one, other])


def written(steps: int, out: Path) -> tuple[list[Generated], int]:
    """Train a model on the sample of facts; return its texts for the test split, and how many equal a reference.

    Raises:
        MissingExtra: the packages for training or for subwords are not installed.
    """
    from structpe.datasets.samples import sample
    from structpe.tasks.config import make
    from structpe.tasks.graph_to_text.config import GraphToTextConfig
    from structpe.tasks.runs import load, train

    files = {part: str(sample(f"kg_sample/{part}.xml")) for part in ("train", "dev", "test")}
    layers = {"encoder_layers": 1, "decoder_layers": 1, "message_passing": "gine", "copy_units": True}
    optimiser = {"learning_rate": 0.006, "warmup": min(20, steps), "schedule": "cosine"}
    training = {"steps": steps, "batch_size": 24, "optimiser": optimiser, "validation": {"every": steps}}
    config = make(
        GraphToTextConfig,
        {
            "data": files,
            "prepare": {"vocabulary": 800},
            "model": {"width": 64, "heads": 4, "feedforward": 128, **layers},
            "position": ["sinusoidal", "graformer"],
            "training": training,
            "search": {"longest": 60},
            "out": str(out),
        },
    )
    train(config)
    texts = list(load(config.out).generate(files["test"]))
    return texts, sum(text.text in text.references for text in texts)

"""Training steps under torch.compile, over many batches of different sizes; prints, as JSON, the largest differences
from steps without it, and how many graphs were compiled.

    python -m tests.nn.compiling

A process of its own, because tests check the shapes in annotations, and through such checks nothing is traced.
"""

from __future__ import annotations

import gc
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._dynamo import guards
from torch._dynamo.utils import counters

from structpe.data.batch import Batch, Example, collate
from structpe.data.features import Categories
from structpe.nn import convolutions
from structpe.nn.graph_model import GraphModel, GraphModelConfig
from structpe.nn.layer import AttentionConfig
from structpe.nn.seq2seq import EncoderDecoder, TransformerConfig
from structpe.positions import PositionModel, Positions, build
from structpe.structure import Structure

BATCHES, LONGEST = 30, 12
DISTANCE = {"name": "t5", "encoding": "undirected-distance"}


def graph_model(position: Any, **options: Any) -> tuple[GraphModel, PositionModel, Callable[[Batch], Tensor]]:
    """A model of graphs, and its loss."""
    small: dict[str, Any] = {"width": 16, "layers": 1, "heads": 2, "feedforward": 16}
    config = GraphModelConfig(**small | options)
    net = GraphModel(config, build(position, config.dims), Categories((20,)), None, 1).double()
    return net, net.position, lambda batch: (net(batch) - batch.target).abs().mean()


def text_model() -> tuple[EncoderDecoder, PositionModel, Callable[[Batch], Tensor]]:
    """A model of graphs and texts, and its loss. It has seen its longest text, as a decoder must before."""
    config = TransformerConfig(16, 2, 1, 1, 16, dropout=0.0, copy_units=True)
    positions = build(DISTANCE, config.dims("encoder")), build("t5", config.dims("decoder"))
    net = EncoderDecoder(config, 20, *positions).double()
    net(next(batches(positions[0])))
    return net, positions[0], lambda batch: torch.div(*net.loss(batch, 0, 0.1))


convolutions.CHUNK = 8  # messages whose products an eager step computes at a time; a compiled one must not count chunks

MODELS: dict[str, Callable[[], tuple[nn.Module, PositionModel, Callable[[Batch], Tensor]]]] = {
    "hybrid": partial(graph_model, ["rwse", DISTANCE], norm="batch"),
    "messages": partial(graph_model, [], message_passing="gcn", attention=None),
    "attention along edges": partial(graph_model, [], message_passing="gat", attention=None),
    "linear attention": partial(graph_model, [], heads=2, attention=AttentionConfig(feature_map="elu")),
    "states of pairs": partial(graph_model, "grit"),
    "texts": text_model,
}


def example(position: PositionModel, size: int, text: int, drawn: np.random.Generator) -> Example:
    """A path of this size with ids, and a text of this length or a number."""
    edges = [[i, i + 1] for i in range(size - 1)]
    structure = Structure(("",) * size, edges, features={"x": drawn.integers(1, 20, (size,) if text else (size, 1))})
    target = drawn.integers(1, 20, text) if text else drawn.normal(size=1)
    return Example.of(structure, {each: each.one(structure) for each in position.encodings}, target)


def batches(position: PositionModel, texts: bool = True) -> Iterator[Batch]:
    """Of different numbers of structures, sizes and texts, in most with padding; the longest text is in the first."""
    drawn = np.random.default_rng(0)
    for number in range(BATCHES):
        sizes = drawn.integers(2, 15, drawn.integers(3, 7))
        lengths = drawn.integers(3, LONGEST, len(sizes)) if texts else 0 * sizes
        lengths[0] = LONGEST * (texts and not number) or lengths[0]
        sizes = sizes * 0 + sizes[0] if number % 5 == 4 else sizes
        each = [example(position, *pair, drawn) for pair in zip(sizes.tolist(), lengths.tolist(), strict=True)]
        yield collate(each, "together", 0 if texts else None)


def outcome(net: nn.Module, loss: Callable[[Batch], Tensor], given: Batch) -> list[Tensor]:
    """The loss and the gradients."""
    net.zero_grad()
    found = loss(given)
    found.backward()
    return [found.detach(), *(p.grad.clone() for p in net.parameters() if p.grad is not None)]


def difference(name: str) -> tuple[float, int]:
    """The largest that compiling makes, in a loss or gradient; and how often was compiled."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    counters.clear()
    net, position, loss = MODELS[name]()
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True, dynamic=True)
    found = []
    for given in batches(position, name == "texts"):
        both = zip(outcome(net, compiled, given), outcome(net, loss, given), strict=True)
        found += [(a - b).abs().max().item() for a, b in both]
    return max(found), counters["stats"]["unique_graphs"]


def unknown_text() -> str:
    """What a compiled decoder says to its first text."""
    net, position, loss = text_model()
    net.decoder._positions = (0, (None, 0), Positions({}))
    try:
        torch.compile(loss, backend="eager", fullgraph=True, dynamic=True)(next(batches(position)))
    except torch._dynamo.exc.Unsupported as error:
        return str(error)
    return ""


def main() -> None:
    """Write the answers as JSON, model by model."""
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    gc.disable()  # tracing makes millions of objects, and the process ends soon
    guards.profile_guard_manager = lambda *_: 0.0  # it measures how fast guards are, with caches emptied each time
    print(json.dumps({"unknown text": unknown_text()} | {name: difference(name) for name in MODELS}))


if __name__ == "__main__":
    main()

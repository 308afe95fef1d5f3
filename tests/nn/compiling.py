"""Models of graphs under torch.compile, over batches of several sizes; prints the largest differences as JSON.

    python -m tests.nn.compiling

A process of its own, because tests check the shapes in annotations, and through such checks nothing is traced.
"""

from __future__ import annotations

import json
import logging
import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from structpe.data.batch import Batch, Example, collate
from structpe.nn.graph_model import GraphModel, GraphModelConfig
from structpe.positions import build
from structpe.structure import Structure

MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "hybrid": ({"name": "t5", "encoding": "undirected-distance"}, {}),
    "messages": ([], {"message_passing": "gatedgcn", "attention": False}),
}


def batch(net: GraphModel, sizes: list[int]) -> Batch:
    """Paths of these sizes."""
    paths = [Structure(("",) * n, [[i, i + 1] for i in range(n - 1)], directed=False) for n in sizes]
    told = [{encoding: encoding.one(path) for encoding in net.position.encodings} for path in paths]
    examples = [Example.of(path, each, np.zeros(1)) for path, each in zip(paths, told, strict=True)]
    return collate(examples, net.grouping)


def outcome(net: GraphModel, run: Any, given: Batch) -> list[Tensor]:
    """The output and the gradients."""
    net.zero_grad()
    out = run(given)
    out.square().sum().backward()
    return [out.detach(), *(p.grad.clone() for p in net.parameters() if p.grad is not None)]


def difference(position: Any, options: dict[str, Any]) -> float:
    """The largest that compiling makes, in output or gradients."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    config = GraphModelConfig(16, 1, 2, feedforward=16, **options)
    net = GraphModel(config, build(position, config.dims), None, None, 1)
    net.eval()
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True, dynamic=True)
    found = [0.0]
    for sizes in ([3, 4, 5], [2, 7, 7, 9]):
        given = batch(net, sizes)
        both = zip(outcome(net, compiled, given), outcome(net, net, given), strict=True)
        found += [(a - b).abs().max().item() for a, b in both]
    return max(found)


def main() -> None:
    """Write the answers as JSON, model by model."""
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    print(json.dumps({name: difference(*each) for name, each in MODELS.items()}))


if __name__ == "__main__":
    main()

"""Models of Hugging Face with position models under torch.compile; prints, as JSON, the largest differences.

    python -m tests.adapters.compiling

A process of its own, because tests check the shapes in annotations, and through such checks nothing is traced.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch._dynamo.utils import counters

from structpe.adapters import inject
from structpe.adapters.transformers import TokenPositions
from tests.adapters.models import GRAPH, SMALL, UNITS, small, texts
from tests.adapters.vision import vit

POSITION: list[Any] = ["t5", {"name": "shaw", "encoding": "undirected-distance"}]
MODELS = ("bert", "t5", "llama")
"""An encoder, both, and a decoder whose keys are shared by several heads of queries."""


def step(model: Any, run: Any, batch: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Scores and gradients."""
    model.zero_grad()
    out = run(**batch).logits
    out.square().mean().backward()
    grads = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return {"logits": out.detach(), **grads}


def difference(name: str) -> dict[str, Any]:
    """The largest difference of scores and gradients, and why graphs broke."""
    torch._dynamo.reset()
    counters.clear()
    model = small(name)
    position = inject(model, POSITION).position
    with torch.no_grad():
        for parameter in position.parameters():
            parameter.normal_()
    structures = [replace(each, order=np.arange(each.size)) for each in (GRAPH, SMALL)]
    structpe = TokenPositions.of(structures, UNITS, position.encodings, length=8)
    batch = texts(model) | {"structpe": structpe}
    plain = step(model, model, batch)
    compiled = step(model, torch.compile(model, backend="aot_eager"), batch)
    assert plain.keys() == compiled.keys()
    by = max(float((plain[key] - compiled[key]).abs().max()) for key in plain)
    return {"difference": by, "graphs": counters["stats"]["unique_graphs"], "breaks": list(counters["graph_break"])}


def difference_of_path() -> dict[str, Any]:
    """The same of a decoder whose texts are paths, without a pass before that is not compiled."""
    torch._dynamo.reset()
    counters.clear()
    model = small("llama")
    inject(model, "alibi-causal", structures="path", start="own")
    ids = {"input_ids": texts(model)["input_ids"]}
    compiled = torch.compile(model, backend="aot_eager")
    by = max(
        float((compiled(**each).logits - model(**each).logits).abs().max())
        for each in (ids, {"input_ids": ids["input_ids"][:, :5]})
    )
    return {"difference": by, "graphs": counters["stats"]["unique_graphs"] - 1, "breaks": list(counters["graph_break"])}


def difference_of_images() -> dict[str, Any]:
    """The same of images of two sizes."""
    torch._dynamo.reset()
    counters.clear()
    model = vit("form")
    inject(model, "t5", start="own")
    compiled, by = torch.compile(model, backend="aot_eager"), 0.0
    for shape in ((2, 3, 16, 16), (1, 3, 8, 24)):
        images = torch.ones(shape).cumsum(-1) / 10
        by = max(by, float((compiled(images) - model(images)).abs().max()))
    return {"difference": by, "graphs": counters["stats"]["unique_graphs"] - 1, "breaks": list(counters["graph_break"])}


def main() -> None:
    """Print the differences."""
    warnings.simplefilter("ignore")
    torch._dynamo.config.recompile_limit = 64
    found = {name: difference(name) for name in MODELS}
    print(json.dumps({**found, "path": difference_of_path(), "images": difference_of_images()}))


if __name__ == "__main__":
    main()

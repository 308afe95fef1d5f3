"""One layer computes what two kinds of layers did: values and gradients of models saved at commit ea55431.

``parity.safetensors`` holds, in float64, weights, outputs and gradients of small models: encoder-decoders whose batches
were padded and had an encoder of their own, models of graphs, language models. Names of parameters are mapped here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from structpe.data.batch import EdgeTypes, Example, collate, pad
from structpe.data.features import Categories
from structpe.nn.graph_model import GraphModel, GraphModelConfig
from structpe.nn.language_model import LanguageModel
from structpe.nn.layer import AttentionConfig, StackConfig
from structpe.nn.seq2seq import EncoderDecoder, TransformerConfig
from structpe.positions.build import build
from tests.nn import parity

KEPT = load_file(Path(__file__).with_name("parity.safetensors"))
BEFORE = {"message_activation": "none"}
"""Of layers with attention: they had no activation after the convolution."""
TEXTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "none": ([], {}),
    "graformer": ("graformer", {}),
    "shaw": ("shaw", {}),
    "sum": (["sinusoidal", "t5"], {"decoder": "t5"}),
    "gcn": ("shaw", {"message_passing": "gcn"}),
    "sage": ("shaw", {"message_passing": "sage"}),
    "gin": ([], {"message_passing": "gin", "copy_units": True}),
    "gine": ("graformer", {"message_passing": "gine", "encoder_layers": 1}),
    "gatv2": ([], {"message_passing": "gatv2", "encoder_layers": 1}),
    "own": ("grit", {}),
}
LINEAR = AttentionConfig(feature_map="elu")
GRAPHS: dict[str, tuple[Any, dict[str, Any]]] = {
    "gps": ("rwse", {}),
    "t5": ("t5", {"norm": "layer", "norm_first": True, "message_passing": None}),
    "gatedgcn": ("shaw", {"message_passing": "gatedgcn", "virtual_node": True, "readout": "sum"}),
    "nodes": ([], {"message_passing": "gine", "readout": "node"}),
    "messages": ([], {"attention": None, "message_passing": "gcn", "norm": "layer"}),
    "linear": ("rwse", {"message_passing": "sage", "attention": LINEAR, "readout": "root", "norm": "none"}),
    "grit": ("grit", {"message_passing": None}),
}


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("case", TEXTS)
def test_models_of_text(case: str) -> None:
    position, options = TEXTS[case]
    decoder = options.get("decoder", "sinusoidal")
    options = {key: value for key, value in options.items() if key != "decoder"}
    options |= BEFORE if "message_passing" in options else {}
    small = {"width": 8, "heads": 2, "feedforward": 12, "dropout": 0.0, "encoder_layers": 2, "decoder_layers": 2}
    config = TransformerConfig(**small | options)
    graphs = parity.graphs()
    types = EdgeTypes.fit(graphs)
    sides = build(position, config.dims("encoder")), build(decoder, config.dims("decoder"))
    model = EncoderDecoder(config, parity.VOCABULARY, *sides, types.size).eval()
    saved = Saved(f"text/{case}", model)
    encoded = {encoding: encoding.many(graphs) for encoding in sides[0].encodings}
    examples = []
    for i, (graph, units, target) in enumerate(zip(graphs, parity.units(), parity.targets(), strict=True)):
        edges, labels = types.messages(graph)
        mine = {encoding: each[i] for encoding, each in encoded.items()}
        examples.append(Example(units, edges, labels, mine, target, len(units)))
    batch = collate(examples, model.encoder.grouping, padding=0)
    loss, _ = model.loss(batch, 0, 0.1)
    loss.backward()
    saved.check_gradients()
    close(loss, saved["loss"])
    close(model(batch), saved["output"][batch.order])
    (hidden,) = batch.one_bucket.padded(model.encode(batch))
    close(hidden[batch.one_bucket.real(0, hidden.device)], saved["hidden"][batch.order][_there(batch.sizes)])


@pytest.mark.parametrize("case", GRAPHS)
def test_models_of_graphs(case: str) -> None:
    position, options = GRAPHS[case]
    before = BEFORE if options.get("attention", True) and options.get("message_passing", "gine") else {}
    small = {"width": 8, "layers": 2, "feedforward": 12} | ({"heads": 2} if options.get("attention", True) else {})
    config = GraphModelConfig(**small | before | options)
    model = GraphModel(config, build(position, config.dims), Categories((4, 4)), Categories((3,)), 2)
    saved = Saved(f"graph/{case}", model)
    graphs = parity.graphs()
    encoded = {encoding: encoding.many(graphs) for encoding in model.position.encodings}
    examples = [
        Example.of(
            graph,
            {encoding: each[i] for encoding, each in encoded.items()},
            np.zeros(graph.size if case == "nodes" else 1),
            np.arange(graph.size) % 2 == 0 if case == "nodes" else None,
        )
        for i, graph in enumerate(graphs)
    ]
    batch = collate(examples, model.grouping)
    predicted = model(batch)
    (predicted * saved["weight"]).sum().backward()
    close(predicted, saved["output"])
    saved.check_gradients()
    for name, value in model.state_dict().items():  # running statistics of batch normalisation moved on
        if "running" in name:
            close(value, saved.after(name))
    close(model.eval().hidden(batch), saved["hidden"])


@pytest.mark.parametrize("position", ["sinusoidal", "t5", "transformer-xl"])
def test_language_models(position: str) -> None:
    config = StackConfig(8, 2, 2, message_passing=None, feedforward=12, norm="layer", norm_first=True)
    model = LanguageModel(config, parity.VOCABULARY, build(position, config.dims)).eval()
    saved = Saved(f"language/{position}", model)
    found, _ = model(pad(parity.units(), 0), lengths=torch.tensor(parity.SIZES))
    (found * saved["weight"]).sum().backward()
    there = _there(torch.tensor(parity.SIZES))
    close(found[there], saved["output"][there])
    saved.check_gradients()
    _, memory = model(saved["segment"][:, :4])
    close(model(saved["segment"][:, 4:], memory=memory)[0], saved["second"])


NAMES = (
    (r"^encoder\.layers\.0\.messages\.labels\.weight$", "encoder.edges.table.weight"),
    (r"\.norms\.0\.", ".attention_norm."),
    (r"^decoder\.layers\.(\d+)\.norms\.1\.", r"decoder.layers.\1.cross_norm."),
    (r"\.norms\.[12]\.", ".feedforward_norm."),
    (r"^decoder\.", "decoder.stack."),
)
OF_GRAPHS = (
    (r"^(layers|edges|virtual|position|norm)\b", r"stack.\1"),
    (r"^against$", "stack.reverse"),
    (r"\.attention\.attention\.", ".attention."),
    (r"^(stack\.layers\.\d+)\.norm\.", r"\1.messages_norm."),
)
OF_LANGUAGE = (
    (r"^layers\.", "decoder.stack."),
    (r"\.norms\.0\.", ".attention_norm."),
    (r"\.norms\.1\.", ".feedforward_norm."),
)
RULES = {"text": NAMES, "graph": OF_GRAPHS, "language": OF_LANGUAGE}


class Saved:
    """What was saved of a case; its weights are loaded into the model."""

    def __init__(self, case: str, model: nn.Module) -> None:
        self.case, self.model = case, model
        self.rules = RULES[case.split("/")[0]]
        self.state = {self._name(key): value for key, value in self._under("state").items()}
        parameters = dict(model.named_parameters())
        missing = parameters.keys() - self.state.keys()
        assert all(re.fullmatch(r"(encoder|stack)\.(reverse|edges\.table\.weight)", name) for name in missing), missing
        with torch.no_grad():
            for name, parameter in parameters.items():
                if name in self.state:
                    parameter.copy_(self.state[name])

    def __getitem__(self, key: str) -> Tensor:
        return KEPT[f"{self.case}/{key}"]

    def after(self, name: str) -> Tensor:
        """A buffer after the pass."""
        return self.state[name]

    def check_gradients(self) -> None:
        """Every gradient that was saved is found again."""
        found = {name: p.grad for name, p in self.model.named_parameters() if p.grad is not None}
        saved = {self._name(key): value for key, value in self._under("grad").items()}
        assert saved.keys() <= found.keys(), saved.keys() - found.keys()
        for name, value in saved.items():
            close(found[name], value)

    def _under(self, part: str) -> dict[str, Tensor]:
        start = f"{self.case}/{part}/"
        return {key.removeprefix(start): value for key, value in KEPT.items() if key.startswith(start)}

    def _name(self, name: str) -> str:
        for old, new in self.rules:
            name = re.sub(old, new, name)
        return name


def close(found: Tensor, expected: Tensor) -> None:
    """To 1e-12."""
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def _there(sizes: Tensor) -> Tensor:
    return torch.arange(int(sizes.max()))[None] < sizes[:, None]

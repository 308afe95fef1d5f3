"""Small models of every library that a position model may enter, each with a call over the same two graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GINConv, GPSConv, TransformerConv

from structpe.errors import MissingExtra
from structpe.formats import import_dgl
from tests.adapters.models import GRAPH, SMALL, small
from tests.adapters.vision import vit

__all__ = ["HOSTS", "STRUCTURES", "WAYS", "WITHOUT", "Host", "drawn"]

STRUCTURES = [GRAPH, SMALL]
PRESENT = torch.tensor([[True] * 4, [True, True, False, False]])
WITHOUT = object()
"""A call without the argument ``structpe``."""


@dataclass(frozen=True)
class Host:
    """A model, and how it is called.

    Attributes:
        make: a new model, in eval; always the same one.
        call: its output where there are units, with the argument ``structpe`` or ``WITHOUT``.
        asks: whether a call needs positions.
        own: whether it has positions of its own.
    """

    make: Callable[[], Any]
    call: Callable[[Any, Any], Tensor]
    asks: bool = True
    own: bool = False


def given(structpe: Any) -> dict[str, Any]:
    return {} if structpe is WITHOUT else {"structpe": structpe}


def seeded(make: Callable[[], Any]) -> Callable[[], Any]:
    """A model with larger numbers than usual, so that attention is not uniform."""

    def made() -> Any:
        torch.manual_seed(0)
        model = make().eval()
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.5)
        return model

    return made


def units(width: int = 8) -> Tensor:
    return torch.randn(2, 4, width, generator=torch.Generator().manual_seed(1))


def of_text(model: Any, structpe: Any) -> Tensor:
    ids = torch.randint(3, 60, (2, 4), generator=torch.Generator().manual_seed(1))
    batch = {"input_ids": ids, "attention_mask": PRESENT.long()}
    if model.config.is_encoder_decoder:
        batch["decoder_input_ids"] = ids[:, :3]
    found: Tensor = model(**batch, **given(structpe)).logits
    return found if model.config.is_encoder_decoder else found[PRESENT]


def encoder(**options: Any) -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=options.pop("batch_first", True), **options)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def of_encoder(model: Any, structpe: Any) -> Tensor:
    own = model.layers[0].self_attn if isinstance(model, nn.TransformerEncoder) else model.self_attn
    x = units() if own.batch_first else units().transpose(0, 1)
    out: Tensor = model(x, src_key_padding_mask=~PRESENT, **given(structpe))
    return (out if own.batch_first else out.transpose(0, 1))[PRESENT]


def of_attention(model: Any, structpe: Any) -> Tensor:
    x = units()
    out: Tensor = model(x, x, x, key_padding_mask=~PRESENT, need_weights=False, **given(structpe))[0]
    return out[PRESENT]


def of_graphs(model: Any, structpe: Any) -> Tensor:
    edges = [edge for a, b in ((0, 1), (0, 2), (2, 3), (0, 3), (4, 5)) for edge in ((a, b), (b, a))]
    batch = () if isinstance(model, TransformerConv) else (torch.tensor([0, 0, 0, 0, 1, 1]),)
    out: Tensor = model(units()[PRESENT], torch.tensor(edges).T.contiguous(), *batch, **given(structpe))
    return out


def of_dgl(model: Any, structpe: Any) -> Tensor:
    out: Tensor = model(units(), attn_mask=~PRESENT[:, None].expand(-1, 4, -1), **given(structpe))
    return out[PRESENT]


def of_images(model: Any, structpe: Any) -> Tensor:
    out: Tensor = model(torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1)))
    return out


HOSTS: dict[str, Host] = {
    name: Host(lambda name=name: small(name), of_text, own=True)  # type: ignore[misc]
    for name in ("bert", "modernbert", "t5", "bart", "llama", "gpt2")
}
HOSTS |= {
    "encoder": Host(seeded(encoder), of_encoder),
    "encoder, norm first": Host(seeded(lambda: encoder(norm_first=True)), of_encoder),
    "encoder, batch second": Host(seeded(lambda: encoder(batch_first=False)), of_encoder),
    "layer": Host(seeded(lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)), of_encoder),
    "attention": Host(seeded(lambda: nn.MultiheadAttention(8, 2, batch_first=True)), of_attention),
    "GPSConv": Host(seeded(lambda: GPSConv(8, GINConv(nn.Linear(8, 8)), heads=2)), of_graphs),
    "TransformerConv": Host(seeded(lambda: TransformerConv(8, 4, 2)), of_graphs),
    "vit": Host(lambda: vit("form", learned=True), of_images, asks=False, own=True),
}
try:
    _dgl: Any = import_dgl()
    HOSTS["BiasedMHA"] = Host(seeded(lambda: _dgl.nn.BiasedMHA(8, 2)), of_dgl)
    HOSTS["GraphormerLayer"] = Host(seeded(lambda: _dgl.nn.GraphormerLayer(8, 16, 2)), of_dgl)
except MissingExtra:
    pass

WAYS: dict[str, Any] = {
    "bias": {"name": "t5", "encoding": "undirected-distance"},
    "key and value vectors": {"name": "shaw", "encoding": "undirected-distance"},
    "rotation": {"name": "rotary-half", "encoding": {"name": "laplacian", "k": 1}},
    "input": {"name": "dwivedi", "encoding": {"name": "random-walk", "steps": 3}},
    "a network of pairs": {"name": "mlp-bias", "encoding": "resistance"},
    "a sum": [{"name": "t5", "encoding": "undirected-distance"}, {"name": "rwse", "encoding": "random-walk"}],
}
"""What a position model does, and one that does it, for any graph."""


def drawn(position: nn.Module) -> None:
    """Draw the parameters of a position model anew."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for each in position.parameters():
            each.copy_(torch.randn(each.shape, generator=generator))

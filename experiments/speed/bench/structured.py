"""The fourth table: attention with trainable structure beside the fused kernel without, and the usual ways beside both.

Each line is one way: forward without gradients, training (forward and backward), and the memory that a training step
takes beyond what was there. Ways of a row compute the same, which is checked first; `none` is the floor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import torch
from peak import extra
from tables import MISSING, Row, Table, number
from torch import Tensor, nn
from torch.nn import functional
from turns import Disagreement, medians

from structpe.attention import Layout, attend, attend_ragged
from structpe.data.batch import cut
from structpe.encodings import Offset
from structpe.formats import import_dgl
from structpe.nn.layer import Attention, Context
from structpe.positions import MODELS, Dims, Site
from structpe.positions.batch import encode
from structpe.structure import path
from structpe.terms import Lookup, Terms, Toeplitz

__all__ = ["TABLE"]

HEADS, WIDTH, ROWS = 8, 64, 32
SIZES = ((64, 24), (64, 128), (8, 512), (1, 2048))
LONG = (4096, 8192)
NONE = "none: fused kernel"


@dataclass(frozen=True)
class Ways:
    """Ways to compute the same attention.

    Args:
        run: by name; none of them is called without gradients being switched on or off by the caller.
        trained: tensors whose gradients a training step needs.
    """

    run: Mapping[str, Callable[[], Tensor]]
    trained: Sequence[Tensor]


def inputs(b: int, n: int) -> list[Tensor]:
    """Queries, keys and values."""
    return [torch.randn(b, HEADS, n, WIDTH, requires_grad=True) for _ in range(3)]


def bias(b: int, n: int) -> Ways:
    """A trainable scalar for each distinct value of pairs, whose index differs from structure to structure."""
    q, k, v = inputs(b, n)
    index, table = torch.randint(ROWS, (b, n, n)), nn.Parameter(torch.randn(ROWS, HEADS))
    terms = Terms(bias=(Lookup(table, torch.arange(ROWS)[None], index.to(torch.uint8)),))

    def embedded() -> Tensor:
        of_pairs = functional.embedding(index, table).permute(0, 3, 1, 2)
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=of_pairs)

    def explicit() -> Tensor:
        scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH) + functional.embedding(index, table).permute(0, 3, 1, 2)
        return scores.softmax(-1) @ v

    ways = {"structpe": lambda: attend(q, k, v, terms), "embedding, permute, fused": embedded, "explicit": explicit}
    return Ways(_with_floor(ways, q, k, v), [q, k, v, table])


def shaw(b: int, n: int) -> Ways:
    """Trainable vectors at keys and values (Shaw et al. 2018), of the clipped offsets of a sequence."""
    q, k, v = inputs(b, n)
    keys, values = (nn.Parameter(torch.randn(ROWS + 1, 1, WIDTH)) for _ in range(2))
    offsets = torch.arange(1 - n, n).clamp(-ROWS // 2, ROWS // 2) + ROWS // 2
    diagonals, rows = Toeplitz(offsets[None].to(torch.uint8), n, n), torch.arange(ROWS + 1)[None]
    terms = Terms(key=(Lookup(keys, rows, diagonals),), value=(Lookup(values, rows, diagonals),))
    index = diagonals.dense()[0].long()

    def einsum() -> Tensor:
        of_keys, of_values = keys[:, 0][index], values[:, 0][index]  # (n, n, d)
        scores = (q @ k.transpose(-1, -2) + torch.einsum("bhnd,nmd->bhnm", q, of_keys)) / math.sqrt(WIDTH)
        weights = scores.softmax(-1)
        return weights @ v + torch.einsum("bhnm,nmd->bhnd", weights, of_values)

    ways: dict[str, Callable[[], Tensor]] = {"structpe": lambda: attend(q, k, v, terms)}
    if n <= 512:  # 2 n^2 d numbers, several times
        ways["einsum with (n, m, d)"] = einsum
    return Ways(_with_floor(ways, q, k, v), [q, k, v, keys, values])


def layer(b: int, n: int) -> Ways:
    """A whole attention with its projections, of width 512, and T5's bias of a sequence."""
    torch.manual_seed(0)
    dims = Dims(HEADS * WIDTH, HEADS, 1)
    position = MODELS["t5"](dims)
    positions = encode([path(("",) * n)] * b, [Offset()])
    own = Attention(dims)
    x = torch.randn(b, n, dims.width, requires_grad=True)

    def ours() -> Tensor:
        context = Context(position, Layout.full(b, n), [positions])
        return own(x.flatten(0, 1), context, Site(layer=0, training=True)).view_as(x)

    def floor() -> Tensor:
        weight, its_bias = (torch.cat([getattr(own.query, a), getattr(own.key_value, a)]) for a in ("weight", "bias"))
        q, k, v = functional.linear(x, weight, its_bias).view(b, n, 3, HEADS, WIDTH).permute(2, 0, 3, 1, 4)
        return own.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

    trained = [x, *own.parameters(), *position.parameters()]
    ways = {NONE: floor, "structpe": ours}
    for make in (_hugging_face, _dgl):
        if peer := make(x, dims):
            name, ways[name], its = peer
            trained += its
    return Ways(ways, trained)


Layer = tuple[str, Callable[[], Tensor], list[Tensor]]
"""What a layer of another library is called, what it computes and its weights."""


def _hugging_face(x: Tensor, dims: Dims) -> Layer | None:
    """The first layer of a model, whose attention is in the mode that users get, which a layer alone does not have."""
    if not find_spec("transformers"):
        return None
    from transformers import T5Config, T5EncoderModel

    config = T5Config(
        d_model=dims.width, d_kv=WIDTH, d_ff=1, num_heads=HEADS, num_layers=1, dropout_rate=0.0, vocab_size=2
    )
    model = T5EncoderModel(config)
    net = model.encoder.block[0].layer[0].SelfAttention
    name = f"Hugging Face T5Attention, {model.config._attn_implementation}"
    return name, lambda: net(x)[0], list(net.parameters())


def _dgl(x: Tensor, dims: Dims) -> Layer | None:
    if not find_spec("dgl"):
        return None
    import_dgl()
    from dgl.nn.pytorch import BiasedMHA

    net, table = BiasedMHA(dims.width, HEADS), nn.Parameter(torch.randn(ROWS, HEADS))
    n = x.shape[1]
    offsets = (torch.arange(n)[None] - torch.arange(n)[:, None]).clamp(-ROWS // 2, ROWS // 2 - 1) + ROWS // 2
    index = offsets.expand(len(x), -1, -1)
    return "DGL BiasedMHA, Embedding", lambda: net(x, functional.embedding(index, table)), [*net.parameters(), table]


def _with_floor(
    ways: dict[str, Callable[[], Tensor]], q: Tensor, k: Tensor, v: Tensor
) -> dict[str, Callable[[], Tensor]]:
    return {NONE: lambda: functional.scaled_dot_product_attention(q, k, v), **ways}


def _measure(name: str, make: Callable[[int, int], Ways], b: int, n: int, rounds: int) -> Iterator[Sequence[str]]:
    torch.manual_seed(0)
    ways = make(b, n)
    if make is not layer:  # peers' layers have weights of their own
        _check(name, ways)
    grad = torch.randn_like(ways.run[NONE]())

    def forward(run: Callable[[], Tensor]) -> None:
        with torch.no_grad():
            run()

    def step(run: Callable[[], Tensor]) -> None:
        run().backward(grad)
        for x in ways.trained:
            x.grad = None

    inference = medians({way: partial(forward, run) for way, run in ways.run.items()}, rounds)
    training = medians({way: partial(step, run) for way, run in ways.run.items()}, rounds)
    for way, run in ways.run.items():
        ratios = (number(found[way] / found[NONE]) for found in (inference, training))
        times = (number(found[way] * 1e3) for found in (inference, training))
        yield [name, f"{b} of {n}", way, *times, *ratios, number(extra(partial(step, run)))]


def _long(n: int, rounds: int) -> Iterator[Sequence[str]]:
    """T5's bias at inference: a view of one vector."""
    q, k, v = (x.detach() for x in inputs(1, n))
    offsets = torch.arange(1 - n, n).clamp(-16, 15) + 16
    index = Toeplitz(offsets[None].to(torch.uint8), n, n)
    terms = Terms(bias=(Lookup(torch.randn(ROWS, HEADS), torch.arange(ROWS)[None], index),))
    runs = {NONE: lambda: functional.scaled_dot_product_attention(q, k, v), "structpe": lambda: attend(q, k, v, terms)}
    for run in runs.values():
        run()
    took = medians(runs, rounds)
    for way, run in runs.items():
        forward, ratio = number(took[way] * 1e3), number(took[way] / took[NONE])
        yield ["attention-t5", f"1 of {n}", way, forward, MISSING, ratio, MISSING, number(extra(run))]


def ragged(b: int, n: int) -> Ways:
    """Structures of 1 to n units, in buckets of similar sizes; padded to the largest for the fused kernel."""
    sizes = sorted(torch.randint(max(1, n // 8), n + 1, (b,)).tolist())
    buckets, padded = Layout.of(sizes, cut(sizes)), Layout.of(sizes)
    projected = torch.randn(buckets.units, 3, HEADS, WIDTH, requires_grad=True)

    def ours() -> Tensor:
        return attend_ragged(*projected.unbind(1), buckets, [Terms()] * len(buckets))

    def floor() -> Tensor:
        (rows,) = padded.padded(projected)
        q, k, v = rows.permute(2, 0, 3, 1, 4)
        (mask,) = padded.mask(0) or (None,)
        out = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return padded.flat([out.transpose(1, 2)])

    return Ways({NONE: floor, "structpe": ours}, [projected])


def _check(name: str, ways: Ways) -> None:
    """All ways but the floor give the same outputs and gradients."""
    first: list[Tensor] = []
    for way, run in list(ways.run.items())[1:]:
        out = run()
        found = [out, *torch.autograd.grad(out.square().mean(), ways.trained)]
        first = first or found
        for mine, theirs in zip(first, found, strict=True):
            if not torch.allclose(mine, theirs, rtol=1e-3, atol=1e-4):
                raise Disagreement(f"{name}: {way} differs by {(mine - theirs).abs().max():.2g}; nothing is timed")


def _rows() -> Iterator[Row]:
    for name, make in (("attention-bias", bias), ("attention-shaw", shaw), ("attention-layer", layer)):
        for b, n in SIZES:
            yield Row(name, f"{b} of {n} units", partial(_measure, name, make, b, n))
    for b, n in ((256, 40), (64, 128), (16, 512)):
        yield Row("attention-ragged", f"{b} of up to {n} units", partial(_measure, "attention-ragged", ragged, b, n))
    for n in LONG:
        yield Row("attention-t5", f"1 of {n} units", partial(_long, n))


TABLE = Table(
    "kernels",
    "Attention with trainable structure",
    ("terms", "units", "way", "forward, ms", "training, ms", "forward / none", "training / none", "extra memory, MiB"),
    list(_rows()),
    rounds=3,
)

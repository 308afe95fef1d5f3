"""Pair quantities are never (n, m, d): no tensor of that size is made, forward or backward."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from structpe.attention import KERNELS, attend
from structpe.encodings.distance import Distance
from structpe.nn.layer import StackConfig
from structpe.nn.stack import Stack
from structpe.positions import MODELS, Dims
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from structpe.terms import Factor, Lookup, Pairs, SparsePairs, Terms
from tests.attention.drawing import HERE
from tests.representatives import only
from tests.together import together

B, H, N, D, ROWS = 2, 2, 64, 32, 9
PAIR_VECTORS = B * N * N * D


class Largest(TorchDispatchMode):
    """The shape of the largest tensor that any operation gave memory to; views have none of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.shape: tuple[int, ...] = ()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for x in tree_leaves(result):
            if isinstance(x, Tensor) and elements(x) > torch.Size(self.shape).numel() * (self.shape != ()):
                self.shape = tuple(x.shape)
        return result


class All(TorchDispatchMode):
    """How many numbers all operations together gave memory to."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.count += sum(elements(x) for x in tree_leaves(result) if isinstance(x, Tensor))
        return result


def elements(x: Tensor) -> int:
    """How many numbers the storage of a tensor holds: an expanded view counts once."""
    return min(x.numel(), x.untyped_storage().nbytes() // x.element_size())


def lookup(*width: int) -> Lookup:
    table = torch.randn(ROWS, H, *width, requires_grad=True)
    return Lookup(table, torch.arange(ROWS).expand(B, -1), torch.randint(ROWS, (B, N, N)))


def largest(kernel: str, terms: Terms) -> int:
    q, k, v = (torch.randn(B, H, N, D, requires_grad=True) for _ in range(3))
    with Largest() as seen:
        attend(q, k, v, terms, kernel).square().sum().backward()
    return torch.Size(seen.shape).numel()


WITH_VECTORS = [
    (kernel, field)
    for kernel in HERE
    for field in ("key", "query", "value")
    if field in KERNELS[kernel].supports and not KERNELS[kernel].needs
]


@together(("kernel", "field"), WITH_VECTORS)
def test_vectors_of_pairs_stay_in_their_table(kernel: str, field: str) -> None:
    used = largest(kernel, Terms(**{field: (lookup(D),)}, mask=(torch.rand(B, 1, N, N) < 0.9,)))
    assert (used < PAIR_VECTORS) == (kernel != "dense")
    if kernel != "dense":
        assert used <= B * H * N * N, "one scalar per pair and head is all that is needed"


@pytest.mark.parametrize("kernel", ["sdpa", "tables"])
def test_scalars_of_pairs_are_one_per_head(kernel: str) -> None:
    assert largest(kernel, Terms(bias=(lookup(),), key=(lookup(D),), query=(lookup(D),))) <= B * H * N * N


LONG = 256


@pytest.mark.parametrize("feature_map", [None, torch.exp])
def test_attention_over_listed_pairs_is_linear_in_them(feature_map: Any) -> None:
    """Whatever the terms say, forward and backward, no tensor is as large as all pairs."""
    made, seen = along_edges(LONG, feature_map, Largest())
    assert torch.Size(seen.shape).numel() < B * LONG * LONG, seen.shape
    assert made == B * 4 * LONG
    counts = [along_edges(n, feature_map, All())[1].count for n in (LONG, 2 * LONG)]
    assert counts[1] < 2.05 * counts[0]


@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_a_feature_map_is_linear(causal: bool) -> None:
    """Neither all pairs, nor a state (f, d) for each unit."""
    counts = []
    for n in (2048, 4096):
        q, k, v = (torch.randn(B, H, n, 8, requires_grad=True) for _ in range(3))
        terms = Terms(feature_map=lambda x: torch.cat([x, -x] * 8, dim=-1).exp(), causal=causal)
        with Largest() as seen, All() as every:
            attend(q, k, v, terms).square().sum().backward()
        assert torch.Size(seen.shape).numel() <= B * H * n * 128, seen.shape
        counts.append(every.count)
    assert counts[1] < 2.05 * counts[0]


def factor(rank: int) -> Factor:
    return Factor(*(torch.randn(B, H, LONG, rank, requires_grad=True) for _ in range(2)))


def to_width(width: int) -> Any:
    """A map of queries and keys to another width of heads."""
    weight = torch.randn(32, width, requires_grad=True)
    return lambda q, k: (q @ weight, k @ weight)


WIDTHS = {
    "plain": Terms(),
    "factor of rank 1": Terms(factors=(factor(1),)),
    "factors of other ranks": Terms(factors=(factor(2), factor(34))),
    "causal factor": Terms(factors=(factor(2),), causal=True),
    "factor and padding": Terms(factors=(factor(2),), mask=(torch.rand(B, 1, 1, LONG) < 0.9,)),
    "wider heads": Terms(maps=(to_width(64),)),
    "narrower heads": Terms(maps=(to_width(12),)),
    "narrower heads and a factor that makes up for it": Terms(maps=(to_width(30),), factors=(factor(2),)),
    "scale below zero": Terms(scale=-1.0, factors=(factor(2),)),
}


@together("gradients", [False, True])
@together("case", WIDTHS)
def test_queries_and_keys_of_another_width_than_values_keep_the_fused_kernel(case: str, gradients: bool) -> None:
    q, k, v = (torch.randn(B, H, LONG, 32, requires_grad=gradients) for _ in range(3))
    with torch.set_grad_enabled(gradients), Largest() as seen:
        out = attend(q, k, v, WIDTHS[case], "sdpa")
        if gradients:
            out.square().sum().backward()
    assert out.shape == v.shape
    assert torch.Size(seen.shape).numel() < B * LONG * LONG, seen.shape


@pytest.mark.parametrize("name", ["abs-scalar", "diet-abs", "segment-bias", "tupe-a"])
def test_models_of_factors_keep_it(name: str) -> None:
    dims = Dims(64, H, 1)
    model = MODELS[name](dims)
    sentence = replace(path(["x"] * LONG), features={"segment": torch.arange(LONG).numpy() % 2})
    encoder = Stack(StackConfig.transformer(dims, dims.width), model)
    x = torch.randn(1, LONG, dims.width)
    positions = encode([sentence], model.encodings)
    with Largest() as seen:
        encoder.padded(x, positions).square().sum().backward()
    assert torch.Size(seen.shape).numel() < LONG * LONG, seen.shape


BLOCK = 1 << 18


@pytest.mark.parametrize("pairs", [BLOCK // 64, BLOCK // 64 + 1, 3 * BLOCK // 64 - 7])
def test_vectors_of_listed_pairs_are_made_block_by_block(pairs: int) -> None:
    """Of as many pairs as fill a block, of one more, and of several blocks."""
    n = 1 << 10
    query, key = torch.arange(pairs) % n, torch.arange(pairs) // n
    q, k, v = (torch.randn(1, 4, n, 16, requires_grad=True) for _ in range(3))
    every = Pairs(torch.zeros(pairs, dtype=torch.int64), query, key)
    listed = SparsePairs(torch.randn(ROWS, 4, 16, requires_grad=True), torch.arange(pairs) % ROWS, every)
    with Largest() as seen:
        attend(q, k, v, Terms(pairs=(every,), key=(listed,), value=(listed,))).square().sum().backward()
    assert torch.Size(seen.shape).numel() == BLOCK, seen.shape


def along_edges(n: int, feature_map: Any, mode: Any) -> tuple[int, Any]:
    """Attention of n queries to four keys each, with every field that listed pairs may have."""
    q, k, v = (torch.randn(B, H, n, 4, requires_grad=True) for _ in range(3))
    near = torch.arange(n)[:, None] + torch.arange(4)
    batch, query = torch.arange(B).repeat_interleave(4 * n), torch.arange(n).repeat_interleave(4).repeat(B)
    pairs = Pairs(batch, query, near.flatten().repeat(B) % n)
    others = Pairs(batch, query, (pairs.key + 1) % n)

    def listed(*width: int, of: Pairs = pairs) -> SparsePairs:
        return SparsePairs(torch.randn(ROWS, H, *width, requires_grad=True), torch.randint(ROWS, (len(query),)), of)

    terms = Terms(pairs=(pairs, others), mask=(torch.rand(B, 1, 1, n) < 0.9,), causal=True, value=(listed(4),))
    if feature_map is None:
        factor = Factor(torch.randn(B, H, n, 2, requires_grad=True), torch.randn(B, H, n, 2, requires_grad=True))
        terms += Terms(bias=(listed(), listed(of=others)), gate=(listed(),), factors=(factor,), act=torch.tanh)
        terms += Terms(key=(listed(4),), query=(listed(4, of=others),), product=(listed(4),))
    else:
        terms += Terms(feature_map=feature_map)
    with mode as seen:
        attend(q, k, v, terms).square().sum().backward()
    return len(query), seen


def comb(label: str) -> Structure:
    """A path of 32 nodes with a leaf on each: few distinct paths of labels, many pairs."""
    spine = [(2 * i, 2 * i + 2) for i in range(N // 2 - 1)]
    leaves = [(2 * i, 2 * i + 1) for i in range(N // 2)]
    labels = (label,) * len(spine) + ("leaf",) * len(leaves)
    return Structure(("x",) * N, spine + leaves, labels, order=range(N), root=0)


@pytest.mark.parametrize("training", only([False, True], True))
@pytest.mark.parametrize("name", ["shaw", "t5", "spr-rel", "zhu-feature", "zhu-sum", "zhu-cnn", "zhu-self", "cai"])
def test_whole_encoders_keep_to_it(name: str, training: bool) -> None:
    """All tensors of forward and backward, those of path encoders and feed-forward parts too."""
    graphs = [comb("x"), comb("y")]
    encodings: dict[str, Any] = {"shaw": Distance(max_distance=20), "t5": Distance()}
    options = {"encoding": encodings[name]} if name in encodings else {"encoding": fitted(name, graphs)}
    # With the sinusoid of the query's place zhu-sum has a row for each path and place: few rows are not its promise.
    small: dict[str, Any] = {"cai": {"embedding": 8, "hidden": 8, "depths": 40}, "zhu-sum": {"sinusoid": False}}
    dims = Dims(H * D, H, 2)
    model = MODELS[name](dims, **options, **small.get(name, {}))
    config = StackConfig.transformer(dims, dims.width, 0.1)
    encoder = Stack(config, model).train(training)
    positions = encode(graphs, model.encodings)
    x = torch.randn(B, N, dims.width)
    with Largest() as seen:
        encoder.padded(x, positions).square().sum().backward()
    assert torch.Size(seen.shape).numel() < PAIR_VECTORS, seen.shape


def fitted(name: str, graphs: list[Structure]) -> Any:
    return MODELS[name](Dims(H * D, H, 2)).encodings[0].fit(graphs)

"""Attention in tiles: every cell in one tile, the equation in any cut, and no tensor of all pairs."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from structpe.attention import KERNELS, attend
from structpe.attention import sdpa as of_sdpa
from structpe.attention import tiled as tiled_module
from structpe.attention.tiled import sum_by_product, sum_by_row, tiles
from structpe.encodings.label_path import LabelPath
from structpe.encodings.order import Offset
from structpe.errors import PositionError
from structpe.nn.layer import AttentionConfig, StackConfig
from structpe.nn.stack import Stack
from structpe.positions import MODELS, Dims
from structpe.positions.batch import encode
from structpe.structure import path
from structpe.terms import Factor, Lookup, Terms, Toeplitz
from tests.attention.drawing import Sizes, drawn, settled, tables_of
from tests.attention.test_memory import Largest
from tests.together import together

FIELDS = sorted(KERNELS["tiled"].supports)
SIZES = st.integers(1, 5)


@given(st.tuples(SIZES, SIZES, st.integers(0, 9), st.integers(0, 9)), st.booleans(), st.integers(1, 80), SIZES)
def test_every_pair_that_may_attend_is_in_one_tile(
    shape: tuple[int, int, int, int], causal: bool, cells: int, queries: int
) -> None:
    b, h, n, m = shape
    times = torch.zeros(b, h, n, m)
    flat = times.view(b * h, n, m)
    for number, tile in enumerate(tiles(shape, causal, cells, queries)):
        part = tile.of(times, tile.queries, (0, tile.keys))
        assert torch.equal(part.flatten(0, 1), tile.of_queries(flat)[..., : tile.keys])
        assert part.shape == tile.shape
        assert tile.number == number
        part += 1
    seen = torch.ones(n, m, dtype=torch.bool).tril(m - n if causal else n + m)
    assert (times[..., seen] == 1).all()
    assert (times <= 1).all()


@together("seed", range(40))
def test_any_cut_gives_the_values_and_gradients_of_the_reference(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    monkeypatch.setitem(tiled_module.CELLS, "cpu", draw.choice([7, 40, 200]))
    monkeypatch.setattr(tiled_module, "QUERIES", draw.choice([1, 2, 3]))
    sizes = Sizes(b=draw.choice([1, 3]), h=draw.choice([1, 3]), n=draw.choice([1, 5]), m=draw.choice([1, 6]))
    terms = drawn(settled([name for name in FIELDS if draw.random() < 0.4]), seed, sizes=sizes, grad=True)
    found, expected = (computed(terms, sizes, name) for name in ("tiled", "dense"))
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-10)


def computed(terms: Terms, sizes: Sizes, kernel: str) -> list[Tensor]:
    """The output and all gradients."""
    generator = torch.Generator().manual_seed(0)
    shapes = ((sizes.b, sizes.h, count, sizes.d) for count in (sizes.n, sizes.m, sizes.m))
    q, k, v = (torch.randn(each, generator=generator, dtype=torch.float64).requires_grad_() for each in shapes)
    out = attend(q, k, v, terms, kernel)
    grads = torch.autograd.grad(out.square().sum(), [q, k, v, *tables_of(terms)], allow_unused=True)
    given = [q, k, v, *tables_of(terms)]
    return [out] + [torch.zeros_like(x) if g is None else g for x, g in zip(given, grads, strict=True)]


B, H, N, D, ROWS = 2, 2, 96, 8, 5


def lookup(*width: int) -> Lookup:
    index = torch.randint(ROWS, (B, N, N)).to(torch.uint8)
    return Lookup(torch.randn(ROWS, H, *width, requires_grad=True), torch.arange(ROWS)[None], index)


def numbers() -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = (torch.randn(B, H, N, D, requires_grad=True) for _ in range(3))
    return q, k, v


def test_no_tensor_of_all_pairs_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every term, forward and backward."""
    monkeypatch.setitem(tiled_module.CELLS, "cpu", 1 << 10)
    vectors = {name: (lookup(D),) for name in ("key", "query", "value", "product")}
    factor = Factor(torch.randn(B, H, N, 2, requires_grad=True), torch.randn(B, H, N, 2, requires_grad=True))
    terms = Terms(bias=(lookup(),), gate=(lookup(),), factors=(factor,), act=torch.tanh, causal=True, **vectors)
    with Largest() as seen:
        attend(*numbers(), terms, "tiled", dropout=0.1).square().sum().backward()
    assert torch.Size(seen.shape).numel() < B * N * N


def test_dropout_drops_the_same_weights_forward_and_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    """With values that are unit vectors the output is the weights; the gradient of a value is the same weight."""
    monkeypatch.setitem(tiled_module.CELLS, "cpu", 64)
    q, k = (torch.randn(2, 1, 16, 16, dtype=torch.float64, requires_grad=True) for _ in range(2))
    v = torch.eye(16, dtype=torch.float64).expand(2, 1, 16, 16).clone().requires_grad_()
    torch.manual_seed(0)
    out = attend(q, k, v, None, "tiled", dropout=0.3)
    weights = torch.softmax(q @ k.transpose(-1, -2) / 4, -1)
    dropped = out == 0
    assert 0.15 < dropped.double().mean() < 0.45
    torch.testing.assert_close(out, torch.where(dropped, 0, weights / 0.7))
    grad = torch.randn_like(out)
    found = torch.autograd.grad(out, [q, k, v], grad, retain_graph=True)
    expected = torch.autograd.grad(torch.where(dropped, 0, weights / 0.7) @ v, [q, k, v], grad)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs)
    torch.manual_seed(0)
    assert torch.equal(attend(q, k, v, None, "tiled", dropout=0.3), out)
    assert not torch.equal(attend(q, k, v, None, "tiled", dropout=0.3), out)


def test_the_gradient_of_a_gradient_is_refused() -> None:
    q, k, v = numbers()
    (first,) = torch.autograd.grad(attend(q, k, v, None, "tiled").square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_half_precision_is_computed_in_float32() -> None:
    q, k, v = (x.detach().bfloat16() for x in numbers())
    terms = Terms(bias=(lookup(),), value=(lookup(D),))
    found = attend(q, k, v, terms, "tiled")
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, attend(q.float(), k.float(), v.float(), terms, "dense").bfloat16())


@pytest.mark.parametrize("structures", [1, 2])
@pytest.mark.parametrize("by_query", [False, True])
def test_sums_by_products_are_those_of_the_scatter(by_query: bool, structures: int) -> None:
    """A GPU sums by products, since the order of its scatter is not fixed."""
    x, places = torch.randn(2, 3, 4, 5, dtype=torch.float64), torch.randint(7, (structures, 4, 5))
    found, expected = (make(x, places, 7, by_query) for make in (sum_by_product, sum_by_row))
    torch.testing.assert_close(found, expected)


@given(st.integers(1, 6), st.integers(1, 6), st.data())
def test_diagonals_are_a_matrix_by_offset(n: int, m: int, data: st.DataObject) -> None:
    given_ = Toeplitz(torch.arange(2 * (n + m - 1), dtype=torch.int16).view(2, -1), n, m)
    matrix = given_.dense()
    assert matrix.shape == given_.shape
    assert all(matrix[0, i, j] == j - i + n - 1 for i in range(n) for j in range(m))
    assert torch.equal(given_.transpose().dense(), matrix.transpose(1, 2))
    start = data.draw(st.integers(0, n - 1))
    stop, keys = data.draw(st.integers(start + 1, n)), data.draw(st.integers(1, m))
    assert torch.equal(given_.block(start, stop, keys).dense(), matrix[:, start:stop, :keys])


def test_wrong_diagonals_are_refused() -> None:
    with pytest.raises(PositionError, match=r"3 queries and 4 keys has 6 diagonals; given are 7"):
        Toeplitz(torch.zeros(1, 7, dtype=torch.uint8), 3, 4)
    with pytest.raises(PositionError, match=r"the diagonals of a lookup is \(b or 1, n \+ m - 1\) of torch.uint8"):
        Toeplitz(torch.zeros(1, 6), 3, 4)


def of_offsets(n: int, m: int) -> Terms:
    index = Toeplitz(torch.randint(ROWS, (1, n + m - 1)).to(torch.uint8), n, m)
    return Terms(bias=(Lookup(torch.randn(ROWS, H), torch.arange(ROWS)[None], index),))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n", "m"), [(7, 7), (3, 8), (8, 3), (1, 5)])
def test_the_fused_kernel_reads_offsets_as_a_view(
    n: int, m: int, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_sdpa, "_BLOCK", 3)
    terms = replace(of_offsets(n, m), causal=causal)
    q, k, v = torch.randn(B, H, n, D), torch.randn(B, H, m, D), torch.randn(B, H, m, D)
    with Largest() as seen:
        found = attend(q, k, v, terms, "sdpa")
    assert torch.Size(seen.shape).numel() < max(H * n * m, B * H * (n + m) * D)
    torch.testing.assert_close(found, attend(q, k, v, terms, "dense"))


def test_a_long_text_takes_no_memory_for_each_pair() -> None:
    n = 1 << 13
    q = torch.randn(1, 1, n, 4)
    (bias,) = of_offsets(n, n).bias
    assert isinstance(bias, Lookup)
    with Largest() as seen:
        attend(q, q, q, Terms(bias=(bias.map(lambda table: table[:, :1]),)))
    assert torch.Size(seen.shape).numel() <= 32 * n


@pytest.mark.parametrize("name", ["t5", "graphormer", "alibi"])
def test_what_layers_share_is_gathered_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its gradient is that of a bias gathered in each layer."""
    torch.manual_seed(0)
    dims, structures = Dims(16, 2, 3), [path(("",) * 30), path(("",) * 28)]
    model = MODELS[name](dims, **({"paths": LabelPath(max_length=5, labels=("",))} if name == "graphormer" else {}))
    config = StackConfig.transformer(dims, 16, heads=2, attention=AttentionConfig(kernel="tiled"))
    stack = Stack(config, model).double()
    positions = encode(structures, model.encodings).to(torch.device("cpu"), torch.float64)
    x = torch.randn(2, 30, 16, dtype=torch.float64)

    def gradients() -> tuple[int, list[Tensor]]:
        made: list[Any] = []
        whole = Lookup.local
        with monkeypatch.context() as patched:
            patched.setattr(Lookup, "local", lambda self: made.append(1) or whole(self))
            out = stack.padded(x, positions)
        used = [p for p in stack.parameters() if p.requires_grad]
        grads = torch.autograd.grad(out.square().sum(), used, allow_unused=True)
        return len(made), [g for g in grads if g is not None]

    once, shared = gradients()
    monkeypatch.setattr(Lookup, "share", lambda self: self)
    each, alone = gradients()
    assert each == dims.layers * once
    for mine, theirs in zip(shared, alone, strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("queries", [1, 2, 3, 4])
@pytest.mark.parametrize(("n", "m"), [(7, 7), (3, 8), (8, 3)])
def test_causal_tiles_see_what_is_before_them(n: int, m: int, queries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiled_module, "QUERIES", queries)
    sizes = Sizes(n=n, m=m)
    for terms in (Terms(causal=True), drawn({"bias", "causal", "key", "value"}, n, sizes=sizes, grad=True)):
        for mine, theirs in zip(computed(terms, sizes, "tiled"), computed(terms, sizes, "dense"), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-10)


def test_tiles_drop_different_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiled_module, "QUERIES", 8)
    q, v = torch.zeros(1, 1, 32, 8), torch.eye(32).view(1, 1, 32, 32)
    kept = attend(q, torch.zeros(1, 1, 32, 8), v[..., :8], None, "tiled", dropout=0.5) > 0
    blocks = kept.view(4, 8, 8)
    assert not any(torch.equal(blocks[0], other) for other in blocks[1:])


def test_factors_of_structures_stay_when_shared_ones_become_a_bias() -> None:
    q, k, v = (torch.randn(B, H, 6, D, dtype=torch.float64) for _ in range(3))
    shared, own = (
        Factor(torch.randn(b, H, 6, 2, dtype=torch.float64), torch.randn(b, H, 6, 2, dtype=torch.float64))
        for b in (1, B)
    )
    bias = sum((f.left @ f.right.transpose(-1, -2) for f in (shared, own)), torch.zeros(1, dtype=torch.float64))
    for kernel in ("dense", "sdpa", "tiled", "small"):
        found = attend(q, k, v, Terms(factors=(shared, own)), kernel)
        torch.testing.assert_close(found, attend(q, k, v, Terms(bias=(bias,)), "dense"))


def test_what_was_gathered_without_gradients_is_not_used_for_training() -> None:
    table = torch.randn(ROWS, H, requires_grad=True)
    index = torch.randint(ROWS, (B, N, N)).to(torch.uint8)
    terms = Terms(bias=(Lookup(table, torch.arange(ROWS)[None], index).share(),))
    with torch.no_grad():
        attend(*numbers(), terms, "tiled")
    attend(*numbers(), terms, "tiled").square().sum().backward()
    assert table.grad is not None
    assert table.grad.abs().sum() > 0


@pytest.mark.parametrize("backwards", [False, True])
def test_more_values_than_a_byte_has_keep_their_index(backwards: bool) -> None:
    """A text by diagonals, and one that is read from its end, whose index is a matrix."""
    n = 200
    order = torch.arange(n).flip(0).numpy() if backwards else torch.arange(n).numpy()
    of_pairs = encode([replace(path(("",) * n), order=order)], [Offset()])[Offset()]
    assert isinstance(of_pairs.index, Toeplitz) == (not backwards)
    places = torch.from_numpy(order)
    assert torch.equal(of_pairs.dense()[0], places[None] - places[:, None])

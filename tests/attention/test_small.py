"""Attention among few units: in many graphs at once as in each alone, and in padded batches as the reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from structpe.attention import KERNELS, Call, Layout, attend, attend_ragged, watching
from structpe.attention.attend import cheapest
from structpe.dropout import noise
from structpe.errors import StructPEError
from structpe.terms import Factor, Lookup, Terms
from tests.examples import examples

HEADS, WIDTH = 3, 4
SHAPES = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 7)), min_size=1, max_size=4)


def drawn(shapes: list[tuple[int, int]], seed: int) -> Layout:
    """The layout of buckets of these shapes, some of whose structures are smaller than the largest."""
    generator = torch.Generator().manual_seed(seed)
    sizes = []
    for b, n in shapes:
        sizes += [n, *torch.randint(1, n + 1, (b - 1,), generator=generator).tolist()]
    return Layout.of(sizes, torch.tensor([b for b, _ in shapes]).cumsum(0).tolist())


def split(projected: Tensor, heads: int = HEADS) -> tuple[Tensor, ...]:
    return projected.view(len(projected), 3, heads, -1).unbind(1)


def biases(shapes: list[tuple[int, int]], seed: int) -> list[Terms]:
    """A table that all share, looked up, and numbers of each pair beside it in every second bucket."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(5, HEADS, dtype=torch.float64, generator=generator, requires_grad=True)
    said = []
    for i, (b, n) in enumerate(shapes):
        index = torch.randint(0, 5, (b, n, n), generator=generator)
        rows = torch.arange(5).expand(b if i % 3 else 1, -1)
        found = Terms(bias=(Lookup(table, rows, index),), scale=(0.5, -0.5, 0.0)[i % 3])
        if i % 2:
            pairs = torch.randn(1, HEADS, n, n, dtype=torch.float64, generator=generator)
            pairs[torch.rand(pairs.shape, generator=generator) < 0.4] = -math.inf  # some nodes attend nowhere
            found = found + Terms(bias=(pairs.requires_grad_(),))
        said.append(found)
    return said


def one_by_one(projected: Tensor, layout: Layout, said: list[Terms]) -> Tensor:
    """Each graph alone, without a place that is empty, by the reference."""
    found, start = [], 0
    for number, terms in enumerate(said):
        there = layout.real(number, projected.device)
        for i, size in enumerate(there.sum(1).tolist()):
            part = projected[start : start + size].view(size, 3, HEADS, WIDTH).permute(1, 2, 0, 3)[:, None]
            changed = Terms(bias=tuple(cut(bias, i, size) for bias in terms.bias), scale=terms.scale)
            found.append(attend(*part, changed, "dense")[0].transpose(0, 1).flatten(1))
            start += size
    return torch.cat(found)


def cut(bias: object, i: int, size: int) -> object:
    if isinstance(bias, Tensor):
        return bias[:, :, :size, :size]
    assert isinstance(bias, Lookup)
    return Lookup(bias.table, bias.rows[:1], bias.index[i : i + 1, :size, :size])


@examples(25)
@given(SHAPES, st.integers(0, 99))
def test_layers_that_share_a_bias_compute_what_layers_with_their_own_do(
    shapes: list[tuple[int, int]], seed: int
) -> None:
    """It is padded once for both layers; masked pairs, and nodes that attend nowhere, are masked in both."""
    layout, found = drawn(shapes, seed), []
    for shared in (False, True):
        generator = torch.Generator().manual_seed(seed)
        table = torch.randn(5, HEADS, dtype=torch.float64, generator=generator)
        table[seed % 5] = -math.inf
        table.requires_grad_()
        x = torch.randn(layout.units, 3 * HEADS * WIDTH, dtype=torch.float64, generator=generator)
        biases = [
            Lookup(table, torch.arange(5)[None], torch.randint(0, 5, (b, n, n), generator=generator))
            for b, n in layout.shapes
        ]
        said = [Terms(bias=(bias.share() if shared else bias,)) for bias in biases]
        for _ in range(2):
            mixed = attend_ragged(*split(x), layout, said, "small")
            x = x + mixed.flatten(1).repeat(1, 3)
        (gradient,) = torch.autograd.grad(x.square().sum(), table)
        found.append((x.detach(), gradient))
    for given_out, expected in zip(*found, strict=True):
        torch.testing.assert_close(given_out, expected, rtol=1e-12, atol=1e-12)


@given(SHAPES, st.integers(0, 99), st.booleans(), st.sampled_from(["auto", "small", "sdpa", "dense"]))
def test_it_is_attention_in_each_graph_alone_in_values_and_gradients(
    shapes: list[tuple[int, int]], seed: int, with_bias: bool, kernel: str
) -> None:
    layout = drawn(shapes, seed)
    generator = torch.Generator().manual_seed(seed)
    projected = torch.randn(
        layout.units, 3 * HEADS * WIDTH, dtype=torch.float64, generator=generator, requires_grad=True
    )
    said = biases(list(layout.shapes), seed) if with_bias else [Terms()] * len(shapes)
    asked = [projected, *{id(x): x for terms in said for b in terms.bias for x in [getattr(b, "table", b)]}.values()]
    towards = torch.randn(layout.units, HEADS * WIDTH, dtype=torch.float64, generator=generator)

    found = attend_ragged(*split(projected), layout, said, kernel).flatten(1)
    expected = one_by_one(projected, layout, said)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    ours = torch.autograd.grad(found, asked, towards)
    theirs = torch.autograd.grad(expected, asked, towards)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)
    assert all(x.isfinite().all() for x in (found, *ours))


@given(SHAPES, st.integers(0, 99))
def test_tensors_of_their_own_give_what_views_of_one_tensor_give(shapes: list[tuple[int, int]], seed: int) -> None:
    layout = drawn(shapes, seed)
    generator = torch.Generator().manual_seed(seed)
    projected = torch.randn(layout.units, 3 * HEADS * WIDTH, generator=generator, requires_grad=True)
    q, k, v = split(projected)
    for given_parts in ((q.contiguous(), k, v), (k, q, v), (q, q, q)):
        views = attend_ragged(*(x.clone() for x in given_parts), layout, [Terms()] * len(shapes))
        torch.testing.assert_close(attend_ragged(*given_parts, layout, [Terms()] * len(shapes)), views)


def test_small_and_large_buckets_go_to_the_kernels_that_suit_them() -> None:
    layout = Layout.of([5, 9, 9, 60, 61], [1, 3, 5])
    projected = torch.randn(layout.units, 3 * HEADS * WIDTH, dtype=torch.float64, requires_grad=True)
    with watching() as noted:
        found = attend_ragged(*split(projected), layout, [Terms()] * 3)
    assert [choice.kernel for choice in noted] == ["small", "small", "sdpa"]
    assert noted[2].others["small"] == "is for 2 to 40 units, and these are 61 queries and 61 keys"
    torch.testing.assert_close(found.flatten(1), one_by_one(projected, layout, [Terms()] * 3))


def test_buckets_with_biases_from_tables_are_computed_at_once_until_their_weights_are_large() -> None:
    layout, x = Layout.of([70, 90, 100], [2, 3]), torch.randn(260, 3 * HEADS * WIDTH, dtype=torch.float64)
    table = torch.randn(5, HEADS, dtype=torch.float64)
    said = [Terms(bias=(Lookup(table, torch.arange(5)[None], torch.randint(5, (b, n, n))),)) for b, n in layout.shapes]
    with watching() as chosen:
        mixed = attend_ragged(*split(x), layout, said)
    assert [each.kernel for each in chosen] == ["small", "small"]
    torch.testing.assert_close(mixed.flatten(1), one_by_one(x, layout, said))
    many = replace(chosen[0].call, shape=(8, HEADS, 512, 512, WIDTH))
    assert not KERNELS["small"].suits(many)


def test_what_padding_would_read_is_never_seen() -> None:
    layout = Layout.of([1, 3])
    projected = torch.randn(4, 3 * HEADS * WIDTH, dtype=torch.float64)
    projected[0] = 1e150  # padding holds the parts of unit 0
    found = attend_ragged(*split(projected), layout, [Terms()]).flatten(1)
    torch.testing.assert_close(found, one_by_one(projected, layout, [Terms()]))


def test_dropped_weights_are_dropped_of_values_and_gradients_alike() -> None:
    """With values that are unit vectors the output is the weights; the gradient of a value is the same weight."""
    n, heads = 16, 1
    torch.manual_seed(0)
    q, k = torch.randn(2, n, n, dtype=torch.float64)
    projected = torch.cat([q, k, torch.eye(n, dtype=torch.float64)], dim=1).requires_grad_()
    kept = attend_ragged(*split(projected, heads), Layout.full(1, n), [Terms()], dropout=0.25).flatten(1)
    whole = (q @ k.T / math.sqrt(n)).softmax(-1)
    dropped = kept == 0
    torch.testing.assert_close(kept[~dropped], (whole / 0.75)[~dropped])
    assert 0.1 < dropped.double().mean() < 0.4

    towards = torch.randn(n, n, dtype=torch.float64)
    of_q, of_k, of_v = torch.autograd.grad(kept, projected, towards)[0].split(n, dim=1)
    q, k = q.requires_grad_(), k.requires_grad_()
    by_hand = torch.where(dropped, 0.0, (q @ k.T / math.sqrt(n)).softmax(-1) / 0.75)
    torch.testing.assert_close(of_v, by_hand.T @ towards)
    torch.testing.assert_close((of_q, of_k), torch.autograd.grad(by_hand, (q, k), towards))


@pytest.mark.parametrize(
    ("terms", "at_once"),
    [
        (Terms(), True),
        (Terms(scale=2.0), True),
        (Terms(bias=(torch.zeros(1, 1, 3, 3),)), True),
        (Terms(factors=(Factor(torch.zeros(1, 1, 3, 2), torch.zeros(1, 1, 3, 2)),)), False),
        (Terms(causal=True), False),
        (Terms(maps=(lambda q, k: (q, k),)), False),
    ],
    ids=["nothing", "scale", "bias", "factors", "causal", "maps"],
)
def test_several_buckets_are_computed_at_once_where_they_can_be(terms: Terms, at_once: bool) -> None:
    x, layout = torch.zeros(3, 3, 4), Layout.full(1, 3)
    for q, expected in ((x, at_once), (x.to(torch.bfloat16), False)):
        with watching() as noted:
            attend_ragged(q, q, q, layout, [terms])
        assert KERNELS["small"].at_once(noted[0].call) is expected


def test_a_second_derivative_is_refused_not_wrong() -> None:
    projected = torch.randn(3, 3 * HEADS * WIDTH, dtype=torch.float64, requires_grad=True)
    out = attend_ragged(*split(projected), Layout.full(1, 3), [Terms()])
    (first,) = torch.autograd.grad(out.square().sum(), projected, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


@pytest.mark.parametrize(
    ("count", "buckets"), [(4, 1), (3, 2), (3, 0)], ids=["more units", "more terms", "fewer terms"]
)
def test_what_does_not_fit_the_layout_is_refused(count: int, buckets: int) -> None:
    x = torch.zeros(count, 3, 4)
    with pytest.raises(StructPEError, match=r"the layout has 3 units in 1 buckets, and there are \d terms"):
        attend_ragged(x, x, x, Layout.of([1, 2]), [Terms()] * buckets)


# --- one padded batch ---

B, H, N, D = 70, 4, 20, 3


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


PADDING = torch.arange(N) < torch.arange(B)[:, None, None, None] % (N + 1)
"""Of graphs of all sizes; also of size 0, in which no unit attends to any."""
FORBIDDEN = torch.zeros(1, 1, N, N, dtype=torch.float64).masked_fill(torch.rand(N, N) < 0.5, -math.inf)
FORBIDDEN[:, :, 3] = -math.inf  # a query that may attend nowhere
CASES: dict[str, Callable[[Tensor], Terms]] = {
    "nothing": lambda bias: Terms(),
    "padding": lambda bias: Terms(mask=(PADDING,)),
    "bias": lambda bias: Terms(bias=(bias,)),
    "bias and padding": lambda bias: Terms(bias=(bias,), mask=(PADDING,)),
    "one bias of all": lambda bias: Terms(bias=(bias[:1, :1],), scale=0.5),
    "bias that forbids": lambda bias: Terms(bias=(bias, FORBIDDEN)),
    "bias that forbids, and padding": lambda bias: Terms(bias=(bias[:1], FORBIDDEN), mask=(PADDING,)),
    "bias and a scale below 0": lambda bias: Terms(bias=(bias,), scale=-0.5),
    "bias and a scale of 0": lambda bias: Terms(bias=(bias,), scale=0.0),
    "factors": lambda bias: Terms(factors=(Factor(bias[..., :2], bias[..., 2:4]),), bias=(bias,), scale=0.5),
    "causal bias": lambda bias: Terms(bias=(bias,), causal=True),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_what_the_reference_says(case: str) -> None:
    q, k, v, bias = numbers(B, H, N, D), numbers(B, H, N, D), numbers(B, H, N, D), numbers(B, H, N, N)
    with watching() as noted:
        attend(q, k, v, CASES[case](bias))
    assert [choice.kernel for choice in noted] == ["small"]
    weights = torch.randn(B, H, N, D, dtype=torch.float64)
    found = []
    for kernel in ("small", "dense"):
        out = attend(q, k, v, CASES[case](bias), kernel)
        given = (q, k, v, bias) if "bias" in case or case == "factors" else (q, k, v)
        found.append([out, *torch.autograd.grad((out * weights).sum(), given)])
    for mine, reference in zip(*found, strict=True):
        assert mine.isfinite().all()
        torch.testing.assert_close(mine, reference, rtol=0, atol=1e-9)


def test_dropped_weights_are_made_up_for_on_average() -> None:
    q, k = numbers(B, H, N, D), numbers(B, H, N, D)
    ones = torch.ones(B, H, N, D, dtype=torch.float64)
    out = attend(q, k, ones, None, "small", dropout=0.5)
    assert out.std() > 0.1
    assert out.mean().item() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("b", "n", "m"), [(2, 20, 20), (70, 1, 20), (70, 20, 50), (70, 50, 50)])
def test_for_few_graphs_or_many_units_the_fused_kernel_stays(b: int, n: int, m: int) -> None:
    k = numbers(b, H, m, D)
    with watching() as noted:
        attend(numbers(b, H, n, D), k, k)
    assert [choice.kernel for choice in noted] == ["sdpa"]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("b", "n", "m"), [(2, 20, 20), (70, 1, 20), (3, 200, 200)])
def test_with_dropout_no_kernel_of_a_cpu_is_fused(b: int, n: int, m: int, causal: bool) -> None:
    """What is dropped is drawn as `noise` does, so that the products can be made without the kernel."""
    q, k = numbers(b, H, n, D), numbers(b, H, m, D)
    torch.manual_seed(0)
    with watching() as noted:
        out = attend(q, k, k, Terms(causal=causal), dropout=0.25)
    assert [choice.kernel for choice in noted] == ["small"]
    there = torch.ones(n, m, dtype=torch.bool).tril(m - n if causal else m)
    weights = (q @ k.transpose(-1, -2) / math.sqrt(D)).masked_fill(~there, -math.inf).softmax(-1)
    torch.manual_seed(0)
    torch.testing.assert_close(out, (weights * noise(weights, 0.25)) @ k)


@pytest.mark.parametrize("kernel", ["small", "tiled", "sdpa", "tables"])
def test_with_dropout_gradients_are_those_of_the_weights_that_were_kept(kernel: str) -> None:
    """So many weights that each draw decides about four."""
    q, k, v = (numbers(1, 2, 150, D) for _ in range(3))
    table = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    bias = Lookup(table, torch.arange(3)[None], torch.randint(3, (1, 150, 150)))
    upstream, steps = torch.randn(1, 2, 150, D, dtype=torch.float64), [torch.randn_like(x) for x in (q, k, v, table)]

    def moved(by: float) -> Tensor:
        torch.manual_seed(0)
        a, b, c, values = (x + by * step for x, step in zip((q, k, v, table), steps, strict=True))
        return (attend(a, b, c, Terms(bias=(replace(bias, table=values),)), kernel, dropout=0.3) * upstream).sum()

    grads = torch.autograd.grad(moved(0.0), (q, k, v, table))
    along = sum((grad * step).sum() for grad, step in zip(grads, steps, strict=True))
    torch.testing.assert_close((moved(1e-5) - moved(-1e-5)) / 2e-5, along, rtol=1e-5, atol=1e-6)


def test_a_ragged_batch_drops_as_products_do() -> None:
    heads, n = 4, 60
    projected = torch.randn(2 * n, 3 * heads * D, dtype=torch.float64, requires_grad=True)
    q, k, v = projected.view(2, n, 3, heads, D).permute(2, 0, 3, 1, 4)
    torch.manual_seed(0)
    out = attend_ragged(*split(projected, heads), Layout.full(2, n), [Terms()], "small", dropout=0.3)
    weights = (q @ k.transpose(-1, -2) / math.sqrt(D)).softmax(-1)
    torch.manual_seed(0)
    expected = ((weights * noise(weights, 0.3)) @ v).transpose(1, 2).flatten(0, 1)
    torch.testing.assert_close(out, expected)
    upstream = torch.randn_like(out)
    found, theirs = (torch.autograd.grad((each * upstream).sum(), projected)[0] for each in (out, expected))
    torch.testing.assert_close(found, theirs)


@pytest.mark.parametrize(
    ("used", "n", "kernel"), [("bias", 300, "small"), ("bias", 3000, "tiled"), ("", 3000, "tiled")]
)
def test_with_dropout_many_units_are_left_to_tiles(used: str, n: int, kernel: str) -> None:
    """As all weights would be kept otherwise."""
    fields = frozenset(used.split())
    call = Call(fields, "cpu", torch.float32, (1, 8, n, n, 64), gradients=True, dropout=0.1)
    assert cheapest(call).name == kernel
    traced = replace(call, traced=True)
    assert cheapest(traced).name == cheapest(replace(traced, dropout=0.0)).name

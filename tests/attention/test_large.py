"""Tables with as many rows as pairs, and long sequences in which a unit attends to few others."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from structpe.attention import KERNELS, Call, attend, watching
from structpe.attention.attend import cheapest
from structpe.attention.gather import is_large
from structpe.terms import Lookup, Pairs, Terms, Toeplitz
from tests.attention.drawing import HERE, Sizes, drawn, everything, tables_of
from tests.together import together

B, H, N, D = 2, 3, 6, 4


def inputs(n: int, m: int, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(B, H, size, D, generator=generator, dtype=torch.float64).requires_grad_() for size in (n, m, m)]


def outcome(terms: Terms, kernel: str, n: int, m: int) -> list[Tensor]:
    """The output, and the gradients of queries, keys, values and tables."""
    given = [*inputs(n, m), *tables_of(terms)]
    out = attend(*given[:3], terms, kernel)
    weigh = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return [out, *torch.autograd.grad((out * weigh).sum(), given, allow_unused=True, materialize_grads=True)]


def assert_as_dense(terms: Terms, kernel: str, n: int, m: int) -> None:
    mine, dense = (outcome(terms, each, n, m) for each in (kernel, "dense"))
    torch.testing.assert_close(mine, dense, rtol=1e-9, atol=1e-9)


WITH_VECTORS = [
    (kernel, field)
    for kernel in sorted(set(HERE) - {"dense"})
    for field in ("key", "query", "value")
    if field in KERNELS[kernel].supports and "feature_map" not in KERNELS[kernel].needs
]


@together(("kernel", "field"), WITH_VECTORS)
@together(("rows", "index", "heads"), [(B, B, 1), (1, B, H), (B, 1, H), (1, 1, 1)])
def test_a_table_with_a_row_for_each_pair(kernel: str, field: str, rows: int, index: int, heads: int) -> None:
    chosen = KERNELS[kernel]
    for count, large in ((2, False), (H * N * D, True)):
        table = torch.randn(2 * count, heads, D, dtype=torch.float64, requires_grad=True)
        x = Lookup(table, torch.randint(2 * count, (rows, count)), torch.randint(count, (index, N, N)))
        assert is_large(x, B * H * N) == large
        assert Call.of(Terms(**{field: (x,)}), torch.zeros(1), (B, H, N, N, D), 0.0, False).large == large
        listed = Terms(pairs=(Pairs(*torch.ones(B, N, N).nonzero().T),)) if "pairs" in chosen.needs else Terms()
        assert_as_dense(Terms(**{field: (x,)}) + listed, kernel, N, N)


@pytest.mark.parametrize("heads", [1, H])
@pytest.mark.parametrize("shared", [True, False])
def test_products_with_many_rows(heads: int, shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector for each offset, as in ``huang-m3``, in blocks of a query."""
    monkeypatch.setattr("structpe.attention.products.CELLS", 1)
    table = torch.randn(2 * N - 1, heads, D, dtype=torch.float64, requires_grad=True)
    index, rows = Toeplitz(torch.arange(2 * N - 1)[None], N, N), torch.arange(2 * N - 1).expand(1 if shared else B, -1)
    x = Lookup(table, rows, index if shared else index.dense().expand(B, -1, -1))
    assert_as_dense(Terms(product=(x, x), scale=0.5, causal=True), "products", N, N)
    q = torch.zeros(B, H, 512, D)
    call = Call.of(Terms(product=(Lookup(table, rows, index),)), q, (B, H, 512, 512, D), 0.0, False)
    assert cheapest(call).name == "products"


def window(n: int, m: int, low: int, high: int) -> Pairs:
    """The pairs of which the key is ``low`` to ``high`` places after the query, most of them."""
    offset = torch.arange(m)[None] - torch.arange(n)[:, None]
    near = ((offset >= low) & (offset <= high)).expand(B, -1, -1)
    return Pairs(*(near & (torch.rand(B, n, m) < 0.9)).nonzero().T)


@pytest.mark.parametrize(("low", "high"), [(-3, 3), (-7, -4), (2, 9), (0, 0)])
@pytest.mark.parametrize(("n", "m"), [(70, 70), (64, 90), (90, 64)])
def test_blocks_and_strips_are_what_dense_is(low: int, high: int, n: int, m: int) -> None:
    for seed, some in enumerate([set(), {"bias"}, {"causal"}, *everything("band")]):
        terms = drawn(some - {"pairs"}, seed, sizes=Sizes(B, H, n, m, D), grad=True)
        assert_as_dense(terms + Terms(pairs=(window(n, m, low, high),)), "band", n, m)


def test_a_second_list_leaves_only_pairs_of_both() -> None:
    lists = window(80, 80, -4, 4), window(80, 80, -30, 1)
    assert_as_dense(Terms(pairs=lists), "band", 80, 80)


@pytest.mark.parametrize(
    ("n", "reach", "kernel"), [(20, 3, "masked"), (600, 3, "band"), (600, 150, "masked"), (600, 0, "edges")]
)
def test_auto_takes_strips_of_a_narrow_band_only(n: int, reach: int, kernel: str) -> None:
    q, k, v = inputs(n, n)
    with watching() as noted:
        attend(q, k, v, Terms(pairs=(window(n, n, -reach, reach),)))
    assert noted[0].kernel == kernel
    assert noted[0].call.span == 2 * reach + 1


def test_auto_follows_a_list_of_few_pairs_far_apart() -> None:
    q, k, v = inputs(600, 600)
    far = torch.stack([torch.zeros(600, dtype=torch.int64), torch.arange(600), torch.arange(600).flip(0)])
    with watching() as noted:
        attend(q, k, v, Terms(pairs=(Pairs(*far),)))
    assert noted[0].kernel == "edges"
    assert noted[0].others["band"] == "is for a band much narrower than 600 keys, and this one has 1199 offsets"


def test_an_empty_list_has_no_offsets() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    assert Pairs(none, none, none).offsets == (0, 0)
    q, k, v = inputs(N, N)
    with watching() as noted:
        assert not attend(q, k, v, Terms(pairs=(Pairs(none, none, none),))).any()
    assert noted[0].others["band"] == "is for listed pairs that form a band, which is not known of these"


@pytest.mark.parametrize("kernel", ["tables", "sdpa", "small"])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_bias_of_the_same_pairs_as_vectors_at_keys(kernel: str, rows: int) -> None:
    generator = torch.Generator().manual_seed(rows)

    def table(*width: int) -> Tensor:
        return torch.randn(2 * rows, H, *width, dtype=torch.float64, generator=generator, requires_grad=True)

    places = (
        torch.randint(2 * rows, (B, rows), generator=generator),
        torch.randint(rows, (B, N, N), generator=generator),
    )
    key, bias, query = Lookup(table(D), *places), Lookup(table(), *places), Lookup(table(D), *places)
    others = Lookup(table(), places[0], places[1].transpose(1, 2))
    for shared in (False, True):
        biases = (bias.share() if shared else bias, others, bias)
        assert_as_dense(Terms(key=(key, key), query=(query,), bias=biases, scale=-0.5), kernel, N, N)

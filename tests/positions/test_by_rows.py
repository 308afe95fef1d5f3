"""Blocks of rows: the results and gradients of all rows at once, for functions and for the models that use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import structpe
from structpe.data.batch import Batch
from structpe.nn import Stack, StackConfig
from structpe.nn.layer import AttentionConfig
from structpe.positions.by_rows import LIVE, ONE_BLOCK, Ranges, by_rows, cut
from structpe.positions.spectra import SpectralTransformer
from structpe.structure import Structure
from tests.representatives import only

MODELS = ("dape", "dape-v2", "disan-block", "fire", "graphormer-3d", "grit", "stable-expressive")
WAYS = {
    "float64": (torch.float64, False, 1e-12),
    "float32": (torch.float32, False, 1e-4),
    "autocast": (torch.float32, True, 3e-2),
}
IN_WAYS = [(name, way) for name in MODELS for way in WAYS]
QUICK = [*((name, "float64") for name in MODELS), ("dape", "float32"), ("fire", "autocast"), ("grit", "autocast")]
"""Each model, and each way; those of one function are the same in all."""
NINE = [(slice(first, min(first + 2, 9)), slice(2 * first, min(2 * first + 4, 18))) for first in range(0, 9, 2)]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Blocks of few rows; how many there were, call by call."""
    seen: list[int] = []
    plain = torch.autograd.Function.apply.__func__  # type: ignore[attr-defined]
    monkeypatch.setitem(LIVE, "cpu", 4000)
    monkeypatch.setitem(ONE_BLOCK, "cpu", 0)

    def noted(kind: Any, *given: Any) -> Any:
        seen.extend([len(given[0].blocks)] if kind.__name__ == "_ByRows" else [])
        return plain(kind, *given)

    monkeypatch.setattr(torch.autograd.Function, "apply", classmethod(noted))
    return seen


def tree(size: int, seed: int) -> Structure:
    rng = np.random.default_rng(seed)
    edges = np.stack([rng.integers(0, np.arange(1, size)), np.arange(1, size)], axis=1)
    places = {"coordinates": rng.random((size, 3))}
    return Structure(("w",) * size, edges, directed=False, order=np.arange(size), root=0, features=places)


def results(name: str, sizes: list[int], dtype: torch.dtype, dropped: float, cast: bool) -> dict[str, Tensor]:
    """The output of a stack, and all gradients."""
    torch.manual_seed(0)
    model = structpe.build(name, structpe.Dims(8, 2, 2))
    own = AttentionConfig(dropout=dropped)
    heads: dict[str, Any] = {} if name == "disan-block" else {"heads": 2}  # it has none
    made = StackConfig(width=8, layers=2, **heads, attention=own, message_passing=None, feedforward=8)
    stack = Stack(made, model).to(dtype)
    for parameter in stack.parameters():  # away from what is the same everywhere at first
        parameter.data += 0.1 * torch.randn_like(parameter)
    batch = Batch.of([tree(size, seed) for seed, size in enumerate(sizes)], model.encodings)
    x = torch.randn(sum(sizes), 8, dtype=dtype, requires_grad=True)
    torch.manual_seed(1)
    with torch.autocast("cpu", enabled=cast):
        out = stack(x, batch)
    (out * torch.linspace(-1, 1, 8, dtype=dtype)).square().sum().backward()
    grads = {key: each.grad for key, each in stack.named_parameters() if each.grad is not None}
    return {"out": out.detach(), "x": x.grad, **grads}  # type: ignore[dict-item]


@pytest.mark.parametrize("sizes", only([[12], [7, 12, 3]], [7, 12, 3]), ids=str)
@pytest.mark.parametrize(("name", "way"), only(IN_WAYS, *QUICK), ids=str)
def test_models_are_the_same_in_blocks(name: str, way: str, sizes: list[int], request: pytest.FixtureRequest) -> None:
    """Dropout too: what is random is drawn before."""
    dtype, cast, close = WAYS[way]
    dropped = 0.3 if dtype == torch.float64 else 0.0
    whole = results(name, sizes, dtype, dropped, cast)
    seen = request.getfixturevalue("tiny")
    blocks = results(name, sizes, dtype, dropped, cast)
    assert max(seen, default=1) > 1, "nothing was cut"
    assert whole.keys() == blocks.keys()
    scale = max(float(each.abs().max()) for each in whole.values())
    for key, each in whole.items():
        torch.testing.assert_close(blocks[key], each, rtol=close, atol=close * scale, msg=f"{key} differs")


def several(block: Ranges, x: Tensor, y: Tensor, table: Tensor, unused: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of one kind, rows of another kind, and a sum."""
    del unused
    pairs = (y.view(2 * len(x), -1) @ table).tanh()
    return x * pairs.view(len(x), 2, -1).sum(1), pairs, (x.sum(0) * table.sum(1)).exp()[None]


def inputs() -> list[Tensor]:
    torch.manual_seed(0)
    shapes = (9, 3), (18, 3), (3, 3), (2, 2)
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def cut_in(blocks: list[Ranges]) -> Callable[..., tuple[Tensor, ...]]:
    return lambda x, y, *whole: by_rows(several, blocks, [x, y], whole, of=(0, 1), out=(0, 1, None))


def at_once(x: Tensor, y: Tensor, *whole: Tensor) -> tuple[Tensor, ...]:
    first, second, _ = several(NINE[0], x, y, *whole)  # type: ignore[misc]
    sums = sum((several(block, x[block[0]], y[block[1]], *whole)[2] for block in NINE), torch.zeros(()))  # type: ignore[misc]
    return first, second, sums


def test_rows_of_two_kinds_and_sums() -> None:
    given = inputs()
    mine, theirs = cut_in(NINE)(*given), at_once(*given)
    torch.testing.assert_close(mine, theirs)
    weights = [torch.randn_like(each) for each in mine]
    for some in ((0, 1, 2), (0,), (1,), (2,)):  # a result that nothing depends on has no gradient
        of_mine, of_theirs = (
            torch.autograd.grad([made[i] for i in some], given, [weights[i] for i in some], True, allow_unused=True)
            for made in (mine, theirs)
        )
        for x, a, b in zip(given, of_mine, of_theirs, strict=True):
            torch.testing.assert_close(*(torch.zeros_like(x) if grad is None else grad for grad in (a, b)))


def test_gradients_of_gradients() -> None:
    def made(x: Tensor, y: Tensor, table: Tensor) -> tuple[Tensor, ...]:
        return cut_in(NINE)(x, y, table, torch.zeros(1))[:2]

    assert torch.autograd.gradgradcheck(made, inputs()[:3])


def test_one_block_is_a_call() -> None:
    given = inputs()
    whole: list[Ranges] = [(slice(0, 9), slice(0, 18))]
    assert all("_ByRows" not in type(each.grad_fn).__name__ for each in cut_in(whole)(*given))
    with torch.no_grad():
        torch.testing.assert_close(cut_in(NINE)(*given)[:2], cut_in(whole)(*given)[:2])


def test_torch_func_sees_a_call() -> None:
    x, *others = (each.detach() for each in inputs())
    made = torch.func.grad(lambda x: cut_in(NINE)(x, *others)[0].sum())(x)
    torch.testing.assert_close(made, torch.autograd.grad(at_once(y := x.requires_grad_(), *others)[0].sum(), y)[0])


def test_autocast_does_not_keep_a_cast_without_its_gradient() -> None:
    weight = torch.nn.Parameter(torch.eye(3))
    x = torch.ones(9, 3)
    rows: list[Ranges] = [block[:1] for block in NINE]
    with torch.autocast("cpu"):
        inside = by_rows(lambda _, x, weight: (x @ weight,), rows, [x], [weight])[0]
        after = x @ weight
    (inside.float().sum() + 2 * after.float().sum()).backward()
    torch.testing.assert_close(weight.grad, torch.full((3, 3), 27.0))


def test_cut() -> None:
    cpu = torch.device("cpu")
    assert cut(0, 7, cpu) == [(slice(0, 0),)]
    assert cut(5, 1, cpu) == [(slice(0, 5),)]
    blocks = cut(1000, 1 << 16, cpu)
    assert [rows.start for (rows,) in blocks[1:]] == [rows.stop for (rows,) in blocks[:-1]]
    assert (blocks[0][0].start, blocks[-1][0].stop) == (0, 1000)
    assert {rows.stop - rows.start for (rows,) in blocks[:-1]} == {LIVE["cpu"] >> 16}
    assert [rows.stop - rows.start for (rows,) in cut(4, 1 << 30, cpu)] == [1] * 4


@pytest.mark.parametrize("at_once", [1 << 25, 0], ids=["one block", "blocks"])
def test_a_transformer_of_eigenvectors_is_pytorchs(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its numbers, its gradients, what its dropout draws, and the names of its parameters."""
    monkeypatch.setitem(ONE_BLOCK, "cpu", at_once)
    monkeypatch.setitem(LIVE, "cpu", 4000)
    mine = SpectralTransformer(8, 2, 2, 32).double().mix
    layer = torch.nn.TransformerEncoderLayer(8, 2, 32, batch_first=True)
    theirs = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).double()
    theirs.load_state_dict(mine.state_dict())
    x = torch.randn(40, 5, 8, dtype=torch.float64, requires_grad=True)
    for training in (True, False):
        found = []
        for net in (mine.train(training), theirs.train(training)):
            torch.manual_seed(0)
            out = net(x)
            found.append([out, torch.rand(1), *torch.autograd.grad(out.sin().sum(), [x, *net.parameters()])])
        torch.testing.assert_close(*found)

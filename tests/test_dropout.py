"""Dropout on a CPU: what is drawn, what means and gradients are, and when PyTorch's own is taken."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from structpe.dropout import FEW, STEPS, Dropout, dropout, noise
from tests.representatives import only
from tests.together import together


@pytest.mark.parametrize("p", only([0.1, 0.25, 0.5, 0.9, 1 / STEPS], 0.1, 0.5, 1 / STEPS))
def test_so_many_are_dropped_and_the_mean_stays(p: float) -> None:
    torch.manual_seed(0)
    count = 4_000_000
    drawn = noise(torch.empty(count), p)
    dropped = round(p * STEPS) / STEPS
    assert drawn.unique().tolist() == pytest.approx([0.0, 1 / (1 - dropped)])
    share = (drawn == 0).double().mean().item()
    assert abs(share - dropped) < 5 * math.sqrt(dropped * (1 - dropped) / count)


def test_elements_are_dropped_independently() -> None:
    """The four elements of one draw, and neighbours of other draws."""
    torch.manual_seed(0)
    gone = (noise(torch.empty(4_000_000), 0.3) == 0).double() - 0.3
    for apart in (1, 2, 3, 4, 5, 64):
        together = (gone[apart:] * gone[:-apart]).mean().item()
        assert abs(together) < 5 * 0.3 * 0.7 / 2000


@together("shape", [(FEW,), (FEW + 1,), (3, 7, 1331), (1, FEW + 3)])
@together("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_values_and_gradients_are_multiplied_by_the_noise(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.randn(shape, dtype=dtype, requires_grad=True)
    torch.manual_seed(1)
    out = dropout(x, 0.4)
    torch.manual_seed(1)
    drawn = noise(x, 0.4)
    assert (out.shape, out.dtype, drawn.dtype) == (x.shape, dtype, dtype)
    assert torch.equal(out, x * drawn)
    (grad,) = torch.autograd.grad(out.sum(), x)
    assert torch.equal(grad, drawn)


@pytest.mark.parametrize(("count", "p"), [(FEW - 1, 0.4), (FEW, 0.1 / STEPS), (FEW, 1 - 0.1 / STEPS)])
def test_few_numbers_and_extreme_probabilities_are_pytorchs(count: int, p: float) -> None:
    x = torch.randn(count)
    torch.manual_seed(1)
    out = dropout(x, p)
    torch.manual_seed(1)
    assert torch.equal(out, functional.dropout(x, p))
    torch.manual_seed(1)
    assert noise(x, p).shape == x.shape


def test_a_generator_repeats_its_draws() -> None:
    like = torch.empty(FEW)
    first, again = (noise(like, 0.5, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, noise(like, 0.5, torch.Generator().manual_seed(4)))


def test_the_module_drops_in_training_only() -> None:
    module, x = Dropout(0.5), torch.randn(FEW)
    assert (module(x) == 0).any()
    assert module.eval()(x) is x
    assert dropout(x, 0.0) is x


def test_other_devices_draw_as_pytorch_does() -> None:
    x = torch.empty(FEW, device="meta")
    assert dropout(x, 0.5).device.type == noise(x, 0.5).device.type == "meta"


def test_a_compiled_function_drops_too() -> None:
    compiled = torch.compile(lambda x: dropout(x, 0.5), backend="eager", fullgraph=True)
    assert (compiled(torch.ones(FEW)) == 0).any()

"""Positions from differential equations: the authors' vector fields, the equation itself, and where it enters."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from structpe.attention import attend
from structpe.encodings import Feature, RandomWalk
from structpe.encodings.coordinates import Points
from structpe.errors import PositionError
from structpe.positions import Dims, Site
from structpe.positions.absolute import (
    FLOATER,
    ConvolutionField,
    FLOATERConvolution,
    FLOATERInput,
    LinearField,
    Trail,
    solve,
)
from structpe.positions.batch import encode
from structpe.structure import path
from tests.golden import Golden, golden
from tests.positions.cases import noise


def linear(given: Golden) -> LinearField:
    field = LinearField(given.cfg["d"]).double()
    weights = given.weights("linear.layers.")
    field.load_state_dict(
        {f"layers.{mine}.{part}": weights[f"{theirs}.linear.{part}"]
         for mine, theirs in ((0, 0), (1, 2)) for part in ("weight", "bias")}
    )  # fmt: skip
    return field


def convolution(given: Golden) -> ConvolutionField:
    field = ConvolutionField(given.cfg["layers"], given.cfg["d"]).double()
    weights = given.weights("conv.layers.")
    field.load_state_dict(
        {f"{mine}.{part}": weights[f"{theirs}.{part}"]
         for mine, theirs in (("down", "0.conv"), ("up", "2.conv_tr")) for part in ("weight", "bias")}
    )  # fmt: skip
    return field


@pytest.mark.parametrize("name", ["linear", "conv"])
def test_the_authors_vector_fields(name: str) -> None:
    given = golden("floater")
    field = linear(given) if name == "linear" else convolution(given)
    path_of_p = solve(field, given[f"in.{name}.p0"], 12, step=given.cfg["dt"])
    torch.testing.assert_close(path_of_p, given[f"out.{name}.rk4"], rtol=0, atol=1e-9)
    torch.testing.assert_close(path_of_p, given[f"out.{name}.dopri5"], rtol=0, atol=1e-5)


def test_the_linear_field_written_out() -> None:
    torch.manual_seed(0)
    field, p, t = LinearField(3).double(), noise(3).tolist(), 0.7
    (w1, c1), (w2, c2) = ((layer.weight.tolist(), layer.bias.tolist()) for layer in field.layers)
    first = [max(0.0, sum(w * x for w, x in zip(row, [*p, t], strict=True)) + c) for row, c in zip(w1, c1, strict=True)]
    expected = [sum(w * x for w, x in zip(row, [*first, t], strict=True)) + c for row, c in zip(w2, c2, strict=True)]
    given = field(torch.tensor(t, dtype=torch.float64), torch.tensor(p, dtype=torch.float64))
    torch.testing.assert_close(given, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


@pytest.mark.parametrize("first", [0, 3])
def test_the_path_of_a_linear_field_is_that_of_any_field(first: int) -> None:
    """Its gradients too, and their gradients."""
    torch.manual_seed(0)
    field, start = LinearField(5).double(), noise(3, 2, 5).requires_grad_()
    mine, theirs = (solve(each, start, 4, step=0.5, first=first) for each in (field, lambda t, p: field(t, p)))
    torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)
    given, weights = [start, *field.parameters()], noise(*mine.shape)
    grads = [torch.autograd.grad(each, given, weights, create_graph=True) for each in (mine, theirs)]
    torch.testing.assert_close(*grads, rtol=0, atol=1e-12)
    further = [torch.autograd.grad(sum(x.square().sum() for x in each), given) for each in grads]
    torch.testing.assert_close(*further, rtol=0, atol=1e-9)


def test_it_solves_an_equation_whose_solution_is_known() -> None:
    """dp/dt = t p, p(0) = 1 has the solution e^(t^2/2); the error of the method is of fourth order in the step."""
    errors = []
    for parts in (4, 8, 16):
        last = solve(lambda t, p: t * p, torch.ones(1, dtype=torch.float64), 3, step=1.0, parts=parts)[-1]
        errors.append(abs(float(last) - math.exp(2)))
    orders = [math.log2(a / b) for a, b in pairwise(errors)]
    assert all(3.5 < order < 4.5 for order in orders)


def test_sinusoids_are_a_special_case() -> None:
    """Survey, section 4.1.1: with h a rotation of pairs of channels, the path is that of sinusoids."""
    frequency = 100.0  # a full turn is 2 pi places of 0.01
    turn = torch.tensor([[0.0, -frequency], [frequency, 0.0]], dtype=torch.float64)
    given = solve(lambda t, p: p @ turn, torch.tensor([0.0, 1.0], dtype=torch.float64), 20, parts=50)
    expected = [[math.sin(t), math.cos(t)] for t in range(20)]
    torch.testing.assert_close(given, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-5)


def test_gradients_are_those_of_the_path() -> None:
    torch.manual_seed(0)
    field = LinearField(3).double()
    start = noise(2, 3).requires_grad_()
    parameters = list(field.parameters())

    def last(*weights: Tensor) -> Tensor:
        named = dict(zip([n for n, _ in field.named_parameters()], weights[1:], strict=True))
        return solve(lambda t, p: torch.func.functional_call(field, named, (t, p)), weights[0], 3, step=0.3, parts=2)

    assert torch.autograd.gradcheck(last, (start, *parameters), atol=1e-6)


def test_what_has_been_followed_is_not_followed_again() -> None:
    torch.manual_seed(0)
    field, start, trail, asked = ConvolutionField(2, 4).double(), noise(2, 4), Trail(), []
    field.register_forward_hook(lambda *_: asked.append(1))
    with torch.no_grad():
        whole = solve(field, start, 8)
        asked.clear()
        for count in (3, 8, 5):
            torch.testing.assert_close(trail.follow(field, start, count), whole[:count], rtol=0, atol=1e-15)
    assert len(asked) == 7 * 20


def test_a_path_of_other_parameters_is_computed_again() -> None:
    torch.manual_seed(0)
    field, start, trail = LinearField(3).double(), noise(2, 3), Trail()
    with torch.no_grad():
        trail.follow(field, start, 4)
        field.layers[0].weight.data = field.layers[0].weight.data * 2
        assert torch.equal(trail.follow(field, start, 4), solve(field, start, 4))
        assert torch.equal(trail.follow(field, start + 1, 4), solve(field, start + 1, 4))
        assert trail.follow(field.float(), start.float(), 4).dtype == torch.float32
    assert trail.follow(field, start.float(), 4).requires_grad


def test_biases_enter_queries_keys_and_values() -> None:
    """Terms are equivalent to adding the biases by hand before attention."""
    dims = Dims(8, 2, 3)
    torch.manual_seed(0)
    model, size = FLOATER(dims).double(), 5
    positions = encode([path(["w"] * size)] * 2, model.encodings)
    q, k, v = (noise(2, 2, size, 4, seed=seed) for seed in range(3))
    along = solve(model.field, model.start, size)
    assert tuple(along.shape) == (size, 3, 3, 8)
    for layer in range(3):
        biased = [
            x + along[:, part, layer].view(size, 2, 4).transpose(0, 1) for part, x in enumerate((q, k, v))
        ]  # fmt: skip
        given = attend(q, k, v, model.terms(model.prepare(positions), Site(layer)))
        torch.testing.assert_close(given, attend(*biased), rtol=0, atol=1e-12)


def test_layers_have_each_their_own_start_at_the_input() -> None:
    torch.manual_seed(0)
    model, x = FLOATERInput(Dims(8, 2, 3)).double(), noise(1, 4, 8)
    prepared = model.prepare(encode([path("abcd")], model.encodings))
    for layer in range(3):
        along = solve(model.field, model.start[layer], 4)
        torch.testing.assert_close(model.layer(x, prepared, Site(layer))[0], x[0] + along, rtol=0, atol=1e-12)


def test_only_the_first_layer_may_have_positions() -> None:
    model, x = FLOATERInput(Dims(8, 2, 3), layers=1).double(), noise(1, 4, 8)
    prepared = model.prepare(encode([path("abcd")], model.encodings))
    assert not torch.equal(model.layer(x, prepared, Site(0)), x)
    assert torch.equal(model.layer(x, prepared, Site(1)), x)
    with pytest.raises(PositionError, match="at 4 of 3 layers; give a number from 1 to 3, or None"):
        FLOATERInput(Dims(8, 2, 3), layers=4)


@pytest.mark.parametrize("cls", [FLOATER, FLOATERConvolution, FLOATERInput])
def test_longer_texts_go_on_with_the_same_path(cls: type[FLOATER]) -> None:
    torch.manual_seed(0)
    model = cls(Dims(8, 2, 2)).double()
    short, long = (model.prepare(encode([path(["w"] * n)], model.encodings))[0] for n in (4, 9))
    assert torch.equal(long[:4], short)


@pytest.mark.parametrize("cls", [FLOATER, FLOATERConvolution, FLOATERInput])
def test_real_numbers_and_vectors_are_refused(cls: type[FLOATER]) -> None:
    for encoding, text in ((Points(axes=1), "one number per unit"), (RandomWalk(steps=2), "one number per unit")):
        model = cls(Dims(8, 2, 2), encoding=encoding)
        assert isinstance(model, nn.Module)
        with pytest.raises(PositionError, match=text):
            model.prepare(encode([path("abcd")], model.encodings))


def test_places_are_counted_from_zero() -> None:
    model = FLOATER(Dims(8, 2, 2), encoding=Feature("place", missing=-1))
    with pytest.raises(PositionError, match=r"places 0, 1, ...; its encoding gives -1 of dtype torch.int64"):
        model.prepare(encode([path("abcd")], model.encodings))


def test_convolutions_need_an_even_width() -> None:
    with pytest.raises(PositionError, match="halves the width and doubles it again; 9 is odd"):
        FLOATERConvolution(Dims(9, 3, 2))

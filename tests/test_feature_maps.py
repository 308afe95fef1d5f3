"""Feature maps: formulas, and that random features approach the softmax."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch.nn import functional

from structpe.attention import attend
from structpe.attention.feature_maps import PositiveFeatures, elu_plus_one, orthogonal
from structpe.errors import PositionError
from structpe.terms import Terms
from tests.representatives import only

D = 8


def test_elu_plus_one_number_by_number() -> None:
    x = torch.tensor([-3.0, -0.5, 0.0, 0.5, 3.0], dtype=torch.float64)
    expected = [math.exp(-3), math.exp(-0.5), 1, 1.5, 4]
    torch.testing.assert_close(elu_plus_one(x), torch.tensor(expected, dtype=torch.float64))


def test_elu_plus_one_has_the_gradient_of_elu() -> None:
    x = torch.tensor([-30.0, -3.0, -0.5, 0.0, 0.5, 3.0], dtype=torch.float64, requires_grad=True)
    other = x.detach().clone().requires_grad_()
    elu_plus_one(x).sum().backward()
    functional.elu(other).sum().backward()
    torch.testing.assert_close(x.grad, other.grad)
    smooth = torch.tensor([[-3.0, -0.5], [0.5, 3.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(elu_plus_one, (smooth,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(elu_plus_one, (smooth,))
    assert torch.equal(torch.func.vmap(elu_plus_one)(smooth), elu_plus_one(smooth))


def test_elu_plus_one_is_positive_far_below_zero() -> None:
    """elu(-20) + 1 is 0 in float32, so that a query with such features only would see nothing."""
    assert elu_plus_one(torch.tensor([-20.0])).item() == pytest.approx(math.exp(-20), rel=1e-6)


def test_positive_features_number_by_number() -> None:
    """Up to one factor for all rows, as the largest exponent is taken off."""
    maps = PositiveFeatures(D, 20)
    x = torch.randn(6, D, dtype=torch.float64)
    expected = torch.zeros(6, 20, dtype=torch.float64)
    for i in range(6):
        y = [float(c) / D**0.25 for c in x[i]]
        for r in range(20):
            along = sum(float(w) * c for w, c in zip(maps.directions[r], y, strict=True))
            expected[i, r] = math.exp(along - sum(c * c for c in y) / 2) / math.sqrt(20)
    features = maps(x)
    torch.testing.assert_close(features / features[0, 0], expected / expected[0, 0], rtol=1e-9, atol=0)


def test_large_vectors_do_not_overflow() -> None:
    features = PositiveFeatures(D, 64)(100 * torch.randn(2, 3, 5, D))
    assert features.isfinite().all()
    assert (features >= 0).all()


@pytest.mark.parametrize("causal", only([False, True], True))
def test_attention_approaches_that_of_the_softmax(causal: bool) -> None:
    """The error of a mean of R draws falls with the root of R."""
    q, k, v = (0.4 * torch.randn(2, 2, 30, D, dtype=torch.float64) for _ in range(3))
    exact = attend(q, k, v, Terms(causal=causal))

    def error(features: int) -> float:
        each = [PositiveFeatures(D, features, seed) for seed in range(10)]
        off = [attend(q, k, v, Terms(feature_map=maps, causal=causal)) - exact for maps in each]
        return float(torch.stack(off).square().mean().sqrt())

    errors = [error(features) for features in (16, 256, 4096)]
    for more, fewer in pairwise(errors):
        assert more / 8 < fewer < more / 2.5
    assert errors[-1] < 0.03 * float(exact.square().mean().sqrt())


def test_the_mean_of_many_draws_is_the_exponential() -> None:
    """Directions that are not uniform, as QR gives them, miss it."""
    x = torch.ones(1, D, dtype=torch.float64) / 2
    generator, maps = torch.Generator().manual_seed(1), PositiveFeatures(D, D)
    drawn = []
    for _ in range(4000):
        maps.draw(generator)
        y = x / D**0.25
        drawn.append(torch.exp(2 * y @ maps.directions.double().T - y.square().sum()).mean())
    samples = torch.stack(drawn)
    exact = math.exp(float(x.square().sum()) / math.sqrt(D))
    assert float(samples.mean()) == pytest.approx(exact, abs=4 * float(samples.std()) / math.sqrt(4000))


def test_directions_of_a_block_are_orthogonal_and_as_long_as_normal_ones() -> None:
    rows = orthogonal(2000 * D, D, torch.Generator().manual_seed(0)).double().view(2000, D, D)
    products = rows @ rows.transpose(1, 2)
    diagonal = products.diagonal(dim1=1, dim2=2)
    assert (products - torch.diag_embed(diagonal)).abs().max() < 1e-4
    assert float(diagonal.mean()) == pytest.approx(D, rel=0.02)
    assert float(diagonal.var()) == pytest.approx(2 * D, rel=0.1)
    torch.testing.assert_close(rows.mean(0), torch.zeros(D, D, dtype=torch.float64), rtol=0, atol=0.1)


def test_a_seed_says_which_features() -> None:
    one, same, other = (PositiveFeatures(D, 16, seed) for seed in (0, 0, 1))
    assert torch.equal(one.directions, same.directions)
    assert not torch.equal(one.directions, other.directions)
    before = one.directions.clone()
    one.draw(torch.Generator().manual_seed(5))
    assert not torch.equal(one.directions, before)


def test_a_number_below_one_is_refused() -> None:
    with pytest.raises(PositionError, match="random features have a width and a number of 1 or more, not 8 and 0"):
        PositiveFeatures(8, 0)


@pytest.mark.parametrize("case", ["elu", "random"])
def test_float32_gradients_are_finite_where_sums_are_tiny(case: str) -> None:
    """The square of 1 / total would overflow below 5e-20."""
    maps = elu_plus_one if case == "elu" else PositiveFeatures(D)
    q, k, v = (torch.randn(1, 1, 6, D, generator=torch.Generator().manual_seed(i)) for i in range(3))
    given = (q - 30, k - 30, v) if case == "elu" else (7.5 * q, k, v)
    found, expected = [], []
    for wide, kept in ((torch.float32, found), (torch.float64, expected)):
        leaves = [each.to(wide).requires_grad_() for each in given]
        out = attend(*leaves, Terms(feature_map=maps), kernel="linear")
        kept.extend([out.detach(), *torch.autograd.grad(out.square().sum(), leaves)])
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-3, atol=1e-5)

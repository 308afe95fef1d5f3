"""Several models at once: each does what it does separately."""

from __future__ import annotations

import itertools

import pytest
import torch

from structpe.errors import PositionError
from structpe.positions import Dims, Site, Sum, build
from tests.positions.cases import DIMS, TREES, Around, causal, encoded, labelled_path, made, noise, present
from tests.representatives import only

SOME = ["alibi", "dwivedi", "graformer-survey", "rotary", "shaw", "sinusoidal", "spr", "t5", "tpe"]
PAIRS = list(itertools.combinations(SOME, 2))


@pytest.mark.parametrize("pair", only(PAIRS, *PAIRS[::4]), ids="-".join)
def test_the_order_of_summands_means_nothing(pair: tuple[str, str]) -> None:
    a, b = map(made, pair)
    x = noise(3, 10, 8)
    results = [
        Around(Sum(DIMS, models).eval())(encoded(Sum(DIMS, models), TREES), x, present(TREES))
        for models in ([a, b], [b, a], [Sum(DIMS, [a]), Sum(DIMS, [b])])
    ]
    for other in results[1:]:
        torch.testing.assert_close(other, results[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("pair", only(PAIRS, *PAIRS[::4]), ids="-".join)
def test_a_sum_decodes_step_by_step_if_all_of_it_can(pair: tuple[str, str]) -> None:
    first, second = pair
    model, x = Sum(DIMS, [made(first), made(second)]).eval(), noise(1, 7, 8)
    assert model.causal == (made(first).causal and made(second).causal)
    if model.causal:
        positions = encoded(model, [labelled_path(7)])
        full = Around(model)(positions, x, causal(7))
        torch.testing.assert_close(Around(model).steps(positions, x), full, rtol=0, atol=1e-9)


def test_one_summand_that_cannot_is_enough() -> None:
    assert made("t5").causal
    assert not made("graformer").causal
    assert not Sum(DIMS, [made("t5"), made("graformer")]).causal


def test_parameters_and_encodings_are_those_of_the_summands() -> None:
    one, other, third = made("t5"), made("shaw"), made("sinusoidal")
    model = Sum(DIMS, [one, other, third])
    assert model.claimed_params() == sum(p.numel() for p in model.parameters())
    assert model.encodings == (*one.encodings, *third.encodings)  # t5 and shaw share theirs


def test_an_empty_sum_changes_nothing() -> None:
    model, x = Sum(Dims(8, 2, 1), []), noise(3, 10, 8)
    prepared = model.prepare(encoded(model, TREES))
    assert model.inputs(x, prepared) is x
    assert model.layer(x, prepared, Site(0)) is x
    assert not model.terms(prepared, Site(0)).used()
    assert model.claimed_params() == 0


@pytest.mark.parametrize("nested", [False, True])
def test_what_its_own_attention_would_ignore_is_refused(nested: bool) -> None:
    block, queries = made("deberta-v2"), made("deberta-emd")
    with pytest.raises(
        PositionError, match="deberta-v2 has its own attention, which ignores what deberta-emd would change"
    ):
        Sum(DIMS, [Sum(DIMS, [block]) if nested else block, queries])
    with pytest.raises(PositionError, match="deberta-v2 and deberta-v2 have their own attention"):
        Sum(DIMS, [Sum(DIMS, [block]) if nested else block, made("deberta-v2")])


def test_models_of_one_sum_are_for_one_transformer() -> None:
    small, large = Dims(8, 2, 3), Dims(16, 2, 3)
    with pytest.raises(PositionError, match=r"t5 was built for Dims\(width=16, .*, the sum is for Dims\(width=8, "):
        _ = build("sinusoidal", small) + build("t5", large)
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = build("sinusoidal", small) + 3  # type: ignore[operator]
    with pytest.raises(PositionError, match=r"sizes are Dims\(width, heads, layers\); given is 16"):
        build("t5", 16)  # type: ignore[arg-type]

"""Models made of sinusoids: the authors' numbers, the equations written out, what the survey says of their products."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from structpe.encodings import Depth, Feature, Laplacian, Size
from structpe.errors import PositionError
from structpe.nn.layer import StackConfig
from structpe.nn.stack import Stack
from structpe.positions import Dims, PositionModel, Site, Sources
from structpe.positions.absolute import Learned
from structpe.positions.batch import encode
from structpe.positions.sinusoidal import (
    MVPE,
    PNAT,
    XLPE,
    LengthDifference,
    LengthRatio,
    NoisyLength,
    Shortformer,
    Sinusoidal,
    SinusoidalConcatenated,
    Universal,
    UniversalSinusoidal,
    difference,
)
from structpe.structure import Structure, path
from tests.golden import golden
from tests.positions.cases import TREES, noise


def text(size: int) -> Structure:
    return path(["w"] * size)


def added(model: PositionModel, structure: Structure) -> Tensor:
    zero = torch.zeros(1, structure.unit_count, model.dims.width, dtype=torch.float64)
    return model.inputs(zero, model.prepare(encode([structure], model.encodings)))[0]


def at_layer(model: PositionModel, structure: Structure, layer: int) -> Tensor:
    zero = torch.zeros(1, structure.unit_count, model.dims.width, dtype=torch.float64)
    return model.layer(zero, model.prepare(encode([structure], model.encodings)), Site(layer))[0]


def wave(place: float, channel: int, width: int, base: float = 10000.0) -> float:
    """Channel of a row of the authors' table, from its definition."""
    half = width // 2
    if channel >= 2 * half:
        return 0.0
    angle = place / base ** ((channel % half) / (half - 1))
    return math.sin(angle) if channel < half else math.cos(angle)


def waves(place: float, width: int, base: float = 10000.0) -> list[float]:
    return [wave(place, channel, width, base) for channel in range(width)]


def assert_rows(given: Tensor, expected: list[list[float]], atol: float = 1e-12) -> None:
    torch.testing.assert_close(given, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=atol)


# --- sinusoidal-concatenated ---


@pytest.mark.parametrize("width", [8, 9])
@pytest.mark.parametrize("start", [0, 3])
def test_the_authors_table(width: int, start: int) -> None:
    given = golden("t2t_sinusoid")[f"out.sin_L6_d{width}_s{start}"].double()
    mine = added(SinusoidalConcatenated(Dims(width, 1, 1), start=start), text(6))
    torch.testing.assert_close(mine, given, rtol=0, atol=1e-6)


@pytest.mark.parametrize("width", [8, 9])
def test_fairseq_s_table_begins_at_its_third_row(width: int) -> None:
    given = golden("sinusoid")[f"out.fairseq_d{width}"].double()
    mine = added(SinusoidalConcatenated(Dims(width, 1, 1), start=2), text(10))
    torch.testing.assert_close(mine, given[2:], rtol=0, atol=1e-6)


@pytest.mark.parametrize("width", [4, 7, 12])
def test_sines_come_before_cosines(width: int) -> None:
    assert_rows(added(SinusoidalConcatenated(Dims(width, 1, 1)), text(5)), [waves(t, width) for t in range(5)])


def test_the_narrowest_tables_are_finite() -> None:
    for width in (1, 2, 3):
        assert added(SinusoidalConcatenated(Dims(width, 1, 1)), text(3)).isfinite().all()


def test_it_is_no_permutation_of_the_survey_s() -> None:
    ours, survey = (added(cls(Dims(8, 1, 1)), text(9)) for cls in (SinusoidalConcatenated, Sinusoidal))
    assert not torch.allclose(ours.sort(dim=-1).values, survey.sort(dim=-1).values, atol=1e-3)


def test_depths_are_places_of_a_tree() -> None:
    model = SinusoidalConcatenated(Dims(8, 2, 1), encoding=Depth())
    depths = Depth().one(TREES[0]).values
    assert torch.equal(added(model, TREES[0]), added(SinusoidalConcatenated(Dims(8, 2, 1)), text(9))[depths])


# --- what the survey (section 4.2) and the tutorial say of absolute sinusoids ---


@pytest.mark.parametrize("cls", [Sinusoidal, SinusoidalConcatenated])
def test_their_products_depend_only_on_the_offset(cls: type[PositionModel]) -> None:
    p = added(cls(Dims(32, 1, 1)), text(60))
    product = p @ p.T
    for offset in range(0, 30, 7):
        diagonal = product.diagonal(offset)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=0, atol=1e-10)


@pytest.mark.parametrize("cls", [Sinusoidal, SinusoidalConcatenated])
def test_their_products_do_not_know_directions(cls: type[PositionModel]) -> None:
    p = added(cls(Dims(32, 1, 1)), text(60))
    for offset in (1, 5, 20):
        torch.testing.assert_close(p[30] @ p[30 - offset], p[30] @ p[30 + offset], rtol=0, atol=1e-10)


def test_projections_destroy_both() -> None:
    p, w = added(Sinusoidal(Dims(32, 1, 1)), text(60)), noise(32, 32)
    product = p @ w @ p.T
    assert product.diagonal(3).std() > 0.1
    assert (product[30, 25] - product[30, 35]).abs() > 0.1


def test_their_products_fall_with_distance_but_not_monotonously() -> None:
    p = added(Sinusoidal(Dims(64, 1, 1)), text(200))
    by_distance = p[0] @ p.T
    assert by_distance[0] == pytest.approx(32)
    assert by_distance[1:].max() < by_distance[0]
    assert by_distance[:10].mean() > by_distance[50:60].mean() > by_distance[150:].mean()
    assert (by_distance.diff() > 0).any()


def test_a_fixed_offset_is_a_linear_map() -> None:
    """P_{t+k} = R_k P_t: what Vaswani et al. chose sinusoids for; one map serves all places, and it is a rotation."""
    p, k = added(Sinusoidal(Dims(16, 1, 1)), text(80)), 5
    turns = [k * 10000 ** (-i / 8) for i in range(8)]
    blocks = [[[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]] for a in turns]
    rotation = torch.block_diag(*(torch.tensor(block, dtype=torch.float64) for block in blocks))
    torch.testing.assert_close(p[:-k] @ rotation.T, p[k:], rtol=0, atol=1e-12)


def test_learned_positions_have_no_such_law() -> None:
    torch.manual_seed(0)
    p = added(Learned(Dims(32, 1, 1), max_length=60).double(), text(60))
    assert (p @ p.T).diagonal(3).std() > 1e-3


# --- mvpe ---


@pytest.mark.parametrize("factor", [1001.0, 2500.5])
def test_equation_25(factor: float) -> None:
    width = 5
    expected = [
        [
            (math.cos if j % 2 else math.sin)(10000 ** (-(j - j % 2) / width) * factor * t)
            for j in range(width)
        ]
        for t in range(7)
    ]  # fmt: skip
    assert_rows(added(MVPE(Dims(width, 1, 1), factor=factor), text(7)), expected, atol=1e-9)


def test_its_variance_over_channels_is_higher_at_the_start() -> None:
    """What it was made for: the first places of plain sinusoids hardly differ in their slow channels."""
    plain, mv = (added(cls(Dims(64, 1, 1)), text(30))[1:] for cls in (Sinusoidal, MVPE))
    assert mv.var(dim=1)[0] > plain.var(dim=1)[0]
    assert mv.var(dim=0).mean() > 1.5 * plain.var(dim=0).mean()


# --- universal ---


@pytest.mark.parametrize("layer", [0, 1, 4])
def test_every_step_adds_the_place_and_the_step(layer: int) -> None:
    width, size = 8, 6
    expected = [[a + b for a, b in zip(waves(t, width), waves(layer, width), strict=True)] for t in range(size)]
    assert_rows(at_layer(UniversalSinusoidal(Dims(width, 2, 5)), text(size), layer), expected)


def test_the_authors_signal_of_a_step() -> None:
    given = golden("t2t_sinusoid")["out.layer_sinusoid_d8_layer2_of5"][0, 0].double()
    model = UniversalSinusoidal(Dims(8, 2, 5))
    step = at_layer(model, text(3), 2) - added(SinusoidalConcatenated(Dims(8, 2, 5)), text(3))
    torch.testing.assert_close(step, given.expand(3, 8), rtol=0, atol=1e-6)


def test_learned_steps_are_multiplied_by_the_root_of_the_width() -> None:
    torch.manual_seed(0)
    model = Universal(Dims(16, 2, 300)).double()
    assert model.steps.std().item() == pytest.approx(16**-0.5, rel=0.05)
    expected = [[a + 4 * s for a, s in zip(waves(t, 16), model.steps[7].tolist(), strict=True)] for t in range(3)]
    assert_rows(at_layer(model, text(3), 7).detach(), expected)


def test_there_are_as_many_steps_as_layers() -> None:
    with pytest.raises(PositionError, match="'universal': this model was built for 2 layers"):
        at_layer(Universal(Dims(8, 2, 2)).double(), text(3), 2)


# --- shortformer ---


def test_queries_and_keys_know_places_and_values_do_not() -> None:
    model, x = Shortformer(Dims(8, 2, 2)), noise(1, 4, 8)
    made_of = model.sources(Sources(x, x, x), model.prepare(encode([text(4)], model.encodings)), Site(0))
    p = torch.tensor([waves(t + 1, 8) for t in range(4)], dtype=torch.float64)
    torch.testing.assert_close(made_of.query[0], x[0] + p, rtol=0, atol=1e-12)
    torch.testing.assert_close(made_of.key[0], x[0] + p, rtol=0, atol=1e-12)
    assert made_of.value is x
    assert torch.equal(model.inputs(x, None), x)


def test_keys_of_the_segment_before_come_first() -> None:
    model, earlier, x = Shortformer(Dims(8, 2, 2)), noise(1, 3, 8, seed=1), noise(1, 4, 8)
    context = torch.cat([earlier, x], dim=1)
    prepared = model.prepare(encode([text(7)], model.encodings).step(3, 7))
    made_of = model.sources(Sources(x, context, context), prepared, Site(0))
    p = torch.tensor([waves(t + 1, 8) for t in range(7)], dtype=torch.float64)
    torch.testing.assert_close(made_of.key[0], context[0] + p, rtol=0, atol=1e-12)
    torch.testing.assert_close(made_of.query[0], x[0] + p[3:], rtol=0, atol=1e-12)


def test_memory_that_was_not_encoded_is_refused() -> None:
    model, x, context = Shortformer(Dims(8, 2, 2)), noise(1, 4, 8), noise(1, 7, 8)
    with pytest.raises(PositionError, match=r"7 units are attended to and positions of 4 .* Positions.step\(3, 7\)"):
        model.sources(Sources(x, context, context), model.prepare(encode([text(4)], model.encodings)), Site(0))


def test_in_a_layer_values_are_those_of_a_model_without_positions() -> None:
    """Attention that cannot but look at one key shows the value: with positions in it, it would differ."""
    dims = Dims(8, 2, 1)
    torch.manual_seed(0)
    encoder = Stack(StackConfig.transformer(dims, 16), Shortformer(dims)).double().eval()
    first, second = (
        encoder.padded(x, encode([text(1)], [*encoder.position.encodings])) for x in (noise(1, 1, 8), noise(1, 1, 8))
    )
    torch.manual_seed(0)
    plain = Stack(StackConfig.transformer(dims, 16), NoPosition(dims)).double().eval()
    without = plain.padded(noise(1, 1, 8), encode([text(1)], []))
    torch.testing.assert_close(first, without, rtol=0, atol=1e-12)
    assert torch.equal(first, second)


class NoPosition(PositionModel):
    """No positions."""

    spec = Shortformer.spec

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims, [])


# --- lengths ---


@pytest.mark.parametrize("width", [8, 9])
def test_length_difference_as_coded(width: int) -> None:
    """Row len + 3 - p of the table, with p = 2, 3, ... and row 1 zero."""
    size = 6
    expected = [waves(size + 3 - p, width) for p in range(2, size + 2)]
    assert_rows(added(LengthDifference(Dims(width, 1, 1)), text(size)), expected)


def test_the_unit_after_the_last_is_padding() -> None:
    places, lengths = torch.arange(6)[None], torch.full((1, 6), 4)
    rows = difference(places, lengths, 8)[0]
    assert not rows[4].any()
    assert_rows(rows[[0, 3, 5]], [waves(5, 8), waves(2, 8), waves(0, 8)])


@pytest.mark.parametrize("width", [8, 9])
def test_length_ratio_as_coded(width: int) -> None:
    expected = [waves(p, width, base=6) for p in range(2, 8)]
    assert_rows(added(LengthRatio(Dims(width, 1, 1)), text(6)), expected)


def test_each_text_has_its_own_length() -> None:
    places, lengths = torch.arange(4).expand(2, 4), torch.tensor([[4] * 4, [9] * 4])
    rows = LengthRatio(Dims(8, 2, 1)).waves(places, lengths)
    for row, length in zip(rows, (4, 9), strict=True):
        assert_rows(row, [waves(t + 2, 8, base=length) for t in range(4)])


@pytest.mark.parametrize("cls", [LengthDifference, LengthRatio, NoisyLength])
def test_a_length_may_be_given(cls: type[PositionModel]) -> None:
    structure = replace(text(4), features={"length": np.full(4, 7)})
    model = cls(Dims(8, 2, 1), length=Feature("length")).eval()
    assert model.causal
    assert not cls(Dims(8, 2, 1)).causal
    mine, as_long = added(model, structure), added(cls(Dims(8, 2, 1)).eval(), text(7))
    assert torch.equal(mine, as_long[:4])


def test_length_difference_counts_from_the_end() -> None:
    model = LengthDifference(Dims(8, 2, 1))
    torch.testing.assert_close(added(model, text(9))[4:], added(model, text(5)), rtol=0, atol=0)


def test_a_length_below_one_is_finite() -> None:
    places, lengths = torch.arange(3)[None], torch.zeros(1, 3, dtype=torch.long)
    assert LengthRatio(Dims(8, 2, 1)).waves(places, lengths).isfinite().all()


def test_noise_moves_the_length_of_a_text_while_training() -> None:
    model, size = NoisyLength(Dims(8, 2, 1), window=2), 6
    exact = added(LengthDifference(Dims(8, 2, 1)), text(size))
    torch.testing.assert_close(added(model.eval(), text(size)), exact, rtol=0, atol=0)
    torch.manual_seed(0)
    model.train()
    positions = encode([text(size)] * 200, model.encodings)
    drawn = model.prepare(positions)
    for row in drawn:
        shifts = [e for e in range(-2, 3) if torch.equal(row, difference(*_places(size, e), 8)[0])]
        assert len(shifts) == 1
    noises = model.noise(positions[Size()])
    assert set(noises.flatten().tolist()) == {-2, -1, 0, 1, 2}
    assert not torch.equal(model.prepare(positions), model.prepare(positions))


def _places(size: int, more: int) -> tuple[Tensor, Tensor]:
    return torch.arange(size)[None], torch.full((1, size), size + more)


def test_a_negative_window_is_refused() -> None:
    with pytest.raises(PositionError, match=r"option 'window' of .* is -1; give 1 or more"):
        NoisyLength(Dims(8, 2, 1), window=-1)


# --- other orders ---


def test_reordered_places_are_fused_with_the_original_ones() -> None:
    torch.manual_seed(0)
    model = XLPE(Dims(8, 2, 1)).double()
    order = [2, 0, 3, 1]
    given = added(model, replace(text(4), features={"reordered": np.array(order)}))
    p = added(Sinusoidal(Dims(8, 2, 1)), text(4))
    for t in range(4):
        both = model.original.weight @ p[t] + model.reordered.weight @ p[order[t]]
        torch.testing.assert_close(given[t], torch.tanh(both), rtol=0, atol=1e-12)


def test_predicted_places_are_those_of_the_permutation() -> None:
    permuted = replace(text(4), features={"predicted": np.array([2, 0, 3, 1])})
    p = added(Sinusoidal(Dims(8, 2, 1)), text(4))
    assert torch.equal(added(PNAT(Dims(8, 2, 1)), permuted), p[[2, 0, 3, 1]])
    assert torch.equal(added(PNAT(Dims(8, 2, 1)), text(4)), p)


@pytest.mark.parametrize("cls", [SinusoidalConcatenated, MVPE, Universal, UniversalSinusoidal, Shortformer, PNAT])
def test_vectors_are_refused(cls: type[PositionModel]) -> None:
    model = cls(Dims(8, 2, 1), encoding=Laplacian(k=2))
    assert isinstance(model, nn.Module)
    x = noise(1, 3, 8)
    with pytest.raises(PositionError, match="needs one number per unit"):
        model.inputs(x, model.prepare(encode([text(3)], model.encodings)))

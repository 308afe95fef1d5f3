"""What heads do: against the formulas of models, written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from structpe import Dims, Terms
from structpe.errors import EncodingError, PositionError
from structpe.pictures import PictureError, begin
from structpe.pictures.head_patterns import Patterns, of_encoder, weights_of
from structpe.pictures.view import by_distance, distances, view
from structpe.positions import MODELS
from structpe.structure import Structure, path
from tests.examples import examples
from tests.pictures.cases import ASPIRIN, DIMS, MEANING, PARSE, SEQUENCE
from tests.positions.cases import TREES, labelled_path, noise
from tests.representatives import few
from tests.strategies import structures

OFFSET = torch.arange(5.0)[None, :] - torch.arange(5.0)[:, None]


def test_the_bias_of_alibi() -> None:
    """-m |i - j| with m = 2^-4 and 2^-8 for two heads (Press et al. 2022)."""
    patterns = of_encoder(SEQUENCE, begin("alibi", DIMS, list).position)
    assert patterns.bias is not None
    expected = torch.stack([-(2.0**-4) * OFFSET.abs(), -(2.0**-8) * OFFSET.abs()]).double()
    torch.testing.assert_close(patterns.bias, expected.expand(2, 2, 5, 5))
    whole = torch.softmax(patterns.scores, dim=-1)
    torch.testing.assert_close(whole, patterns.attention, rtol=0, atol=1e-12)
    torch.testing.assert_close(patterns.attention, torch.softmax(patterns.bias, dim=-1), rtol=0, atol=1e-12)


def test_the_bias_of_t5_on_the_distances_of_a_tree() -> None:
    position = begin({"name": "t5", "encoding": "distance"}, DIMS, list).position
    bias = of_encoder(PARSE, position).bias
    assert bias is not None
    values = bias[0, 0]
    assert values[2, 0] == values[2, 3]  # both two edges below
    assert len({float(values[i, i]) for i in range(5)}) == 1
    assert float(values[2, 1]) != float(values[1, 2])  # below is not above


def test_rotary_positions_turn_with_the_offset_alone() -> None:
    """The score of units of one content depends on i - j: down a diagonal only the sum of its row changes."""
    patterns = of_encoder(path(list("abcdefgh")), begin("rotary", DIMS, list).position)
    assert patterns.bias is None
    logs = patterns.attention[0, 0].log()
    for row in range(7):
        shift = logs[row, :-1] - logs[row + 1, 1:]
        torch.testing.assert_close(shift, shift[:1].expand(7), rtol=0, atol=1e-9)


def test_a_decoder_s_bias_does_not_reach_forward() -> None:
    seen = of_encoder(SEQUENCE, begin("alibi-causal", DIMS, list).position)
    assert seen.quantity("bias")[0, 0].triu(1).isnan().sum() == 10
    assert seen.quantity("bias")[0, 0].tril().isfinite().sum() == 15 + 10
    with pytest.raises(PictureError, match="some queries do not attend to all keys"):
        seen.complete_scores()


def test_weights_are_those_of_the_softmax() -> None:
    q, k = noise(2, 1, 3, 11, 4).unbind(0)
    torch.testing.assert_close(weights_of(q, k, Terms()), torch.softmax(q @ k.mT / 2, dim=-1), rtol=0, atol=1e-12)


def test_the_same_seed_gives_the_same_and_leaves_the_generator_alone() -> None:
    state = torch.get_rng_state()
    first, again, other = (of_encoder(SEQUENCE, begin("shaw", DIMS, list, s).position, s) for s in (3, 3, 4))
    assert torch.equal(first.attention, again.attention)
    assert not torch.equal(first.attention, other.attention)
    assert torch.equal(state, torch.get_rng_state())


def test_a_model_given_as_it_is_keeps_its_dtype() -> None:
    position = begin("t5", DIMS, list).position
    of_encoder(SEQUENCE, position)
    assert {p.dtype for p in position.parameters()} == {torch.float32}


@pytest.mark.parametrize("name", few(MODELS))
def test_every_model_can_be_looked_at(name: str) -> None:
    """On one structure at least; where a model has its own attention, that is said."""
    for structure in (labelled_path(6), TREES[0], ASPIRIN):
        try:
            seen = view(structure, [begin(name, Dims(24, 4, 1), lambda: [structure])])  # noqa: B023, called at once
        except (EncodingError, PositionError):  # it does not fit
            continue
        assert bool(seen.blocks) != bool(seen.notes)
        assert all(len(block.heads) == 4 for block in seen.blocks)
        return
    assert name in NEEDS_MORE


NEEDS_MORE = ("graphormer-3d",)
"""Models that ask for features which none of these structures has."""


def test_what_cannot_be_asked() -> None:
    rotary = begin("rotary", DIMS, list)
    with pytest.raises(PictureError, match="the position model adds no bias to scores, so there is none to show"):
        view(SEQUENCE, [rotary], "bias")
    with pytest.raises(PictureError, match="2 position models are given; a picture shows one, or their sum"):
        view(SEQUENCE, [rotary, rotary])
    with pytest.raises(PictureError, match=r"'t5' is neither an encoding nor a position model; structpe.build"):
        view(SEQUENCE, ["t5"])  # type: ignore[list-item]
    with pytest.raises(PictureError, match="position model 'cope' has its own attention"):
        of_encoder(SEQUENCE, begin("cope", DIMS, list).position)
    assert view(SEQUENCE, [begin("cope", DIMS, list)]).notes == (
        "cope has its own attention, which does not return weights: only its encodings are shown",
    )


def test_layers_that_do_the_same_are_shown_once() -> None:
    assert [block.title for block in view(SEQUENCE, [begin("t5", DIMS, list)]).blocks] == ["all layers, alike"]
    apart = view(SEQUENCE, [begin("t5-unshared", DIMS, list)])
    assert [block.title for block in apart.blocks] == ["layer 1", "layer 2"]
    assert apart.said == "t5-unshared at initialisation, seed 0: bias added to scores"


def test_what_there_is_no_room_for_is_said() -> None:
    seen = view(SEQUENCE, [begin("t5-unshared", Dims(32, 32, 4), list)])
    assert [block.title for block in seen.blocks] == ["layer 1", "layer 2"]
    assert seen.notes == ("layers 3 to 4 are left out, as the picture has room for 64 heads",)


def test_distances() -> None:
    apart, signed = distances(SEQUENCE)
    assert signed
    np.testing.assert_array_equal(apart, OFFSET.numpy())
    apart, signed = distances(MEANING)
    assert not signed
    np.testing.assert_array_equal(apart, [[0, 1, 1, 2], [1, 0, 1, 1], [1, 1, 0, 2], [2, 1, 2, 0]])
    two = Structure(("a", "b"), np.zeros((0, 2), dtype=np.int64))
    np.testing.assert_array_equal(distances(two)[0], [[0, math.nan], [math.nan, 0]])


def test_means_by_distance_written_out() -> None:
    slope = by_distance(-0.5 * np.abs(OFFSET.numpy())[None], SEQUENCE)
    np.testing.assert_array_equal(slope.distance, np.arange(-4, 5))
    np.testing.assert_allclose(slope.mean, [-0.5 * np.abs(np.arange(-4, 5))])


@given(structures(), st.integers(0, 1000))
@examples(40)
def test_means_by_distance_add_up(structure: Structure, seed: int) -> None:
    """Weighted by how many pairs are so far apart, they are the sum over all pairs that have a distance."""
    assume(structure.unit_count)
    values = np.random.default_rng(seed).normal(size=(2, structure.unit_count, structure.unit_count))
    apart, _ = distances(structure)
    curve = by_distance(values, structure)
    count = np.array([(apart == d).sum() for d in curve.distance])
    np.testing.assert_allclose((curve.mean * count).sum(-1), values[:, np.isfinite(apart)].sum(-1), atol=1e-9)


def test_scores_have_rows_of_mean_zero() -> None:
    patterns = Patterns(torch.tensor([[[[0.25, 0.75], [1.0, 0.0]]]]))
    expected = torch.tensor([[-0.5 * math.log(3), 0.5 * math.log(3)], [0.0, math.nan]])
    torch.testing.assert_close(patterns.scores[0, 0], expected, equal_nan=True)

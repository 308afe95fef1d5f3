"""ALiBi: the authors' slopes and bias, and pairs that have no distance."""

from __future__ import annotations

import pytest
import torch

from structpe.encodings.distance import Distance
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, Site
from structpe.positions.batch import encode
from structpe.positions.decay import ALiBi, slopes
from structpe.structure import Structure, path
from tests.golden import golden


@pytest.mark.parametrize("heads", [1, 2, 4, 6, 8, 12, 16, 20])
def test_the_authors_slopes(heads: int) -> None:
    torch.testing.assert_close(slopes(heads), golden("alibi")[f"out.slopes{heads}"], rtol=0, atol=1e-15)


def test_slopes_between_powers_of_two() -> None:
    assert slopes(2).tolist() == [1 / 16, 1 / 256]
    assert slopes(3).tolist() == [1 / 16, 1 / 256, 1 / 4]


def test_the_authors_bias_after_the_softmax() -> None:
    given = golden("alibi")
    model = ALiBi(Dims(6, 6, 1))
    (bias,) = model.terms(model.prepare(encode([path(["w"] * 7)], model.encodings)), Site(0)).bias
    dense = bias.dense().movedim(3, 1)[0]
    torch.testing.assert_close(dense, given["out.xt_bias_H6_L7"].float())
    ahead = torch.ones(7, 7, dtype=torch.bool).triu(1)
    ours = torch.softmax(dense.masked_fill(ahead, -torch.inf), dim=-1)
    torch.testing.assert_close(ours, given["out.softmax_orig_H6_L7"], rtol=0, atol=1e-6)


def test_pairs_without_a_path_count_as_far_as_the_limit_and_units_of_a_node_by_their_offset() -> None:
    apart = Structure(("a", "b", "c"), [[0, 1]]).with_units(("a", "b", "b'", "b''", "c"), (0, 1, 1, 1, 2))
    model = ALiBi(Dims(1, 1, 1), encoding=Distance(max_distance=5)).double()
    (bias,) = model.terms(model.prepare(encode([apart], model.encodings)), Site(0)).bias
    assert (-bias.dense()[0, :, :, 0] * 2**8).tolist() == [
        [0, 1, 1, 1, 5],
        [1, 0, 1, 2, 5],
        [1, 1, 0, 1, 5],
        [1, 2, 1, 0, 5],
        [5, 5, 5, 5, 0],
    ]


def test_without_a_limit_they_are_an_error() -> None:
    model = ALiBi(Dims(4, 2, 1), encoding=Distance())
    model.prepare(encode([path(["a", "b"])], model.encodings))
    with pytest.raises(PositionError, match=r"a pair of units without a path.*'distance' with max_distance=\.\.\."):
        model.prepare(encode([Structure(("a", "b"), [])], model.encodings))


@pytest.mark.parametrize("name", ["alibi", "kerple-log", "kerple-power"])
def test_the_bias_of_each_head_falls_with_distance(name: str) -> None:
    """Tutorial: attention decays monotonically, at a separate rate for each head."""
    torch.manual_seed(0)
    model = MODELS[name](Dims(8, 4, 1)).double()
    (bias,) = model.terms(model.prepare(encode([path(["w"] * 40)], model.encodings)), Site(0)).bias
    before = bias.dense()[0, -1].flip(0)  # (40, h) of the last query, from itself to the farthest key
    assert (before.diff(dim=0) < 0).all()

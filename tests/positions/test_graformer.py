"""Graformer: the rows and scores of the authors' code, and the survey's definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from structpe.attention import attend
from structpe.errors import PositionError
from structpe.positions import Dims, Site
from structpe.positions.batch import encode
from structpe.positions.graphs import Graformer, GraformerSurvey
from structpe.structure import Structure, path
from tests.golden import golden

# The graph of the golden file: its entities A, B, C, D and its relations r, s own the tokens 0..8 in another order.
GRAPH = Structure(("A", "B", "C", "r", "s", "D"), [[0, 3], [3, 1], [1, 4], [4, 2]]).with_units(
    tuple("AABCCrrsD"), (0, 0, 1, 2, 2, 3, 3, 4, 5)
)


def model_of(given: object) -> Graformer:
    model = Graformer(
        Dims(given.cfg["d"], given.cfg["num_heads"], 1),
        max_distance=given.cfg["max_graph_range"],
        within=given.cfg["same_text_range"],
    ).double()
    with torch.no_grad():
        model.table.weight.copy_(given["w.mha.pos_embed.weight"][None])
    return model


def test_the_authors_rows() -> None:
    given = golden("graformer")
    model = model_of(given)
    rows = model.prepare(encode([GRAPH], model.encodings)).dense()[0]
    assert rows.T.tolist() == given["out.index"].tolist()


@pytest.mark.parametrize("kernel", ["dense", "sdpa", "tables"])
def test_the_authors_scores(kernel: str) -> None:
    given = golden("graformer")
    model = model_of(given)
    terms = model.terms(model.prepare(encode([GRAPH], model.encodings)), Site(0))
    q, k, v = (
        (given["in.x"] @ w.T + b).unflatten(-1, (2, -1)).transpose(1, 2)
        for w, b in zip(given["w.mha.in_proj_weight"].chunk(3), given["w.mha.in_proj_bias"].chunk(3), strict=True)
    )
    expected = torch.softmax(given["out.score"][None], dim=-1) @ v
    torch.testing.assert_close(attend(q, k, v, terms, kernel), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("far", "row"),
    [(0, 0), (1, 2), (-1, 3), (2, 4), (-2, 5), (3, 6), (-3, 7), (4, 7), (-4, 7), (9, 7)],
)
def test_rows_of_distances_merge_their_signs_from_afar(far: int, row: int) -> None:
    model = Graformer(Dims(4, 1, 1), max_distance=2, within=2)
    rows = model.prepare(encode([path(["w"] * 11)], model.encodings)).dense()[0]
    # The offset is key minus query, the model looks from the key.
    query, key = (0, abs(far)) if far < 0 else (far, 0)
    assert rows[query, key] == row


def test_the_survey_keeps_them_apart() -> None:
    model = GraformerSurvey(Dims(4, 2, 1), max_distance=2, within=2)
    apart = Structure((*"abcdex",), [[0, 1], [1, 2], [2, 3], [3, 4]])
    apart = apart.with_units((*"abcdex", "x"), (0, 1, 2, 3, 4, 5, 5))
    rows = model.prepare(encode([apart], model.encodings)).dense()[0]
    assert rows[0].tolist() == [2, 3, 4, 4, 4, 5, 5]
    assert rows[4].tolist() == [0, 0, 0, 1, 2, 5, 5]
    assert rows[5, 5:].tolist() == [2, 9]
    assert rows[6, 5:].tolist() == [7, 2]


def test_table_1_counts_the_survey_s_rows_without_units() -> None:
    reach, heads = 7, 4
    model = GraformerSurvey(Dims(8, heads, 1), max_distance=reach, within=1)
    assert model.claimed_params() - 3 * heads == 2 * (reach + 1) * heads


def test_no_step_by_step() -> None:
    model = Graformer(Dims(4, 2, 1))
    assert not model.causal
    with pytest.raises(PositionError, match=r"1 queries and 3 keys cannot change places; .* step by step"):
        model.prepare(encode([path(["w"] * 4)], model.encodings).step(2, 3))


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0)])
def test_ranges_below_one_are_refused(sizes: tuple[int, int]) -> None:
    with pytest.raises(
        PositionError, match=r"'(max_distance|within)' of position model 'graformer' is 0; give 1 or more"
    ):
        Graformer(Dims(4, 2, 1), max_distance=sizes[0], within=sizes[1])


def test_ties_are_positive_in_both_directions() -> None:
    both = Structure(("a", "b"), [[0, 1], [1, 0]])
    model = Graformer(Dims(4, 1, 1))
    rows: Tensor = model.prepare(encode([both], model.encodings)).dense()[0]
    np.testing.assert_array_equal(rows, [[0, 2], [2, 0]])

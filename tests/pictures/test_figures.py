"""Figures of Chen et al. 2021: numbers against their definitions, for models of every kind."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from structpe import Dims
from structpe.pictures import PictureError, pattern, rank, save, similarity
from structpe.pictures.setting import Setting, model_of
from tests.pictures.cases import MEANING, PARSE, RING

SMALL = Setting(dims=Dims(24, 3, 1), places=40)


def test_the_rank_of_known_matrices() -> None:
    values = rank.singular_values(torch.diag(torch.tensor([4.0, 2.0, 0.0])).double()[None])
    torch.testing.assert_close(values, torch.tensor([[1.0, 0.5, 0.0]]).double())
    left, right = torch.randn(2, 9, 3, dtype=torch.float64).unbind(0)
    assert rank.rank((left @ right.T)[None]) == 3
    assert rank.rank(torch.zeros(1, 4, 4)) == 0


@pytest.mark.parametrize(
    ("position", "alone", "whole"),
    [
        ("learned", 8, 8),
        ("sinusoidal", 8, 8),
        ({"name": "diet-abs", "rank": 5}, 5, 13),
        ("diet-rel", 39, 39),
        ("t5", 39, 39),
        ("rotary", 0, 8),
        ([], 0, 8),
    ],
)
def test_ranks_are_those_of_theorem_1(position: Any, alone: int, whole: int) -> None:
    """At most d_h = 8 at the input, d_h + d_p in each head; a relative bias may reach all but the mean of rows."""
    assert rank.ranks(position, SMALL) == rank.Ranks(alone, whole)


def test_positions_alone_at_the_input_are_a_product() -> None:
    """P W_Q W_K^T P^T / sqrt(d_h), less the mean of each row: figure 8's first matrix, written out."""
    setting = replace(SMALL, content=0.0)
    model = model_of("learned", setting)
    p = similarity.vectors(model, setting.read).double()
    generator = torch.Generator().manual_seed(setting.seed + 1)
    torch.randn((1, 40, 24), generator=generator, dtype=torch.float64)
    w_q, w_k = torch.randn(2, 24, 24, generator=generator, dtype=torch.float64) * 24**-0.5
    whole = (p @ w_q)[:, :8] @ (p @ w_k)[:, :8].T / 8**0.5
    torch.testing.assert_close(rank.scores("learned", setting)[0], whole - whole.mean(-1, keepdim=True))


@pytest.mark.parametrize(
    ("position", "structure"), [("graformer", PARSE), ("spr-abs", PARSE), ("lap-pe", RING), ("heat-kernel", MEANING)]
)
def test_models_of_trees_and_graphs(position: Any, structure: Any) -> None:
    found = rank.ranks(position, replace(SMALL, structure=structure))
    assert found.position is not None
    assert 0 <= found.position < structure.size
    weights = pattern.pattern(position, replace(SMALL, structure=structure))
    assert weights.shape == (3, structure.size, structure.size)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, structure.size, dtype=torch.float64))


def test_what_has_no_matrix_of_scores() -> None:
    with pytest.raises(PictureError, match="no softmax over all pairs: mask"):
        rank.scores("alibi-causal", SMALL)
    with pytest.raises(PictureError, match="has its own attention"):
        pattern.pattern("cope", SMALL)
    assert "its own attention" in rank.ranks("cope", SMALL).why


def test_the_pattern_of_diet_rel_goes_by_offset() -> None:
    """Without content, log attention is R[i - j] up to a number for each row."""
    logs = pattern.pattern("diet-rel", SMALL)[0].log()
    shift = logs[:-1, :-1] - logs[1:, 1:]
    torch.testing.assert_close(shift, shift[:, :1].expand_as(shift), rtol=0, atol=1e-9)


def test_segments_are_a_block_each() -> None:
    """Figure 6: E_S[S(i), S(j)] alone gives four blocks of one number each."""
    two = replace(SMALL, structure=pattern.segmented())
    weights = pattern.pattern("segment-bias", two)[0]
    for rows in (slice(0, 16), slice(16, 32)):
        for columns in (slice(0, 16), slice(16, 32)):
            block = weights[rows, columns]
            assert float(block.max() - block.min()) < 1e-12
    both = pattern.pattern(["diet-rel", "segment-bias"], two)[0].log()
    alone = pattern.pattern("diet-rel", two)[0].log() + weights.log()
    assert both.shape == alone.shape == (32, 32)
    with pytest.raises(PictureError, match=r"the second segment begins at 0 of 8 places; give one of 1..7"):
        pattern.segmented(8, 0)


def test_the_cosine_of_sinusoids() -> None:
    """sum_k cos((i - j) w_k) / (d / 2), w_k = 10000^(-2k/d)."""
    setting = replace(SMALL, places=12)
    found = similarity.cosines(similarity.vectors(model_of("sinusoidal", setting), setting.read))
    for i in range(12):
        for j in range(12):
            expected = sum(math.cos((i - j) * 10000 ** (-2 * k / 24)) for k in range(12)) / 12
            assert float(found[i, j]) == pytest.approx(expected, abs=1e-6)


def test_cosines_of_known_rows() -> None:
    found = similarity.cosines(torch.tensor([[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0], [0.0, 0.0]]))
    expected = torch.tensor([[1.0, 0.0, -1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    torch.testing.assert_close(found[:3, :3], expected)
    assert found[3].isnan().all()
    np.testing.assert_array_equal(np.sort(similarity.pairs(found)), [-1.0, 0.0, 0.0])


@pytest.mark.parametrize(("position", "structure"), [("spr-abs", PARSE), ("lap-pe", RING), ("rwse", MEANING)])
def test_vectors_of_trees_and_graphs(position: str, structure: Any) -> None:
    setting = replace(SMALL, structure=structure)
    found = similarity.cosines(similarity.vectors(model_of(position, setting), structure))
    assert found.shape == (structure.size, structure.size)
    diagonal = found.diagonal()
    torch.testing.assert_close(diagonal[diagonal.isfinite()], torch.ones_like(diagonal[diagonal.isfinite()]))


def test_what_adds_nothing_to_the_input() -> None:
    with pytest.raises(PictureError, match="the position model adds nothing to the input, so there are no vectors"):
        similarity.vectors(model_of("t5", SMALL), SMALL.read)


def test_they_are_drawn(tmp_path: Path) -> None:
    values = {name: rank.singular_values(rank.scores(name, SMALL))[0] for name in ("learned", "t5")}
    picture = rank.draw(values, {"d_h": 8}, "Rank")
    legend = [text.get_text() for text in picture.legends[0].get_texts()]
    assert legend == ["learned: rank 8", "t5: rank 39"]
    save(picture, tmp_path / "rank.svg")
    save(pattern.draw(pattern.pattern("t5", SMALL), "T5", [20]), tmp_path / "pattern.png")
    cosines = similarity.cosines(similarity.vectors(model_of("learned", SMALL), SMALL.read))
    save(similarity.draw({"learned": cosines}), tmp_path / "similarity.png")
    assert len(list(tmp_path.iterdir())) == 3


def test_a_model_that_multiplies_its_input_has_no_cosines() -> None:
    found = similarity.cosines(similarity.vectors(model_of("complex", SMALL), SMALL.read))
    with pytest.raises(PictureError, match=r"no cosine of 'complex' is defined: fewer than two .*; leave it out"):
        similarity.draw({"complex": found})

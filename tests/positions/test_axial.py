"""Learned tables of absolute places: axial, and one for each language."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel
from structpe.positions.absolute import Language, Reformer
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from tests.golden import golden


def text(size: int) -> Structure:
    return path(["w"] * size)


def added(model: PositionModel, *structures: Structure) -> Tensor:
    size = max(structure.unit_count for structure in structures)
    zero = torch.zeros(len(structures), size, model.dims.width, dtype=torch.float64)
    return model.inputs(zero, model.prepare(encode(structures, model.encodings)))


def test_the_peer_s_axial_positions() -> None:
    given = golden("reformer_axial")
    (segments, length), (slow, _) = given.cfg["axial_pos_shape"], given.cfg["dims"]
    model = Reformer(Dims(8, 2, 1), segments=segments, length=length, slow=slow).double()
    with torch.no_grad():
        model.segment.copy_(given["w.0"][:, 0])
        model.within.copy_(given["w.1"][0])
    torch.testing.assert_close(added(model, text(12))[0], given["out.P"], rtol=0, atol=1e-9)


def test_the_first_channels_are_of_the_segment() -> None:
    torch.manual_seed(0)
    model = Reformer(Dims(8, 2, 1), segments=3, length=4, slow=3).double()
    rows = added(model, text(12))[0]
    for t in range(12):
        assert torch.equal(rows[t, :3], model.segment[t // 4])
        assert torch.equal(rows[t, 3:], model.within[t % 4])


def test_the_survey_s_form_is_another_order_of_channels() -> None:
    """Equation 5: P_tj = P1[t mod t1, j] for j <= d1, P2[t // t1, j - d1] beyond."""
    torch.manual_seed(0)
    model = Reformer(Dims(8, 2, 1), segments=3, length=4, slow=3).double()
    first, second = model.within, model.segment
    survey = torch.stack([torch.cat([first[t % 4], second[t // 4]]) for t in range(12)])
    assert torch.equal(added(model, text(12))[0][:, [3, 4, 5, 6, 7, 0, 1, 2]], survey)
    d, d1, t1, t_max = 8, first.shape[1], len(first), 12
    assert sum(p.numel() for p in model.parameters()) == (d - d1) * t_max // t1 + d1 * t1


def test_axial_positions_end() -> None:
    model = Reformer(Dims(8, 2, 1), segments=2, length=3)
    added(model, text(6))
    with pytest.raises(PositionError, match=r"has 2 x 3 positions, this batch needs 7; build it with more 'segments'"):
        added(model, text(7))


@pytest.mark.parametrize("options", [{"segments": 0}, {"length": 0}, {"slow": 8}, {"slow": 0}])
def test_axial_tables_need_rows_and_channels(options: dict[str, int]) -> None:
    with pytest.raises(PositionError, match="give 1 or more"):
        Reformer(Dims(8, 2, 1), **options)


def test_each_language_has_its_own_table() -> None:
    torch.manual_seed(0)
    model = Language(Dims(8, 2, 1), languages=3, max_length=5).double()
    german = replace(text(4), features={"language": np.full(4, 2)})
    rows = added(model, german, text(3))
    assert torch.equal(rows[0], model.tables[2, :4])
    assert torch.equal(rows[1, :3], model.tables[0, :3])


def test_unknown_languages_and_places_are_refused() -> None:
    model = Language(Dims(8, 2, 1), languages=2, max_length=5)
    foreign = replace(text(4), features={"language": np.full(4, 2)})
    with pytest.raises(PositionError, match=r"2 languages of 5 positions, this batch needs 2\.\.2; .* larger 'languag"):
        added(model, foreign)
    with pytest.raises(PositionError, match=r"this batch needs 0\.\.5; build it with a larger 'max_length'"):
        added(model, text(6))

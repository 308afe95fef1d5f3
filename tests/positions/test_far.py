"""Models that say of themselves that no text is too long for them: what they make of units far from the beginning."""

from __future__ import annotations

import pytest
import torch

from structpe.encodings import Degree, Encoding, LabelPath, Words
from structpe.encodings.base import UNREACHABLE
from structpe.positions import MODELS, PositionModel, Positions, Site
from structpe.terms import Lookup, SparsePairs
from tests.positions.cases import Around, encoded, labelled_path, made, noise
from tests.representatives import few
from tests.together import together

pytestmark = pytest.mark.usefixtures("coarse_paths")

FARTHER = 40_000
"""Units are so many times farther apart: the last of six is the 200,000th."""

FOLLOWED = "it follows a path through all places up to the last"
NOISE = "it draws noise for all places up to the last"
GROWS = {
    "floater": FOLLOWED,
    "floater-convolution": FOLLOWED,
    "floater-input": FOLLOWED,
    "spe-conv": NOISE,
    "spe-conv-gated": NOISE,
    "tokengt-orf": "it makes a square matrix of as many rows as there are nodes",
}
"""What takes time or memory for units that are not there: tried four thousand times nearer."""

UNBOUND = [name for name in sorted(MODELS) if MODELS[name].spec.cells.unbound]


def far_out(model: PositionModel) -> Positions:
    """Of six units, with whole numbers of places and offsets 40,000 times as large."""

    farther = FARTHER // 4000 if model.name in GROWS else FARTHER

    def stretched(values: torch.Tensor) -> torch.Tensor:
        if values.dtype.is_floating_point:
            return values
        return torch.where(values.abs() < UNREACHABLE, values * farther, values)

    def far(encoding: Encoding, each: torch.Tensor | Lookup | SparsePairs) -> torch.Tensor | Lookup | SparsePairs:
        if isinstance(encoding, (Words, LabelPath, Degree)):  # numbers of words, labels and edges, not of places
            return each
        return stretched(each) if isinstance(each, torch.Tensor) else each.map(stretched)

    of_six = encoded(model, [labelled_path(6)], torch.float32)
    return Positions({encoding: far(encoding, each) for encoding, each in of_six.items()}, present=of_six.present)


@together("name", few(UNBOUND))
def test_unbound_models_have_numbers_for_units_far_out(name: str) -> None:
    model = made(name).float()
    positions, x = far_out(model), noise(1, 6, 8).float()
    assert Around(model)(positions, x).isfinite().all()
    prepared = model.prepare(positions)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        q = k = torch.ones(1, 2, 6, 4, dtype=dtype)
        for change in model.terms(prepared, Site(0)).maps:
            q, k = change(q, k)
            assert q.isfinite().all()
            assert k.isfinite().all()

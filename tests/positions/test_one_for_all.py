"""Blocks given the positions of one structure for all rows of a batch compute what they do with one for each."""

from __future__ import annotations

import torch

from structpe.positions import MODELS, Block, Dims, Site
from structpe.positions.batch import encode
from structpe.terms import Terms
from tests.positions.cases import TREES, made
from tests.together import together

BATCHED = {"lspe", "san"}
"""These have states of their own for each row, and raise an error."""
NAMES = [name for name, model in MODELS.items() if issubclass(model, Block) and name not in BATCHED]


@together("name", NAMES)
def test_one_structure_is_for_all_rows(name: str) -> None:
    model, structure = made(name, Dims(16, 4, 2)).eval().double(), TREES[0]
    assert isinstance(model, Block)
    x = torch.randn(2, structure.unit_count, 16, dtype=torch.float64)
    outs = []
    for structures in ([structure], [structure] * 2):
        prepared = model.prepare(encode(structures, model.encodings))
        outs.append(model.attend(model.inputs(x, prepared), prepared, Site(0), Terms())[0])
    torch.testing.assert_close(*outs, rtol=0, atol=1e-12)

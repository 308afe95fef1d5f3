"""Tree position encodings: the authors' numbers, and their widths."""

from __future__ import annotations

import pytest
import torch

from structpe.data.encode import encode
from structpe.encodings.branch_path import BranchPath
from structpe.errors import PositionError
from structpe.positions import Dims
from structpe.positions.tpe import TPE
from structpe.positions.tpe_onehot import TPEOneHot
from structpe.structure import Structure
from tests.golden import golden

# r(a(c, d(g(i, j), h)), b(e, f)), nodes depth first
TREE = Structure(
    tuple("racdgijhbef"),
    [[0, 1], [1, 2], [1, 3], [3, 4], [4, 5], [4, 6], [3, 7], [0, 8], [8, 9], [8, 10]],
    order=list(range(11)),
    root=0,
)


def test_the_authors_numbers() -> None:
    given = golden("tpe_icecaps")
    model = TPE(Dims(given.cfg["d_model"], 1, 1), BranchPath(given.cfg["depth"], given.cfg["width"]), copies=2)
    with torch.no_grad():
        model.theta.copy_(given["w.tree_params"])
    positions = encode([TREE], model.encodings)
    out = model.inputs(torch.zeros(1, 11, 12), model.prepare(positions))
    torch.testing.assert_close(out[0], given["out.pe"].float(), rtol=0, atol=1e-5)
    assert model.claimed_params() == 2


def test_the_authors_paths_without_parameters() -> None:
    given = golden("tpe_icecaps")
    model = TPEOneHot(Dims(8, 1, 1), BranchPath(depth=3, width=2))
    out = model.inputs(torch.zeros(1, 11, 8), model.prepare(encode([TREE], model.encodings)))
    assert torch.equal(out[0, :, :6], given["in.onehot_paths"].float())
    assert not out[0, :, 6:].any()


def test_paths_fill_the_width_by_default() -> None:
    assert TPEOneHot(Dims(512, 8, 6)).encodings == (BranchPath(depth=256, width=2),)


def test_paths_wider_than_the_model_are_refused() -> None:
    with pytest.raises(PositionError, match="has 8 channels, and paths of 5 steps among 2 branches need 10"):
        TPEOneHot(Dims(8, 1, 1), BranchPath(depth=5, width=2))


def test_a_layer_leads_to_another_width() -> None:
    model = TPE(Dims(10, 1, 1), BranchPath(depth=3, width=2), copies=3)
    assert model.claimed_params() == 3 + 18 * 10 + 10 == sum(p.numel() for p in model.parameters())


def test_no_copy_is_refused() -> None:
    with pytest.raises(PositionError, match="needs 1 copy or more, given are 0"):
        TPE(Dims(8, 1, 1), copies=0)

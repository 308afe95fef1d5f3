"""GKAT: the attention of the authors' code from recorded walks; roles at the input."""

from __future__ import annotations

import pytest
import torch

from structpe.attention import attend
from structpe.encodings import Distance, WalkKernel, WeisfeilerLehman
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, Positions, Site
from structpe.positions.batch import encode
from structpe.structure import path
from structpe.terms import Lookup
from tests.golden import golden
from tests.positions.cases import able, noise

DIMS = Dims(8, 2, 1)


@pytest.mark.parametrize("kernel", able(frozenset({"bias", "mask"})))
def test_the_authors_attention(kernel: str) -> None:
    """exp(logits) * K, divided by its sum."""
    given = golden("gkat")
    k = given["out.kernel"]
    values, index = torch.unique(k, return_inverse=True)
    model = MODELS["gkat"](DIMS)
    positions = Positions({WalkKernel(): Lookup(values, torch.arange(len(values))[None], index[None])})
    terms = model.terms(model.prepare(positions), Site(0))
    q, key, v = (noise(1, 2, 7, 4, seed=i) for i in range(3))
    weights = (q @ key.transpose(-1, -2) / 2).exp() * k
    expected = weights / weights.sum(-1, keepdim=True) @ v
    torch.testing.assert_close(attend(q, key, v, terms, kernel), expected, rtol=0, atol=1e-9)
    assert not terms.mask[0][0, 0][k == 0].any()
    assert (k == 0).any()


def test_a_kernel_has_no_negative_values() -> None:
    model = MODELS["gkat"](DIMS, encoding=Distance())
    with pytest.raises(PositionError, match="needs a kernel of 0 or more; 'distance' gives -2"):
        model.prepare(encode([path("abc")], model.encodings))


def test_roles_are_rows_of_a_table() -> None:
    line = path("abcd")
    roles = WeisfeilerLehman().fit([line])
    model = MODELS["dwivedi-wl"](DIMS, encoding=roles, rows=5)
    added = model.inputs(torch.zeros(1, 4, 8), model.prepare(encode([line], model.encodings)))[0]
    assert torch.equal(added, model.table[torch.from_numpy(roles.one(line).values)])
    assert torch.equal(added[0], added[3])
    assert not torch.equal(added[0], added[1])


def test_more_roles_than_rows() -> None:
    roles = WeisfeilerLehman().fit([path("abcd")])
    with pytest.raises(
        PositionError, match=r"'dwivedi-wl' has 2 rows for roles, the encoding has 3 values; .*max_roles=1"
    ):
        MODELS["dwivedi-wl"](DIMS, encoding=roles, rows=2)

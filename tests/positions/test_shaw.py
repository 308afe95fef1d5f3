"""Shaw: the authors' numbers, and the keys-only form of BERT's reimplementation."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from structpe.attention import KERNELS, attend
from structpe.data.encode import encode
from structpe.errors import PositionError
from structpe.positions import Dims, Site
from structpe.positions.shaw import Shaw
from structpe.positions.shaw_keys import ShawKeys
from structpe.structure import path
from tests.golden import golden


def sequence(model: torch.nn.Module, length: int) -> object:
    return model.prepare(encode([path(["w"] * length)], model.encodings))


@pytest.mark.parametrize("kernel", ["dense", "tables"])
def test_the_authors_numbers(kernel: str) -> None:
    given = golden("shaw_t2t")
    model = Shaw(Dims(8, 2, 1), reach=given.cfg["max_relative_position"])
    with torch.no_grad():
        model.keys.weight.copy_(given["w.keys"][None, :, None])
        model.values.weight.copy_(given["w.values"][None, :, None])
    # Their queries come scaled already.
    q = given["in.q"] * given["in.q"].shape[-1] ** 0.5
    terms = model.terms(sequence(model, 6), Site(0))
    torch.testing.assert_close(
        attend(q, given["in.k"], given["in.v"], terms, kernel), given["out.attn"], rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_keys_alone_are_berts_relative_key(kernel: str) -> None:
    given = golden("bert_relative_key")
    reach, heads = given.cfg["max_position_embeddings"] - 1, given.cfg["heads"]
    model = ShawKeys(Dims(given.cfg["d"], heads, 1), reach=reach).double()
    with torch.no_grad():  # their rows are query minus key
        model.keys.weight.copy_(given["w.distance_embedding.weight"].flip(0)[None, :, None])

    def project(name: str) -> Tensor:
        x = given["in.x"] @ given[f"w.{name}.weight"].T + given[f"w.{name}.bias"]
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)

    terms = model.terms(sequence(model, given.cfg["L"]), Site(0))
    out = attend(project("query"), project("key"), project("value"), terms, kernel)
    torch.testing.assert_close(out.transpose(1, 2).flatten(2), given["out.context"], rtol=0, atol=1e-9)


def test_a_reach_below_one_is_refused() -> None:
    with pytest.raises(PositionError, match="needs a row on each side: reach 0, within 8; give 1 or more"):
        Shaw(Dims(8, 2, 1), reach=0)

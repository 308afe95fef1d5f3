"""Shaw: the authors' numbers, and the keys-only form of BERT's reimplementation."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from structpe.attention import attend
from structpe.errors import PositionError
from structpe.positions import Dims, Site
from structpe.positions.batch import encode
from structpe.positions.relative import Shaw, ShawAbsolute, ShawKeys
from structpe.structure import path
from tests.golden import golden
from tests.positions.cases import TREES, encoded, made
from tests.positions.literal import terms_of, units


def sequence(model: torch.nn.Module, length: int) -> object:
    return model.prepare(encode([path(["w"] * length)], model.encodings))


@pytest.mark.parametrize("kernel", ["dense", "tables"])
def test_the_authors_numbers(kernel: str) -> None:
    given = golden("shaw_t2t")
    model = Shaw(Dims(8, 2, 1), max_distance=given.cfg["max_relative_position"])
    with torch.no_grad():
        model.keys.weight.copy_(given["w.keys"][None, :, None])
        model.values.weight.copy_(given["w.values"][None, :, None])
    # Their queries come scaled already.
    q = given["in.q"] * given["in.q"].shape[-1] ** 0.5
    terms = model.terms(sequence(model, 6), Site(0))
    torch.testing.assert_close(
        attend(q, given["in.k"], given["in.v"], terms, kernel), given["out.attn"], rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("kernel", ["dense", "sdpa", "tables"])
def test_keys_only_are_berts_relative_key(kernel: str) -> None:
    given = golden("bert_relative_key")
    reach, heads = given.cfg["max_position_embeddings"] - 1, given.cfg["heads"]
    model = ShawKeys(Dims(given.cfg["d"], heads, 1), max_distance=reach).double()
    with torch.no_grad():  # their rows are query minus key
        model.keys.weight.copy_(given["w.distance_embedding.weight"].flip(0)[None, :, None])

    def project(name: str) -> Tensor:
        x = given["in.x"] @ given[f"w.{name}.weight"].T + given[f"w.{name}.bias"]
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)

    terms = model.terms(sequence(model, given.cfg["L"]), Site(0))
    out = attend(project("query"), project("key"), project("value"), terms, kernel)
    torch.testing.assert_close(out.transpose(1, 2).flatten(2), given["out.context"], rtol=0, atol=1e-9)


def test_a_reach_below_one_is_refused() -> None:
    with pytest.raises(PositionError, match="'max_distance' of position model 'shaw' is 0; give 1 or more"):
        Shaw(Dims(8, 2, 1), max_distance=0)


def test_the_absolute_variant_pair_by_pair() -> None:
    model = made("shaw-absolute", max_length=9)
    q, k, v = units(4, 7)
    keys, values = (table.weight[1, :, 0].unflatten(0, (9, 9)) for table in (model.keys, model.values))
    for kernel in ("dense", "tables"):
        mine = attend(q, k, v, terms_of(model, 7, 1), kernel)
        for h in range(2):
            for i in range(7):
                scores = torch.stack([q[0, h, i] @ (k[0, h, j] + keys[i, j]) / 2 for j in range(7)])
                weights = scores.softmax(0)
                expected = sum(weights[j] * (v[0, h, j] + values[i, j]) for j in range(7))
                torch.testing.assert_close(mine[0, h, i], expected, rtol=0, atol=1e-9)


def test_the_absolute_variant_on_texts_in_any_order() -> None:
    """Places are those of reading, not of storing: trees here are not stored in their order."""
    model = made("shaw-absolute", max_length=12)
    prepared = model.prepare(encoded(model, TREES))
    places = encoded(model, TREES)[model.encodings[0]]
    for b, tree in enumerate(TREES):
        n = tree.unit_count
        expected = places[b, :n, None] * 12 + places[b, None, :n]
        assert torch.equal(prepared.dense()[b, :n, :n], expected)


def test_with_offsets_in_its_table_it_is_the_relative_variant() -> None:
    absolute, relative = made("shaw-absolute", max_length=7), made("shaw", max_distance=6)
    places = torch.arange(7)
    rows = (places[None] - places[:, None] + 6).flatten()
    with torch.no_grad():
        absolute.keys.weight.copy_(relative.keys.weight[:, rows])
        absolute.values.weight.copy_(relative.values.weight[:, rows])
    q, k, v = units(4, 7)
    one, other = (attend(q, k, v, terms_of(model, 7), "dense") for model in (absolute, relative))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_the_absolute_variant_ends_at_its_length() -> None:
    with pytest.raises(PositionError, match="'shaw-absolute' has 5 positions, this batch needs 6; build it"):
        terms_of(ShawAbsolute(Dims(8, 2, 1), max_length=5), 6)
    with pytest.raises(PositionError, match="'max_length' of position model 'shaw-absolute' is 0; give 1 or more"):
        ShawAbsolute(Dims(8, 2, 1), max_length=0)

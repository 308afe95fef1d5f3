"""Lightweight convolutions in attention: the authors' numbers, and the sum of three."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from structpe.attention import attend
from structpe.positions import MODELS, Dims, PositionModel
from structpe.positions.convolution import Composite
from structpe.terms import Terms
from tests.golden import Golden, golden
from tests.positions.cases import made
from tests.positions.literal import Score, assert_score, heads, terms_of
from tests.together import together

# Which array of the authors' code is which table: theirs count kernels from the farthest key behind on.
FIXED, OF_QUERIES, OF_KEYS = "w.convfixed_param", "w.convq_param", "w.convk_param"


def tables(given: Golden) -> dict[str, Tensor]:
    """By the name of the model that has it: (1, R, h or 1) or (1, R, 1, d_h)."""
    found = {}
    if FIXED in given.arrays:
        found["convolution"] = given[FIXED][0, :, 0].T[None]
    if OF_QUERIES in given.arrays:
        found["convolution-dynamic"] = given[OF_QUERIES].T[None, :, None]
    if OF_KEYS in given.arrays:
        found["convolution-dynamic-key"] = given[OF_KEYS].T[None, :, None]
    return found


def summed(dims: Dims, reach: int, given: Golden) -> Terms:
    total = Terms()
    for name, table in tables(given).items():
        model = MODELS[name](dims, max_distance=reach).double()
        with torch.no_grad():
            model.table.weight.copy_(table)
        total = total + terms_of(model, given.cfg["L"])
    return total


def composite(dims: Dims, reach: int, given: Golden) -> Terms:
    """What the authors' variant lacks is zero."""
    model = Composite(dims, max_distance=reach).double()
    mine = {"convolution": model.bias, "convolution-dynamic": model.keys, "convolution-dynamic-key": model.queries}
    with torch.no_grad():
        for name, table in mine.items():
            table.weight.copy_(tables(given).get(name, torch.zeros_like(table.weight)))
    return terms_of(model, given.cfg["L"])


@together("kernel", ["dense", "sdpa", "tables"])
@together("made_of", [summed, composite])
@together(
    "name",
    ["composite_qk_convfixed", "composite_qk_convq", "composite_qk_convfixed_convq_convk"],
)
def test_the_authors_numbers(name: str, made_of: object, kernel: str) -> None:
    given = golden(name)
    assert tables(given)
    dims = Dims(given.cfg["d"], given.cfg["heads"], 1)
    assert callable(made_of)
    terms = made_of(dims, int(given.cfg["kernel"].split()[1]), given)
    q, k, v = (
        heads(given["in.x"], given[f"w.{n}.weight"], given[f"w.{n}.bias"], dims.heads)
        for n in ("query", "key", "value")
    )
    out = attend(q, k, v, terms, kernel).transpose(1, 2).flatten(2)
    torch.testing.assert_close(out, given["out.context"], rtol=0, atol=1e-9)


def rows(i: int, j: int, reach: int) -> tuple[int, int]:
    """Of s - t and of t - s."""
    return max(-reach, min(reach, j - i)) + reach, max(-reach, min(reach, i - j)) + reach


def test_the_formula() -> None:
    model = made("composite", max_distance=2)
    assert isinstance(model, Composite)
    b, w_q, w_k = model.bias.weight[1], model.keys.weight[1, :, 0], model.queries.weight[1, :, 0]

    def formula(q: Tensor, k: Tensor) -> Score:
        def score(h: int, i: int, j: int) -> Tensor:
            after, before = rows(i, j, 2)
            return (q[h, i] @ k[h, j] + q[h, i] @ w_q[after] + k[h, j] @ w_k[before]) / 2 + b[after, h]

        return score

    assert_score(model, formula, layer=1)


def one(model: PositionModel, q: Tensor, k: Tensor, h: int, i: int, j: int) -> Tensor:
    after, before = rows(i, j, 2)
    table = model.table.weight[0]
    if model.name == "convolution":
        return q[h, i] @ k[h, j] / 2 + table[after, h]
    if model.name == "convolution-dynamic":
        return q[h, i] @ (k[h, j] + table[after, 0]) / 2
    return (q[h, i] + table[before, 0]) @ k[h, j] / 2


@pytest.mark.parametrize("name", ["convolution", "convolution-dynamic", "convolution-dynamic-key"])
def test_the_formula_of_each(name: str) -> None:
    model = made(name, max_distance=2)
    assert_score(model, lambda q, k: lambda h, i, j: one(model, q, k, h, i, j))


def test_a_fixed_kernel_starts_as_no_kernel() -> None:
    model = MODELS["convolution"](Dims(8, 2, 1))
    assert not terms_of(model, 5).bias[0].dense().any()

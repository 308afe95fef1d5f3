"""TUPE: the authors' bias, and its formula with the first unit apart."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from structpe.attention import attend
from structpe.encodings import Depth, Distance
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, PositionModel, Site
from structpe.positions.batch import encode
from structpe.positions.untied import TUPEAbsolute, TUPERelative, Untied
from structpe.structure import path
from structpe.terms import Terms
from tests.golden import Golden, golden
from tests.positions.cases import TREES, encoded, made
from tests.positions.literal import terms_of, units, written_out


def bias(terms: Terms) -> Tensor:
    """(b or 1, h, n, n) what is added to scores."""
    (factor,) = terms.factors
    whole = factor.left @ factor.right.transpose(-1, -2)
    return whole + sum(x.dense().movedim(3, 1) for x in terms.bias)


def with_weights(places: Untied, given: Golden) -> None:
    with torch.no_grad():
        places.table.copy_(given["w.pos.weight"])
    places.norm.load_state_dict(given.weights("pos_ln."))
    places.query.load_state_dict(given.weights("pos_q_linear."))
    places.key.load_state_dict(given.weights("pos_k_linear."))


def test_the_authors_bias() -> None:
    given = golden("tupe_a")
    dims = Dims(given.cfg["d"], given.cfg["heads"], 2)
    model = TUPEAbsolute(dims, max_length=given.cfg["max_seq_len"]).double()
    with_weights(model.places, given)
    for layer in range(2):
        terms = terms_of(model, int(given["in.seq_len"]), layer)
        torch.testing.assert_close(bias(terms)[0], given["out.bias"], rtol=0, atol=1e-9)
        assert terms.scale == pytest.approx(math.sqrt(1 / 2))


def test_the_authors_bias_with_buckets() -> None:
    given = golden("tupe_r")
    cfg = given.cfg
    dims = Dims(cfg["d"], cfg["heads"], 1)
    model = TUPERelative(
        dims, max_length=cfg["max_seq_len"], num_buckets=cfg["rel_pos_bins"], max_distance=cfg["max_rel_pos"]
    ).double()
    with_weights(model.places, given)
    with torch.no_grad():
        model.bias.copy_(given["w.relative_attention_bias.weight"])
    terms = terms_of(model, int(given["in.seq_len"]))
    torch.testing.assert_close(bias(terms)[0], given["out.bias"], rtol=0, atol=1e-9)


def absolute(places: Untied, h: int, i: int, j: int) -> Tensor:
    """p_i.r_j / sqrt(2 d_h), row by row."""

    def of(row: int, through: torch.nn.Linear) -> Tensor:
        x = places.table[row]
        normed = (x - x.mean()) / (x.var(unbiased=False) + 1e-5).sqrt() * places.norm.weight + places.norm.bias
        return (through.weight @ normed + through.bias)[4 * h : 4 * h + 4]

    first, second = (0, 0) if i == 0 else (1, 1) if j == 0 else (i + 1, j + 1)
    return of(first, places.query) @ of(second, places.key) / math.sqrt(8)


def t5_bucket(r: int, count: int, farthest: int) -> int:
    each, far, exact = count // 2, abs(r), count // 4
    if far >= exact:
        far = min(exact + math.floor(math.log(far / exact) / math.log(farthest / exact) * (each - exact)), each - 1)
    return far + each * (r > 0)


def relative(model: TUPERelative, h: int, i: int, j: int) -> Tensor:
    """12 and 40: the edges of these buckets are no whole numbers, so that rounding cannot decide."""
    row = 6 if i == 0 else 12 if j == 0 else t5_bucket(j - i, 12, 40)
    return model.bias[row, h]


@pytest.mark.parametrize("name", ["tupe-a", "tupe-r"])
@pytest.mark.parametrize("layer", [0, 2])
def test_the_formula(name: str, layer: int) -> None:
    model = made(name, max_length=20, **({"num_buckets": 12, "max_distance": 40} if name == "tupe-r" else {}))
    q, k, v = units(4, 15)

    def score(h: int, i: int, j: int) -> Tensor:
        s = q[0, h, i] @ k[0, h, j] / math.sqrt(8) + absolute(model.places, h, i, j)
        return s + relative(model, h, i, j) if isinstance(model, TUPERelative) else s

    expected = written_out(score, v)
    for kernel in ("dense", "sdpa", "tables"):
        mine = attend(q, k, v, terms_of(model, 15, layer), kernel)
        torch.testing.assert_close(mine, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["tupe-a", "tupe-r"])
def test_the_surveys_form_acts_in_the_first_layer_only(name: str) -> None:
    model = made(name, layers=1)
    first, *others = (terms_of(model, 6, layer) for layer in range(3))
    assert torch.equal(bias(first), bias(terms_of(made(name), 6)))
    assert not any(terms.used() for terms in others)


def test_the_first_unit_is_special() -> None:
    """What it says of all units is one number per head, and so is what the others say of it."""
    table = bias(terms_of(made("tupe-a"), 8))[0]
    for h in range(2):
        assert table[h, 0].unique().numel() == 1
        assert table[h, 1:, 0].unique().numel() == 1
        assert table[h, 0, 0] != table[h, 1, 0]
        assert table[h, 1:, 1:].unique().numel() == 49


def test_on_a_tree_the_root_is_special() -> None:
    model = made("tupe-r", encoding=Depth(), offset=Distance())
    tree = TREES[2]
    table = bias(model.terms(model.prepare(encoded(model, [tree])), Site(0)))[0]
    root = tree.root
    assert root is not None
    assert table[0, root].unique().numel() == 1


def test_too_many_places_are_refused() -> None:
    with pytest.raises(PositionError, match="'tupe-a' has 5 positions, this batch needs 6; build it with a larger"):
        terms_of(TUPEAbsolute(Dims(8, 2, 1), max_length=5), 6)


@pytest.mark.parametrize("name", ["tupe-a", "tupe-r"])
def test_sizes_below_one_are_refused(name: str) -> None:
    with pytest.raises(PositionError, match=f"'max_length' of position model '{name}' is 0; give 1 or more"):
        MODELS[name](Dims(8, 2, 1), max_length=0)
    with pytest.raises(PositionError, match=f"'layers' of position model '{name}' is 0; give 1 or more"):
        MODELS[name](Dims(8, 2, 1), layers=0)


def test_other_buckets_are_refused() -> None:
    with pytest.raises(PositionError, match=r"'tupe-r' needs an even number of 4 buckets or more.* are 7 buckets"):
        TUPERelative(Dims(8, 2, 1), num_buckets=7)


def steps(model: PositionModel, size: int) -> list[Tensor]:
    positions = encode([path(["w"] * size)], model.encodings)
    return [bias(model.terms(model.prepare(positions.step(i, i + 1)), Site(0)))[0, :, 0] for i in range(size)]


@pytest.mark.parametrize("name", ["tupe-a", "tupe-r"])
def test_a_step_of_decoding_has_the_row_of_its_place(name: str) -> None:
    model = made(name)
    whole = bias(terms_of(model, 7))[0]
    for i, row in enumerate(steps(model, 7)):
        torch.testing.assert_close(row, whole[:, i, : i + 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["tupe-a", "tupe-r"])
def test_each_text_of_a_batch_has_a_first_unit(name: str) -> None:
    model, sizes = made(name), (3, 5, 2)
    texts = [path(["w"] * size) for size in sizes]
    together = bias(model.terms(model.prepare(encoded(model, texts)), Site(0))).expand(3, -1, -1, -1)
    for row, size in enumerate(sizes):
        alone = bias(terms_of(model, size))[0]
        torch.testing.assert_close(together[row, :, :size, :size], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["tupe-a", "tupe-r"])
def test_a_step_of_decoding_knows_the_first_unit(name: str) -> None:
    """The only query of a step is the first unit in the first step only."""
    model = made(name)
    whole, positions = bias(terms_of(model, 6))[0], encoded(model, [path(["w"] * 6)])
    for place in range(6):
        step = bias(model.terms(model.prepare(positions.step(place, place + 1)), Site(0)))[0]
        torch.testing.assert_close(step[:, 0], whole[:, place, : place + 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["tupe-a", "tupe-r"])
def test_both_numbers_of_the_first_unit_are_learned(name: str) -> None:
    """Row 0 of the table has one, row 1 the other, and no unit has either otherwise; row 2 is of the second unit."""
    model = made(name)
    for row, touched in (
        (0, lambda i, j: i == 0),
        (1, lambda i, j: i > 0 and j == 0),
        (2, lambda i, j: i > 0 and j > 0 and 1 in (i, j)),
    ):
        before = bias(terms_of(model, 5))[0]
        with torch.no_grad():
            model.places.table[row, 0] += 1
        changed = (bias(terms_of(model, 5))[0] - before).abs().amax(0) > 1e-9
        assert changed.tolist() == [[touched(i, j) for j in range(5)] for i in range(5)]

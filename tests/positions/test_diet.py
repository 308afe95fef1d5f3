"""The models of Chen et al. 2021 (DIET, and ABS-/REL-SCALAR of their first version), and what the two papers claim."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from structpe.attention import attend
from structpe.encodings import Distance, Feature, Order
from structpe.errors import PositionError
from structpe.nn.layer import StackConfig
from structpe.nn.stack import Stack
from structpe.positions import MODELS, Dims, PositionModel, Site, build
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from structpe.terms import Projection, Terms
from tests.attention.test_memory import Largest, elements
from tests.positions.cases import TREES, able, made, noise

DIMS = Dims(8, 2, 3)
SHARINGS = ["none", "head-wise", "layer-wise", "both"]


def text(size: int, first: int | None = None) -> Structure:
    """A text whose units from ``first`` on are the second segment."""
    segment = np.arange(size) >= (size if first is None else first)
    return replace(path([f"w{i}" for i in range(size)]), features={"segment": segment.astype(np.int64)})


def added(model: PositionModel, structure: Structure, layer: int = 0) -> Tensor:
    """(h, n, n) what is added to the scores."""
    terms = model.terms(model.prepare(encode([structure], model.encodings)), Site(layer))
    assert terms.used() <= {"factors", "bias"}
    total = torch.zeros(model.dims.heads, structure.unit_count, structure.unit_count, dtype=torch.float64)
    for factor in terms.factors:
        total = total + (factor.left @ factor.right.transpose(-1, -2))[0]
    for bias in terms.bias:
        total = total + bias.dense().movedim(3, 1)[0]
    return total.detach()


# --- the equations, by loops over the tables that share nothing with the models ---


def own(table: Tensor, layer: int, head: int) -> Tensor:
    """(R, ...) the table of one layer and head, shared or not."""
    return table[min(layer, len(table) - 1), :, min(head, table.shape[2] - 1)].detach()


@pytest.mark.parametrize("sharing", SHARINGS)
def test_diet_abs_is_equation_1(sharing: str) -> None:
    model: Any = made("diet-abs", DIMS, rank=3, max_length=9, sharing=sharing)
    for layer in range(3):
        found = added(model, text(7), layer)
        for head in range(2):
            of_queries, of_keys = (own(t.weight, layer, head) for t in (model.queries, model.keys))
            for i in range(7):
                for j in range(7):
                    expected = sum(float(of_queries[i, c]) * float(of_keys[j, c]) for c in range(3))
                    assert math.isclose(float(found[head, i, j]), expected, abs_tol=1e-9)


@pytest.mark.parametrize("sharing", SHARINGS)
def test_abs_scalar_is_equation_7_of_the_first_version(sharing: str) -> None:
    model: Any = made("abs-scalar", DIMS, max_length=9, sharing=sharing)
    for layer in range(3):
        found = added(model, text(7), layer)
        for head in range(2):
            p = own(model.table.weight, layer, head)
            assert p.shape[1] == DIMS.head
            for i in range(7):
                for j in range(7):
                    expected = sum(float(p[i, c]) * float(p[j, c]) for c in range(4))
                    assert math.isclose(float(found[head, i, j]), expected, abs_tol=1e-9)


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("name", ["diet-rel", "rel-scalar"])
def test_a_scalar_for_each_offset(name: str, sharing: str) -> None:
    model: Any = made(name, DIMS, max_length=9, sharing=sharing)
    for layer in range(3):
        found = added(model, text(9), layer)
        for head in range(2):
            scalars = own(model.table.weight, layer, head)
            assert len(scalars) == 2 * 9 - 1
            for i in range(9):
                for j in range(9):
                    assert float(found[head, i, j]) == float(scalars[i - j + 8])


@pytest.mark.parametrize("sharing", SHARINGS)
def test_segments_attend_to_segments_by_equation_2(sharing: str) -> None:
    model: Any = made("segment-bias", DIMS, segments=3, sharing=sharing)
    segments = [2, 0, 1, 1, 0, 2]
    structure = replace(text(6), features={"segment": np.array(segments)})
    for layer in range(3):
        found = added(model, structure, layer)
        for head in range(2):
            table = own(model.table.weight, layer, head)
            for i, mine in enumerate(segments):
                for j, other in enumerate(segments):
                    assert math.isclose(float(found[head, i, j]), float(table[mine, other]), abs_tol=1e-12)


def test_segments_at_the_input() -> None:
    model: Any = made("segment-input", DIMS, segments=3)
    structure = replace(text(4), features={"segment": np.array([2, 0, 1, 1])})
    x = noise(1, 4, 8)
    out = model.inputs(x, model.prepare(encode([structure], model.encodings)))
    for i, segment in enumerate([2, 0, 1, 1]):
        assert torch.equal(out[0, i], x[0, i] + model.table[segment])


@pytest.mark.parametrize("kernel", able(frozenset({"bias", "factors"})))
def test_the_position_term_is_outside_the_scale(kernel: str) -> None:
    """Equations 1 and 3 with segments, softmax and all."""
    model = build([{"name": "diet-abs", "rank": 3}, "diet-rel", "segment-bias"], DIMS).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    structure = text(5, first=2)
    positions = encode([structure], model.encodings)
    terms = model.terms(model.prepare(positions), Site(1))
    q, k, v = noise(3, 1, 2, 5, 4).unbind(0)
    parts = [added(each, structure, 1) for each in model.models]  # type: ignore[attr-defined]
    expected = torch.softmax(q @ k.mT / 2 + sum(parts), dim=-1) @ v
    torch.testing.assert_close(attend(q, k, v, terms, kernel), expected, rtol=0, atol=1e-9)


def test_linformer_is_equation_4() -> None:
    model: Any = made("diet-abs-lin", DIMS, max_length=9, mixtures=3, rank=2, mixing="none")
    terms = model.terms(model.prepare(encode([text(6)], model.encodings)), Site(2))
    q, k, v = noise(3, 1, 2, 6, 4).unbind(0)
    expected = torch.zeros(1, 2, 6, 4, dtype=torch.float64)
    for head in range(2):
        e, f, p_q, p_k = (own(t.weight, 2, head) for t in (model.of_keys, model.of_values, model.queries, model.keys))
        keys = [sum(e[j, c] * k[0, head, j] for j in range(6)) for c in range(3)]
        values = [sum(f[j, c] * v[0, head, j] for j in range(6)) for c in range(3)]
        for i in range(6):
            scores = [q[0, head, i] @ keys[c] / 2 + p_q[i] @ p_k[c] for c in range(3)]
            weights = torch.softmax(torch.stack(scores), dim=0)
            expected[0, head, i] = sum(weights[c] * values[c] for c in range(3))
    torch.testing.assert_close(attend(q, k, v, terms), expected, rtol=0, atol=1e-9)


def test_keys_are_mixed_before_or_after_they_are_projected() -> None:
    """Equation 4 has (E X) W_K; what is mixed here is X W_K."""
    e, x, w = noise(3, 6), noise(6, 8, seed=1), noise(8, 4, seed=2)
    torch.testing.assert_close((e @ x) @ w, e @ (x @ w), rtol=0, atol=1e-9)


# --- what the papers claim ---


def test_diet_abs_of_full_rank_is_any_diet_rel() -> None:
    """Section 3.1 and the ablations of d_p: P_Q = T, P_K = 1 is T, for any T."""
    relative, absolute = made("diet-rel", DIMS, max_length=7), made("diet-abs", DIMS, max_length=7, rank=7)
    expected = torch.stack([added(relative, text(7), layer) for layer in range(3)])
    with torch.no_grad():
        absolute.queries.weight.copy_(expected.transpose(1, 2))  # type: ignore[union-attr,operator]
        absolute.keys.weight.copy_(torch.eye(7)[:, None].expand(3, 7, 2, 7))  # type: ignore[union-attr,operator]
    for layer in range(3):
        torch.testing.assert_close(added(absolute, text(7), layer), expected[layer], rtol=0, atol=1e-12)


def test_abs_scalar_does_not_distinguish_ahead_and_behind() -> None:
    """P P^T is symmetric and has no negative eigenvalue; two tables are free of both."""
    one, two = added(made("abs-scalar", DIMS), text(7)), added(made("diet-abs", DIMS), text(7))
    torch.testing.assert_close(one, one.mT, rtol=0, atol=1e-12)
    assert torch.linalg.eigvalsh(one).min() > -1e-9
    assert not torch.allclose(two, two.mT)


def test_t5_is_rel_scalar_with_buckets_shared_by_the_layers() -> None:
    """First version, section 4.3."""
    t5, relative = made("t5", DIMS), made("rel-scalar", DIMS, max_length=40, sharing="layer-wise")
    bias = added(t5, text(40))
    with torch.no_grad():
        scalars = torch.cat([bias[:, 0].flip(1), bias[:, 1:, 0]], dim=1)  # query minus key, -39..0, 1..39
        relative.table.weight.copy_(scalars.mT[None])  # type: ignore[union-attr,operator]
    for layer in range(3):
        assert torch.equal(added(relative, text(40), layer), bias)


def test_the_two_versions_of_the_paper_name_one_relative_model() -> None:
    names = ("diet-rel", "rel-scalar")
    first, second = (torch.stack([added(made(name, DIMS), text(7), layer) for layer in range(3)]) for name in names)
    assert torch.equal(first, second)


def test_a_position_at_the_input_gets_the_gradient_of_its_token() -> None:
    """Theorem 2 (theorem 1 of the first version): they are the same wherever X and P are only ever added."""
    model: Any = made("learned", DIMS, max_length=6)
    encoder = Stack(StackConfig.transformer(DIMS, 16), model).double()
    x = noise(1, 6, 8).requires_grad_()
    out = encoder.padded(x, encode([text(6)], model.encodings))
    (out * noise(1, 6, 8, seed=1)).sum().backward()
    assert x.grad is not None
    assert x.grad.any()
    torch.testing.assert_close(model.table.grad, x.grad[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("name", "growth"), [("diet-abs", 2), ("abs-scalar", 2), ("diet-rel", 2), ("rel-scalar", 2)])
def test_parameters_grow_with_the_length_not_its_square(name: str, growth: float) -> None:
    counts = [sum(p.numel() for p in made(name, DIMS, max_length=length).parameters()) for length in (100, 200, 400)]
    assert counts[1] / counts[0] == pytest.approx(growth, rel=0.01)
    assert counts[2] / counts[1] == pytest.approx(growth, rel=0.01)


def test_segments_cost_the_square_of_their_number() -> None:
    for segments in (2, 3, 5):
        count = sum(p.numel() for p in made("segment-bias", DIMS, segments=segments).parameters())
        assert count == segments**2 * DIMS.heads * DIMS.layers


def test_places_in_a_linformer_keep_it_linear() -> None:
    """No tensor of forward or backward grows faster than the number of units (section 3.4)."""
    sizes = {}
    for n in (64, 128, 256):
        model = made("diet-abs-lin", Dims(8, 2, 1), max_length=256, mixtures=4, rank=4).float()
        encoder = Stack(StackConfig.transformer(Dims(8, 2, 1), 8), model)
        positions = encode([text(n)], model.encodings)
        x = torch.randn(1, n, 8, requires_grad=True)
        with Largest() as seen:
            encoder.padded(x, positions).square().sum().backward()
        # The tables of all 256 places, with their gradients, are the model itself.
        sizes[n] = torch.Size(seen.shape).numel()
    # The largest are queries, keys and values of all units together.
    assert all(size <= max(n * 24, 256 * 16) for n, size in sizes.items()), sizes
    assert sizes[256] < 256 * 256


# --- how they are computed, and what they refuse ---


def test_rows_in_reading_order_are_a_view_of_the_table() -> None:
    """Nothing is computed per batch: texts of several lengths have one left factor and one right."""
    model: Any = made("diet-abs", DIMS, max_length=9)
    terms = model.terms(model.prepare(encode([text(6), text(3)], model.encodings)), Site(1))
    for side, table in ((terms.factors[0].left, model.queries), (terms.factors[0].right, model.keys)):
        assert side.shape[0] == 1
        assert side.untyped_storage().data_ptr() == table.weight.untyped_storage().data_ptr()


def test_rows_out_of_reading_order_are_the_same_numbers() -> None:
    """Places of a tree, and a decoding step, compared with the table itself."""
    model: Any = made("diet-abs", DIMS)
    positions = encode(TREES, model.encodings)
    factor = model.terms(model.prepare(positions), Site(0)).factors[0]
    for row, structure in enumerate(TREES):
        places = Order().one(structure).values
        for unit, place in enumerate(places):
            assert torch.equal(factor.left[row, :, unit], model.queries.weight[0, int(place)])
    step = model.terms(model.prepare(encode([text(6)], model.encodings).step(4, 5)), Site(0)).factors[0]
    assert torch.equal(step.left[0, :, 0], model.queries.weight[0, 4])
    assert torch.equal(step.right[0].transpose(0, 1), model.keys.weight[0, :5])


def test_a_zero_that_is_no_padding_is_its_own_place() -> None:
    """Depth 0 may come anywhere in a forest; only in reading order is a late 0 padding."""
    model: Any = made("diet-abs", DIMS, encoding=Feature("level"))
    structure = replace(text(3), features={"level": np.array([0, 1, 0])})
    factor = model.terms(model.prepare(encode([structure], model.encodings)), Site(0)).factors[0]
    assert torch.equal(factor.left[0, :, 2], model.queries.weight[0, 0])


@pytest.mark.parametrize("name", ["diet-abs", "abs-scalar", "diet-abs-lin"])
def test_places_beyond_the_table_are_refused(name: str) -> None:
    model = made(name, DIMS, max_length=5)
    model.prepare(encode([text(5)], model.encodings))
    with pytest.raises(PositionError, match=f"{name!r} has 5 positions, this batch needs 6; build it with a larger"):
        model.prepare(encode([text(6)], model.encodings))
    model = made(name, DIMS, max_length=5, encoding=Feature("level"))
    with pytest.raises(PositionError, match="this batch needs 10"):
        model.prepare(encode([replace(text(2), features={"level": np.array([9, 0])})], model.encodings))


@pytest.mark.parametrize("name", ["diet-rel", "rel-scalar"])
def test_offsets_are_not_cut_off(name: str) -> None:
    model = made(name, DIMS, max_length=5)
    model.prepare(encode([text(5)], model.encodings))
    with pytest.raises(
        PositionError, match=r"has rows for offsets below 5 and does not clip; .* has an offset of 5; build it"
    ):
        model.prepare(encode([text(6)], model.encodings))
    with pytest.raises(PositionError, match=f"'max_length' of position model {name!r} is 0; give 1 or more"):
        MODELS[name](DIMS, max_length=0)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["diet-rel", "rel-scalar"])
def test_on_a_graph_offsets_are_distances(name: str) -> None:
    """Pairs without a path and units of one node have their own scalars, in addition to those of a path."""
    model: Any = made(name, DIMS, encoding=Distance(), max_length=9)
    assert model.sizes["R"] == (2 * 9 - 1) + 1 + (2 * 8 + 1)
    assert len(added(model, TREES[0]).unique()) > 10


@pytest.mark.parametrize("name", ["segment-bias", "segment-input"])
def test_invalid_segments_are_refused(name: str) -> None:
    model = made(name, DIMS)

    def ask(values: Any) -> None:
        structure = replace(text(3), features={"segment": np.array(values)})
        model.inputs(noise(1, 3, 8), model.prepare(encode([structure], model.encodings)))

    ask([0, 1, 1])
    with pytest.raises(PositionError, match=rf"{name!r} has segments 0..1, this batch has 0..2; number them from 0"):
        ask([0, 2, 1])
    with pytest.raises(PositionError, match=r"this batch has -1\.\.1"):
        ask([0, -1, 1])
    with pytest.raises(PositionError, match="needs an integer per unit, the number of its segment"):
        ask([0.0, 0.5, 1.0])
    with pytest.raises(PositionError, match=r"'segments' of position model .* is 0; give 1 or more"):
        MODELS[name](DIMS, segments=0)  # type: ignore[call-arg]


def test_a_linformer_does_not_write() -> None:
    assert not made("diet-abs-lin", DIMS).causal
    with pytest.raises(PositionError, match="'mixtures' of position model 'diet-abs-lin' is 0; give 1 or more"):
        MODELS["diet-abs-lin"](DIMS, mixtures=0)  # type: ignore[call-arg]


def test_units_are_mixed_by_their_place() -> None:
    """Of a tree too, and padding by nobody: the columns of E follow the reading order."""
    model: Any = made("diet-abs-lin", DIMS, mixtures=3)
    terms: Terms = model.terms(model.prepare(encode(TREES, model.encodings)), Site(0))
    projection = terms.projection
    assert isinstance(projection, Projection)
    for row, structure in enumerate(TREES):
        for unit, place in enumerate(Order().one(structure).values):
            assert torch.equal(projection.keys[row, 0, :, unit], model.of_keys.weight[0, int(place), 0])
    assert elements(projection.keys) == 3 * 10 * 3, "one E for all heads of a layer"


def test_a_step_may_come_with_the_offsets_of_a_longer_text() -> None:
    """What it uses itself is what counts: a text that may become long need not."""
    model = made("diet-rel", DIMS, max_length=5)
    positions = encode([text(9)], model.encodings)
    for stop in range(1, 6):
        model.prepare(positions.step(stop - 1, stop))
    with pytest.raises(PositionError, match="has an offset of 5"):
        model.prepare(positions.step(5, 6))

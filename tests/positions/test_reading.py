"""Networks that read units in order, without and with relative positions (Neishi and Yoshinaga 2019)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from structpe.encodings import Depth, Distance
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, PositionModel, Site
from structpe.positions.recurrent import RNN, RR
from structpe.positions.relative import Shaw
from tests.positions.cases import TREES, encoded, labelled_path, made, noise
from tests.strategies import relabelled

NAMES = ["rnn", "rr"]


def read_by_hand(model: PositionModel, units: Tensor) -> Tensor:
    """h_t = (1 - z) n + z h_(t-1), gate by gate, over units (n, d) in order."""
    w = {name.removesuffix("_l0"): value for name, value in model.reader.network.state_dict().items()}
    h, states = torch.zeros(units.shape[1], dtype=units.dtype), []
    for x in units:
        ours = (w["weight_ih"] @ x + w["bias_ih"]).chunk(3)
        state = (w["weight_hh"] @ h + w["bias_hh"]).chunk(3)
        r, z = (torch.sigmoid(a + b) for a, b in zip(ours[:2], state[:2], strict=True))
        h = (1 - z) * torch.tanh(ours[2] + r * state[2]) + z * h
        states.append(h)
    return torch.stack(states)


@pytest.mark.parametrize("name", NAMES)
def test_each_text_is_read_in_its_order(name: str) -> None:
    model, x = made(name), noise(3, 10, 8)
    out = model.inputs(x, model.prepare(encoded(model, TREES)))
    for row, structure in enumerate(TREES):
        order = np.argsort(structure.order[structure.unit_owner], kind="stable")
        torch.testing.assert_close(out[row, order], read_by_hand(model, x[row, order]), rtol=0, atol=1e-9)
        assert not out[row, structure.unit_count :].any()


@pytest.mark.parametrize("name", NAMES)
def test_texts_of_a_batch_are_read_separately(name: str) -> None:
    """Also if the numbers of the nodes are in reverse reading order."""
    model, texts = made(name), [relabelled(TREES[0], np.arange(7)[::-1])[0], *TREES[1:], labelled_path(1)]
    x = noise(len(texts), 10, 8)
    together = model.inputs(x, model.prepare(encoded(model, texts)))
    for mine, units, structure in zip(together, x, texts, strict=True):
        size = structure.unit_count
        alone = model.inputs(units[None, :size], model.prepare(encoded(model, [structure])))[0]
        torch.testing.assert_close(mine[:size], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_what_comes_later_changes_nothing_and_what_came_before_does(name: str) -> None:
    model, x = made(name), noise(1, 6, 8)
    prepared = model.prepare(encoded(model, [labelled_path(6)]))
    last, first = x.clone(), x.clone()
    last[0, 5] += 1
    first[0, 0] += 1
    before = model.inputs(x, prepared)
    assert torch.equal(model.inputs(last, prepared)[:, :5], before[:, :5])
    assert not torch.isclose(model.inputs(first, prepared), before).any()


def test_rr_attends_as_shaw_does() -> None:
    mine, shaw = made("rr", max_distance=3), Shaw(Dims(8, 2, 3), max_distance=3).double()
    shaw.keys.weight.data.copy_(mine.keys.weight)
    shaw.values.weight.data.copy_(mine.values.weight)
    for layer in range(3):
        ours, theirs = (m.terms(m.prepare(encoded(m, TREES)), Site(layer)) for m in (mine, shaw))
        assert ours.used() == theirs.used() == {"key", "value"}
        for a, b in ((ours.key, theirs.key), (ours.value, theirs.value)):
            assert torch.equal(a[0].dense(), b[0].dense())


@pytest.mark.parametrize("name", NAMES)
def test_units_may_be_read_by_depth(name: str) -> None:
    """From the root down; units of one depth as they are stored."""
    model = made(name, **{"encoding" if name == "rnn" else "order": Depth()})
    x, positions = noise(1, 10, 8), encoded(model, TREES[:1])
    order = positions[Depth()][0].argsort(stable=True)
    out = model.inputs(x, model.prepare(positions))
    torch.testing.assert_close(out[0, order], read_by_hand(model, x[0, order]), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_no_decoder_can_use_them(name: str) -> None:
    assert not MODELS[name](Dims(8, 2, 1)).causal


def test_encodings_of_the_wrong_kind_are_refused() -> None:
    with pytest.raises(PositionError, match="'rnn' needs an encoding of single units"):
        RNN(Dims(8, 2, 1), encoding=Distance())
    with pytest.raises(PositionError, match="'rr' needs an encoding of single units"):
        RR(Dims(8, 2, 1), order=Distance())
    with pytest.raises(PositionError, match="'rr' needs an encoding of pairs of units"):
        RR(Dims(8, 2, 1), encoding=Depth())

"""Attention of few pairs: along edges, and within a window."""

from __future__ import annotations

import math

import pytest
import torch

from structpe.attention import attend
from structpe.encodings import Distance, Laplacian, Neighbours, Offset, Order, Window
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, Site, build
from structpe.positions.batch import encode
from structpe.positions.spectral import Dwivedi, DwivediNeighbours
from structpe.positions.windows import SlidingWindow
from structpe.structure import Structure, path
from structpe.terms import SparsePairs, Terms
from tests.positions.cases import Around, accepts, encoded, labelled_path, made, noise

DIMS = Dims(8, 2, 1)
GRAPH = Structure(("x",) * 6, [[0, 1], [1, 2], [2, 0], [2, 3], [3, 4], [4, 3], [4, 4]])  # 5 has no edge


def test_attention_along_edges_is_the_equation_edge_by_edge() -> None:
    model = DwivediNeighbours(DIMS).eval()
    q, k, v = (3 * noise(1, 2, 6, 4, seed=i) for i in range(3))
    out = attend(q, k, v, model.terms(model.prepare(encode([GRAPH], model.encodings)), Site(0)))
    for h in range(2):
        for i in range(6):
            weights = {}
            for source, target in GRAPH.edges.tolist():
                for j in {target} if source == i else {source} if target == i else set():
                    score = sum(float(q[0, h, i, c] * k[0, h, j, c]) for c in range(4)) / math.sqrt(4)
                    weights[j] = math.exp(min(max(score, -5), 5))
            expected = sum((w * v[0, h, j] for j, w in weights.items()), torch.zeros(4).double())
            torch.testing.assert_close(out[0, h, i], expected / (sum(weights.values()) or 1), rtol=0, atol=1e-9)
    assert not out[0, :, 5].any()


def test_the_scores_of_that_test_are_clipped_somewhere() -> None:
    q, k = (3 * noise(1, 2, 6, 4, seed=i) for i in range(2))
    assert (q @ k.transpose(-1, -2) / 2).abs().max() > 5


def test_eigenvectors_enter_as_they_do_without_the_restriction() -> None:
    torch.manual_seed(0)
    mine, plain = DwivediNeighbours(DIMS, encoding=Laplacian(3)), Dwivedi(DIMS, encoding=Laplacian(3))
    plain.load_state_dict(mine.state_dict())
    x = torch.randn(1, 6, 8)
    for training in (False, True):
        entered = []
        for model in (mine.train(training), plain.train(training)):
            torch.manual_seed(1)
            entered.append(model.inputs(x, model.prepare(encode([GRAPH], model.encodings))))
        assert torch.equal(*entered)


def test_each_unit_may_be_its_own_neighbour() -> None:
    model = DwivediNeighbours(DIMS, neighbours=Neighbours(itself=True)).eval()
    _, pairs = model.prepare(encode([GRAPH], model.encodings))
    attending = pairs.dense(1, 6, 6)[0, 0]
    assert attending.diagonal().all()
    assert attending.sum() == 6 + 2 * 5


@pytest.mark.parametrize("reach", [1, 3, 20])
def test_a_sliding_window_is_a_band(reach: int) -> None:
    model = SlidingWindow(DIMS, encoding=Window(reach))
    q, k, v = (noise(1, 2, 12, 4, seed=i) for i in range(3))
    places = torch.arange(12)
    band = ((places[:, None] - places[None, :]).abs() <= reach)[None, None]
    terms = model.terms(model.prepare(encode([path(["w"] * 12)], model.encodings)), Site(0))
    torch.testing.assert_close(attend(q, k, v, terms), attend(q, k, v, Terms(mask=(band,)), "dense"))


def agrees(name: str) -> bool:
    """Whether a model says of a window as wide as the text what it says of all pairs; False if it refuses it."""
    sentence, x = labelled_path(7), noise(1, 7, 8)
    try:
        build({"name": name, "encoding": "window"}, DIMS)  # checks what the option is declared to take
        models = [made(name, DIMS, encoding=encoding) for encoding in (Offset(), Window(6))]
        outputs = [Around(model)(encoded(model, [sentence]), x) for model in models]
    except PositionError:
        return False
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-9)
    return True


def test_models_of_pairs_say_the_same_of_listed_pairs() -> None:
    """So that each can be added to a window, and no other model fails with more than a refusal."""
    agreed = {name for name in MODELS if accepts(name, "encoding") and agrees(name)}
    assert {"alibi", "deberta", "huang-m3", "kerple-log", "shaw", "shaw-keys", "t5"} <= agreed
    assert not {"graformer", "sliding-window", "tener", "transformer-xl"} & agreed


def test_a_window_and_a_bias_within_it_are_linear() -> None:
    """T5's biases of sparse offsets, added to a sliding window: neither makes all pairs."""
    both = build(["sliding-window", "t5"], DIMS)
    assert {encoding.name for encoding in both.encodings} == {"window", "offset"}
    both = build(
        [{"name": name, "encoding": {"name": "window", "max_distance": 2}} for name in ("sliding-window", "t5")], DIMS
    )
    terms = both.terms(both.prepare(encode([path(["w"] * 50)], both.encodings)), Site(0))
    (bias,), (pairs,) = terms.bias, terms.pairs
    assert isinstance(bias, SparsePairs)
    assert bias.pairs is pairs
    band = Terms(mask=(pairs.dense(1, 50, 50),), bias=(bias.dense(1, 50, 50).movedim(3, 1),))
    q, k, v = (torch.randn(1, 2, 50, 4) for _ in range(3))
    torch.testing.assert_close(attend(q, k, v, terms), attend(q, k, v, band, "dense"))


def test_all_pairs_are_refused() -> None:
    text = r"needs an encoding that lists pairs \(neighbours, window, ...\); 'distance' is of all pairs"
    with pytest.raises(PositionError, match=f"'sliding-window' {text}"):
        SlidingWindow(DIMS, encoding=Distance())
    with pytest.raises(PositionError, match=f"'dwivedi-neighbours' {text}"):
        DwivediNeighbours(DIMS, neighbours=Distance())
    with pytest.raises(PositionError, match="'tener' needs an encoding of all pairs; 'window' lists some"):
        build({"name": "tener", "encoding": "window"}, DIMS)
    with pytest.raises(PositionError, match="needs an encoding of pairs of units"):
        SlidingWindow(DIMS, encoding=Order())

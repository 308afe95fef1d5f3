"""Far positions, narrow integers, low precision."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from structpe.encodings.base import Encoding
from structpe.encodings.label_path import LabelPath
from structpe.encodings.laplacian import Laplacian
from structpe.encodings.order import Order
from structpe.errors import EncodingError, PositionError
from structpe.nn.copying import mix
from structpe.positions import MODELS, Dims, PositionModel, Positions, Site, build
from structpe.positions.batch import encode
from structpe.positions.buckets import bucket
from structpe.structure import Structure, path
from tests.positions.cases import encoded
from tests.together import together

DIMS = Dims(8, 2, 1)
FAR = [0, 9_999, 10_001, 123_457, 10_000_019]


def at(places: list[int]) -> Positions:
    return Positions({Order(): torch.tensor([places])})


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-8), (torch.float32, 1e-7), (torch.bfloat16, 4e-3)])
def test_sinusoids_are_right_ten_million_units_away(dtype: torch.dtype, atol: float) -> None:
    """In float32 the angle of place 10,000,019 would be off by up to 0.5."""
    model = MODELS["sinusoidal"](DIMS)
    got = model.inputs(torch.zeros(1, len(FAR), 8, dtype=dtype), model.prepare(at(FAR)))
    assert got.dtype == dtype
    for row, place in zip(got[0].double().tolist(), FAR, strict=True):
        for i in range(4):
            angle = place / 10000 ** (2 * i / 8)
            assert row[2 * i] == pytest.approx(math.sin(angle), abs=atol)
            assert row[2 * i + 1] == pytest.approx(math.cos(angle), abs=atol)


@pytest.mark.parametrize("name", ["rotary", "rotary-half"])
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-8), (torch.float32, 1e-6)])
def test_rotations_depend_only_on_the_offset_at_any_distance(name: str, dtype: torch.dtype, atol: float) -> None:
    model = MODELS[name](DIMS)
    q, k = torch.randn(2, 1, 2, 2, 4, dtype=dtype).unbind(0)

    def score(start: int) -> torch.Tensor:
        (turn,) = model.terms(model.prepare(at([start, start + 3])), Site(0)).maps
        a, b = turn(q, k)
        assert a.dtype == dtype
        return (a[:, :, 0] * b[:, :, 1]).sum(-1)

    for start in FAR:
        torch.testing.assert_close(score(start), score(0), rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_buckets_do_not_depend_on_the_width_of_integers(dtype: torch.dtype, bidirectional: bool) -> None:
    offsets = torch.cat([torch.arange(-2000, 2001), torch.tensor([2**31 - 1, -(2**31) + 1])])
    got = bucket(offsets.to(dtype), 32, 128, bidirectional)
    assert got.dtype == torch.int64
    assert torch.equal(got, bucket(offsets, 32, 128, bidirectional))
    assert torch.equal(got, torch.tensor([by_definition(int(r), bidirectional) for r in offsets]))


def by_definition(r: int, bidirectional: bool) -> int:
    """The docstring of T5, in numpy's float32."""
    buckets = 16 if bidirectional else 32
    far, ahead = (abs(r), 16 * (r > 0)) if bidirectional else (max(-r, 0), 0)
    exact = buckets // 2
    if far < exact:
        return far + ahead
    growth = np.log(np.float32(far) / np.float32(exact)) / np.float32(math.log(128 / exact)) * (buckets - exact)
    return min(exact + int(growth), buckets - 1) + ahead


@pytest.mark.parametrize("gate", [-200.0, 0.0, 200.0])
@pytest.mark.parametrize("copied", [0.0, 1e-38, 1.0])
def test_the_logarithm_of_a_mixture_is_finite_and_so_is_its_gradient(gate: float, copied: float) -> None:
    given = [torch.tensor(x, requires_grad=True) for x in (gate, -80.0, copied)]
    out = mix(*given)
    out.backward()
    assert out.isfinite()
    assert all(x.grad is not None and x.grad.isfinite() for x in given)


# --- encodings that give more than one number ---

NUMBERS = ["sinusoidal", "learned", "rotary", "rotary-half", "spr-abs"]
PAIRS = ["alibi", "graformer", "graformer-survey", "shaw", "shaw-keys", "spr-rel", "t5"]


@together(
    ("name", "encoding"),
    [*((name, Laplacian(k=5)) for name in NUMBERS), *((name, LabelPath().fit([path("abcde")])) for name in PAIRS)],
)
def test_a_vector_where_a_number_is_needed_is_refused_by_name(name: str, encoding: Encoding) -> None:
    """5 eigenvectors of 5 units would broadcast against the batch, and no other check would notice."""
    with pytest.raises(PositionError, match=rf"'{name}' needs (one|integer) .*'{encoding.name}' (gives|returns)"):
        asked(MODELS[name](DIMS, encoding=encoding))


def test_the_pairs_of_spr_likewise() -> None:
    with pytest.raises(PositionError, match=r"'spr' needs one integer per pair .*; 'label-path' gives \(4,\) numbers"):
        asked(MODELS["spr"](DIMS, relative=LabelPath().fit([path("abcde")])))


def asked(model: PositionModel) -> None:
    prepared = model.prepare(encoded(model, [path("abcde")], torch.float32))
    model.inputs(torch.zeros(1, 5, 8), prepared)
    model.terms(prepared, Site(0))


def test_a_graph_that_is_no_tree_is_refused_as_such() -> None:
    """Not for the root or the order that it lacks as well."""
    model = build("spr", Dims(8, 2, 2))
    ring = Structure(("a", "b", "c"), np.array([[0, 1], [1, 2], [2, 0]]))
    with pytest.raises(EncodingError, match=r"'spr-relative': it needs a tree .*; for graphs choose"):
        encode([ring], model.encodings)

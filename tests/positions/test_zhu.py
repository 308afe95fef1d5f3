"""The five models of Zhu et al. 2019: the authors' numbers, and the same written out pair by pair."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from structpe.attention import attend
from structpe.encodings.distance import Distance
from structpe.encodings.label_path import LabelPath, PathToken
from structpe.errors import EncodingError, PositionError
from structpe.positions import MODELS, Dims, PositionModel, Positions, Site, build
from structpe.positions.batch import encode
from structpe.positions.paths import _distinct
from structpe.structure import Structure
from structpe.terms import Lookup, Terms
from tests.golden import Golden, golden, shared
from tests.positions.cases import TREES, encoded, made
from tests.together import together

NAMES = ["zhu-feature", "zhu-avg", "zhu-sum", "zhu-cnn", "zhu-self"]
LABELS = ("op1", "ARG1", "ARG2", "EOS")
# Our number of each label of the golden files: <unk> <blank> None -:op1 -:ARG1 +:op1 +:ARG1 -:ARG2 +:ARG2 -:EOS +:EOS
NUMBERS = torch.tensor([0, -1, 1, 4, 6, 5, 7, 8, 9, 10, 11])

CLOSE = 2e-8
"""Of golden numbers: below 1e-9 on the kind of processor that made them, up to 7e-9 on another (an Intel Xeon)."""

SQUARE = Structure(
    ("a", "b", "c", "d", "e"), [(0, 1), (2, 0), (1, 3), (2, 3)], ("x", "y", "x", "z"), order=range(5), root=0
)


# --- the authors' numbers ---


def by_hand(name: str, given: Golden) -> tuple[PositionModel, Positions]:
    """A model of the golden file's sizes with its weights, and the labels that it was given."""
    dims = Dims(given.cfg["d"], given.cfg["heads"], 1)
    slots = {"zhu-feature": 1, "zhu-cnn": 4}[name]
    feature = name == "zhu-feature"
    encoding = PathToken(tuple("abcdefgh")) if feature else LabelPath(LABELS, max_length=slots)
    model = MODELS[name](dims, encoding=encoding).double().eval()
    paths = torch.stack([given[f"in.structure{i + 1}"] for i in range(slots)], dim=-1).permute(2, 0, 1, 3)
    table, index = torch.unique(paths.reshape(-1, slots), dim=0, return_inverse=True)
    values = table[:, 0] if feature else NUMBERS[table]
    lookup = Lookup(values, torch.arange(len(values)).expand(len(paths), -1), index.view(paths.shape[:3]))
    with torch.no_grad():
        for mine, theirs in weights(name, given).items():
            model.get_parameter(mine).copy_(theirs)
    return model, Positions({encoding: lookup})


def weights(name: str, given: Golden) -> dict[str, Tensor]:
    theirs = given.weights("transformer.0.")
    labels = given["w.structure_embeddings.make_embedding.word.weight"]
    named = {"attention.norm.0": "structure_layer_norm", "attention.key.0": "self_attn.linear_structure_k"}
    named |= {"attention.value.0": "self_attn.linear_structure_v"}
    if name == "zhu-cnn":
        named["convolutions.filters.0"] = "cnn"
    mine = {f"{m}.{part}": theirs[f"{t}.{part}"] for m, t in named.items() for part in ("weight", "bias")}
    if name == "zhu-feature":
        return mine | {"paths.weight": labels}
    rows = torch.zeros(13, labels.shape[1], dtype=labels.dtype)
    rows[NUMBERS + 1] = labels
    return mine | {"labels.labels.table.weight": rows}


def attention(given: Golden) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of the golden file's layer: given, or made from its words."""
    if "in.q" in given.arrays:
        return given["in.q"], given["in.k"], given["in.v"]
    words = given["w.embeddings.make_embedding.word.weight"]
    x = words[given["in.src"]] * math.sqrt(words.shape[1])
    x = (x + sinusoid(len(x), words.shape[1]).double()[:, None]).transpose(0, 1)
    w = given.weights("transformer.0.")
    x = functional.layer_norm(x, x.shape[-1:], w["att_layer_norm.weight"], w["att_layer_norm.bias"], 1e-6)
    q, k, v = (
        functional.linear(x, w[f"self_attn.linear_{part}.weight"], w[f"self_attn.linear_{part}.bias"])
        .unflatten(-1, (given.cfg["heads"], -1))
        .transpose(1, 2)
        for part in ("query", "keys", "values")
    )
    return q, k, v


@cache
def sinusoid(places: int, width: int) -> Tensor:
    pe = torch.zeros(places, width)
    for i in range(0, width, 2):
        angle = torch.arange(places).float() * torch.exp(torch.tensor(float(i)) * -(math.log(10000.0) / width))
        pe[:, i], pe[:, i + 1 : i + 2] = angle.sin(), angle.cos()[:, None][:, : width - i - 1]
    return pe


@pytest.mark.parametrize("name", ["zhu-feature", "zhu-cnn"])
def test_the_authors_path_vectors(name: str) -> None:
    given = golden(name.replace("-", "_"))
    model, positions = by_hand(name, given)
    table = model.terms(model.prepare(positions), Site(0)).key[0].dense()[..., 0, :]
    w = given.weights("transformer.0.self_attn.linear_structure_k.")
    expected = functional.linear(given["out.structure"], w["weight"], w["bias"])
    torch.testing.assert_close(table, expected, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("read", [golden, shared])
@pytest.mark.parametrize("kernel", ["dense", "tables"])
@pytest.mark.parametrize("name", ["zhu-feature", "zhu-cnn"])
def test_the_authors_attention(name: str, kernel: str, read: Callable[[str], Golden]) -> None:
    given = read(name.replace("-", "_"))
    model, positions = by_hand(name, given)
    q, k, v = attention(given)
    terms = model.terms(model.prepare(positions), Site(0))
    w = given.weights("transformer.0.self_attn.final_linear.")
    out = functional.linear(attend(q, k, v, terms, kernel).transpose(1, 2).flatten(2), w["weight"], w["bias"])
    torch.testing.assert_close(out, given["out.attn"], rtol=0, atol=CLOSE)
    eye = torch.eye(64, dtype=torch.float64)[:4].expand(2, 1, 4, 64)
    weights = attend(q[:, :1], k[:, :1], eye, Terms(key=terms.key), kernel)[:, 0, :, :4]
    torch.testing.assert_close(weights, given["out.attn_head0"], rtol=0, atol=CLOSE)


# --- the same written out pair by pair ---


Weights = dict[str, NDArray[Any]]


def labels_between(paths: NDArray[Any], a: int, b: int, slots: int) -> list[int]:
    """Rows of the label table for the slots of the path from unit a to unit b; row 0 is "blank"."""
    return [x + 1 for x in (paths[a, b].tolist() + [-1] * slots)[:slots]]


def vector(
    model: PositionModel, w: Weights, paths: NDArray[Any], places: list[int], query: int, key: int
) -> NDArray[Any]:
    """The vector r of a pair in layer 1, before the LayerNorm: loops, and nothing of the model but its numbers."""
    width = model.dims.head
    if model.name == "zhu-feature":
        return w["paths.weight"][paths[key, query]]
    if model.name in ("zhu-avg", "zhu-sum"):
        total = np.zeros(width)
        for label in labels_between(paths, key, query, 5):
            total += w["paths.labels.table.weight"][label] * math.sqrt(width)
            total += sinusoid(places[query] + 1, width)[places[query]].double().numpy()
        return total / 5 if model.name == "zhu-avg" else total
    slots = labels_between(paths, query, key, 4)
    x = [w["labels.labels.table.weight"][label] * math.sqrt(width) for label in slots]
    x = [each + sinusoid(4, width)[place].double().numpy() for place, each in enumerate(x)]
    if model.name == "zhu-self":
        x = multi_head(x, {k.removeprefix("among.1."): v for k, v in w.items()}, math.gcd(model.dims.heads, width))
    filters, bias = w["convolutions.filters.1.weight"], w["convolutions.filters.1.bias"]
    r = [bias[o] + sum(filters[o, i, c] * x[c][i] for c in range(4) for i in range(width)) for o in range(width)]
    return np.maximum(np.array(r), 0)


def multi_head(x: list[NDArray[Any]], w: dict[str, NDArray[Any]], heads: int) -> list[NDArray[Any]]:
    width = len(x[0]) // heads
    q, k, v = ([w[f"{p}.weight"] @ each + w[f"{p}.bias"] for each in x] for p in ("query", "key", "value"))
    mixed = []
    for mine in q:
        parts = []
        for h in range(heads):
            of = slice(h * width, (h + 1) * width)
            e = np.exp([mine[of] @ other[of] / math.sqrt(width) for other in k])
            parts.append(sum(a * other[of] for a, other in zip(e / e.sum(), v, strict=True)))
        mixed.append(w["out.weight"] @ np.concatenate(parts) + w["out.bias"])
    return mixed


def normed(w: Weights, r: NDArray[Any], part: str) -> NDArray[Any]:
    n = (r - r.mean()) / np.sqrt(r.var() + 1e-6) * w["attention.norm.1.weight"] + w["attention.norm.1.bias"]
    return w[f"attention.{part}.1.weight"] @ n + w[f"attention.{part}.1.bias"]


@together("dims", [Dims(8, 2, 2), Dims(12, 2, 2), Dims(12, 4, 2)])
@together("name", NAMES)
def test_each_pair_is_what_loops_say(name: str, dims: Dims) -> None:
    model = made(name, dims)
    terms = model.terms(model.prepare(encoded(model, TREES)), Site(1))
    got = {
        part: of.dense()[..., 0, :].detach().numpy() for part, of in (("key", terms.key[0]), ("value", terms.value[0]))
    }
    w = {name: value.detach().numpy() for name, value in model.state_dict().items()}
    for b, structure in enumerate(TREES):
        encoding: Any = model.encodings[0]
        paths, places = encoding.one(structure).pairs(), in_order(structure)
        for q, k in itertools.product(range(structure.unit_count), repeat=2):
            r = vector(model, w, paths, places, q, k)
            for part, values in got.items():
                assert np.allclose(values[b, q, k], normed(w, r, part), rtol=0, atol=1e-9), (b, q, k, part)


def in_order(structure: Structure) -> list[int]:
    """The place of each unit: nodes in reading order, and units of a node as they are stored."""
    assert structure.order is not None
    owner = range(structure.size) if structure.owner is None else structure.owner.tolist()
    order = structure.order.tolist()
    read = sorted(range(structure.unit_count), key=lambda unit: (order[owner[unit]], unit))
    return [read.index(unit) for unit in range(structure.unit_count)]


# --- traps ---


def key_vectors(model: PositionModel, structure: Structure) -> Tensor:
    return model.terms(model.prepare(encoded(model, [structure])), Site(0)).key[0].dense()[0, :, :, 0]


@pytest.mark.parametrize("name", NAMES)
def test_which_end_a_path_is_read_from(name: str) -> None:
    """The query 0 sees the key 1 below it: by a step down, or, where the path is read from the key, by a step up."""
    fork = Structure(("a", "b", "c"), [(0, 1), (0, 2)], ("a", "b"), root=0)
    model = made(name, **({"sinusoid": False} if name in ("zhu-avg", "zhu-sum") else {}))
    vectors = key_vectors(model, fork)
    down, up = torch.tensor(model.encodings[0].one(fork).pairs()[[0, 1], [1, 0]]).long()
    reverse = name in ("zhu-feature", "zhu-avg", "zhu-sum")
    table = model.prepare(Positions({model.encodings[0]: _single(up if reverse else down)}))
    expected = model.terms(table, Site(0)).key[0].dense()[0, 0, 0, 0]
    torch.testing.assert_close(vectors[0, 1], expected, rtol=0, atol=1e-12)
    assert not torch.allclose(vectors[0, 1], vectors[1, 0])


def _single(value: Tensor) -> Lookup:
    return Lookup(value[None], torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 1, 1, dtype=torch.long))


@pytest.mark.parametrize("name", ["zhu-avg", "zhu-sum"])
def test_the_sinusoid_belongs_to_the_query(name: str) -> None:
    """All pairs (query, itself) have the same path: only the place of the query distinguishes them."""
    vectors = key_vectors(made(name), SQUARE).diagonal(dim1=0, dim2=1).T
    assert not torch.allclose(vectors[0], vectors[1])
    plain = key_vectors(made(name, sinusoid=False), SQUARE).diagonal(dim1=0, dim2=1).T
    torch.testing.assert_close(plain, plain[:1].expand_as(plain))
    nothing = key_vectors(made(name), Structure(("a", "b", "c"), np.zeros((0, 2), dtype=int), order=range(3)))
    torch.testing.assert_close(nothing[0, 1], nothing[0, 2])  # two keys of one query, the same "unreachable"
    assert not torch.allclose(nothing[0, 1], nothing[2, 1])


@pytest.mark.parametrize("name", ["zhu-avg", "zhu-sum"])
def test_a_place_is_that_in_reading_order(name: str) -> None:
    """As in ``sinusoidal``: without an order there is none."""
    unordered = replace(SQUARE, order=None)
    with pytest.raises(EncodingError, match="the structure has no reading order; give Structure"):
        key_vectors(made(name), unordered)
    assert key_vectors(made(name, sinusoid=False), unordered).isfinite().all()
    moved = key_vectors(made(name), replace(SQUARE, order=np.array([1, 0, 2, 3, 4])))
    assert not torch.allclose(moved[0, 0], key_vectors(made(name), SQUARE)[0, 0])


def test_the_sum_is_the_mean_but_for_the_epsilon() -> None:
    mean, total = made("zhu-avg"), made("zhu-sum")
    total.load_state_dict(mean.state_dict())
    torch.testing.assert_close(key_vectors(total, SQUARE), key_vectors(mean, SQUARE), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["zhu-cnn", "zhu-self"])
def test_the_label_blank_is_not_learned(name: str) -> None:
    model = made(name)
    terms = model.terms(model.prepare(encoded(model, TREES)), Site(0))
    terms.key[0].table.square().sum().backward()
    gradient = model.get_parameter("labels.labels.table.weight").grad
    assert gradient is not None
    assert not gradient[0].any()
    assert gradient[1:].any()


# --- once per distinct path ---


def counted(model: PositionModel, module: torch.nn.Module) -> list[int]:
    rows: list[int] = []
    module.register_forward_hook(lambda _, given, __: rows.append(len(given[0])))
    for layer in range(model.dims.layers):
        model.terms(model.prepare(encoded(model, [*TREES, *TREES])), Site(layer))
    return rows


@pytest.mark.parametrize("name", NAMES)
def test_the_network_runs_once_per_distinct_path(name: str) -> None:
    model = made(name)
    distinct = {tuple(np.ravel(v).tolist()) for s in TREES for v in _padded(model.encodings[0].one(s).values)}
    inner: Any = model
    if name in ("zhu-cnn", "zhu-self"):
        assert counted(model, inner.convolutions.filters[1]) == [len(distinct)]
    if name == "zhu-self":
        assert counted(model, inner.among[1].query) == [len(distinct)]
    if name == "zhu-feature":
        assert counted(model, inner.attention.key[1]) == [len(distinct)]
    if name in ("zhu-avg", "zhu-sum"):
        assert counted(model, inner.paths.labels) == [len(distinct)] * model.dims.layers
        plain: Any = made(name, sinusoid=False)
        assert counted(plain, plain.attention.key[1]) == [len(distinct)]
        places = {(q, v) for s in TREES for v, q in _paths_at(model, s)}
        # The pairs of padding, all with the first path of their structure, may add a row each.
        assert len(places) <= counted(model, inner.attention.key[1])[0] <= len(places) + 10


def _padded(values: NDArray[Any]) -> NDArray[Any]:
    return np.pad(values, [(0, 0), (0, 5 - values.shape[1])], constant_values=-1) if values.ndim == 2 else values


def _paths_at(model: PositionModel, structure: Structure) -> list[tuple[tuple[int, ...], int]]:
    pairs = model.encodings[0].one(structure).pairs()
    n = structure.unit_count
    return [(tuple(int(x) for x in pairs[k, q] if x >= 0), q) for q in range(n) for k in range(n)]


# --- options ---


@pytest.mark.parametrize("name", ["zhu-avg", "zhu-cnn", "zhu-self"])
def test_dropout_is_for_training_only(name: str) -> None:
    model = made(name, dropout=0.5)
    assert torch.equal(key_vectors(model, SQUARE), key_vectors(made(name), SQUARE))
    model.train()
    assert not torch.equal(key_vectors(model, SQUARE), key_vectors(model, SQUARE))


@pytest.mark.parametrize("name", ["zhu-avg", "zhu-sum", "zhu-cnn", "zhu-self"])
@pytest.mark.parametrize("encoding", [LabelPath(), LabelPath(max_length=4, paths=2)])
def test_paths_that_cannot_fill_slots_are_refused(name: str, encoding: LabelPath) -> None:
    with pytest.raises(PositionError, match=rf"'{name}' needs paths of a limited length, one per pair: LabelPath"):
        MODELS[name](Dims(8, 2, 1), encoding=encoding)


def test_another_encoding_is_refused_by_name() -> None:
    with pytest.raises(PositionError, match=r"LabelPath"):
        build({"name": "zhu-cnn", "encoding": Distance().name}, Dims(8, 2, 1))


def test_paths_longer_than_any_in_the_batch_leave_slots_blank() -> None:
    model = made("zhu-cnn")
    short = Structure(("a", "b"), [(0, 1)], ("a",))
    positions = encode([short], model.encodings)
    assert positions[model.encodings[0]].table.shape[1] == 1
    together = key_vectors(model, TREES[0])[0, 0]
    torch.testing.assert_close(key_vectors(model, short)[0, 0], together, rtol=0, atol=1e-12)


@pytest.mark.parametrize("count", [10, 10_000])
def test_marking_finds_what_sorting_finds(count: int) -> None:
    codes = torch.randint(10, (2, 5, 6), generator=torch.Generator().manual_seed(0))
    distinct, which = _distinct(codes, count)
    assert torch.equal(distinct, codes.unique())
    assert torch.equal(distinct[which], codes)

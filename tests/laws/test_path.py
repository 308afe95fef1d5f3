"""A sequence is the path graph: what models say of its distances and depths is what they say of its order."""

from __future__ import annotations

import inspect
from functools import cache

import pytest
import torch
from torch import Tensor

from structpe.encodings import Depth, Distance, Offset, Order, UndirectedDistance
from structpe.encodings.base import Encoding
from structpe.positions import MODELS, Dims, PositionModel, Positions, Site
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from structpe.terms import Lookup, Terms
from tests.datasets import corpus
from tests.representatives import fewer
from tests.together import together

DIMS = Dims(8, 2, 1)


LENGTHS = (1, 2, 3, 6, 13, 40)
"""A path without words of its own is its length, and a longer one has all offsets of the shorter ones."""

PER_PAIR = ("bias", "gate", "mask", "key", "query", "product", "value")


@cache
def line(length: int) -> Structure:
    return path([f"w{i}" for i in range(length)])


@cache
def encoded(structure: Structure, encodings: tuple[Encoding, ...]) -> Positions:
    return encode([structure], encodings)


def quantities(model: PositionModel, structure: Structure) -> list[Tensor]:
    """What the model adds to zero inputs, does to queries and keys of ones, and says per pair in attention.

    Of one with its own attention: the output for units that differ.
    """
    n = structure.unit_count
    prepared = model.prepare(encoded(structure, tuple(model.encodings)))
    found = [model.inputs(torch.zeros(1, n, 8), prepared)]
    if model.own_attention:
        units = torch.arange(n * 8).reshape(1, n, 8).float().cos()
        return [*found, model.attend(units, prepared, Site(0), Terms())[0]]
    terms = model.terms(prepared, Site(0))
    ones = torch.ones(1, 2, n, 4)
    found += [x for change in terms.maps for x in change(ones, ones)]
    found += [factor.left @ factor.right.transpose(-1, -2) for factor in terms.factors]
    for x in (x for name in PER_PAIR for x in getattr(terms, name)):
        found.append(x.dense() if isinstance(x, Lookup) else x)
    return found


@cache
def twin(name: str, encoding: Encoding) -> PositionModel:
    torch.manual_seed(3)
    model = MODELS[name](DIMS, encoding=encoding)
    for parameter in model.parameters():
        # One row of a table after the other, so that a table with rows of its own for graphs begins with the same.
        parameter.data = torch.arange(parameter.numel()).reshape(parameter.shape).float().sin()
    return model.eval()


def assert_twins(name: str, on_graph: Encoding, on_sequence: Encoding, sentences: list[Structure]) -> None:
    first, second = twin(name, on_graph), twin(name, on_sequence)
    for sentence in sentences:
        for a, b in zip(quantities(first, sentence), quantities(second, sentence), strict=True):
            assert torch.equal(a, b), f"{name} on {on_graph} differs from {name} on {on_sequence}"


@cache
def sentences_of_ewt(most: int = 200) -> list[Structure]:
    """One sentence of each length in the English Web Treebank (dev), as paths: the words of its numbered lines."""
    folder = corpus("ud/EWT")
    (file,) = folder.rglob("*dev.conllu")
    found: list[list[str]] = [[]]
    for line in file.read_text(encoding="utf-8").splitlines():
        number, *columns = line.split("\t")
        if number.isdigit():
            found[-1].append(columns[0])
        elif not line.strip():
            found.append([])
    by_length = {len(words): words for words in list(filter(None, found))[:most]}
    return [path(words) for words in by_length.values()]


def takes_offsets(name: str) -> bool:
    """Whether the first encoding of a model is one of offsets, or of distances with a sign, unless told otherwise."""
    encoding = inspect.signature(MODELS[name].__init__).parameters.get("encoding")
    return encoding is not None and isinstance(encoding.default, Offset | Distance)


PAIRS = sorted(name for name in MODELS if takes_offsets(name) and name != "dagra")  # it asks whether there is a path


def test_some_models_take_offsets() -> None:
    assert {"alibi", "graformer", "shaw", "t5", "transformer-xl", "deberta-v2"} <= set(PAIRS)


@together("name", PAIRS)
def test_relative_models_on_distance_are_those_on_offset(name: str) -> None:
    assert_twins(name, Distance(), Offset(), list(map(line, LENGTHS)))


@pytest.mark.parametrize("name", fewer(PAIRS))
def test_also_on_real_sentences(name: str) -> None:
    sentences = sentences_of_ewt(60)
    assert len(sentences) > 20
    assert_twins(name, Distance(), Offset(), sentences)


@pytest.mark.parametrize("name", ["sinusoidal", "learned", "rotary", "rotary-half", "spr-abs"])
def test_absolute_models_on_depth_are_those_on_order(name: str) -> None:
    assert_twins(name, Depth(), Order(), list(map(line, LENGTHS)))


@pytest.mark.parametrize("name", ["sinusoidal", "rotary"])
def test_depth_is_order_on_real_sentences(name: str) -> None:
    assert_twins(name, Depth(), Order(), sentences_of_ewt())


def test_without_direction_alibi_does_not_notice() -> None:
    assert_twins("alibi", UndirectedDistance(), Offset(), sentences_of_ewt(40))


def test_spr_is_the_order_too() -> None:
    """On a path the relative structural position is query minus key: Shaw's tables read backwards."""
    sentence = path([f"w{i}" for i in range(9)])
    spr, shaw = MODELS["spr-rel"](DIMS, max_distance=4), MODELS["shaw"](DIMS, max_distance=4, sharing="layer-wise")
    for mine, theirs in zip(spr.parameters(), shaw.parameters(), strict=True):
        theirs.data = mine.data.flip(1)
    for a, b in zip(quantities(spr, sentence), quantities(shaw, sentence), strict=True):
        assert torch.equal(a, b)

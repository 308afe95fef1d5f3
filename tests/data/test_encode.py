"""What is not a list of structures and a list of encodings is told so."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import structpe
from structpe.data.encode import encode
from structpe.encodings.feature import Feature
from structpe.encodings.order import Order
from structpe.errors import EncodingError
from structpe.structure import Structure, path

SENTENCE = structpe.path(["a", "b"])


@pytest.mark.parametrize(
    ("structures", "encodings", "text"),
    [
        ([], [Order()], "encode takes a list of structures, one at least: encode([structure], [encoding, ...])"),
        (SENTENCE, [Order()], "encode takes a list of structures, one at least"),
        (
            [SENTENCE],
            Order(),
            "encode takes a list of encodings, such as [Order(), Distance(limit=8)]; given is Order()",
        ),
        ([SENTENCE], iter([Order()]), "encode takes a list of encodings"),
        ([SENTENCE], ["depth"], "and 'depth' is not one; ENCODINGS[name](...) makes an encoding from its name"),
        ([SENTENCE], "depth", "given is 'depth'"),
    ],
)
def test_wrong_arguments_are_named(structures: Any, encodings: Any, text: str) -> None:
    with pytest.raises(EncodingError, match=re.escape(text)):
        structpe.encode(structures, encodings)


def featured(values: list[Any]) -> Structure:
    return replace(path(["x"] * len(values)), features={"feature": np.array(values)})


def test_features_of_different_types_keep_their_values() -> None:
    given = encode([featured([1, 2]), featured([0.5, 0.25])], [Feature()])
    assert given[Feature()].tolist() == [[1, 2], [0.5, 0.25]]


def test_features_of_different_shapes_are_no_batch() -> None:
    with pytest.raises(EncodingError, match=r"'feature' has values of shapes \(\) and \(2,\) for different structures"):
        encode([featured([1, 2]), featured([[1, 2], [3, 4]])], [Feature()])

"""What is not a list of structures and a list of encodings is told so."""

from __future__ import annotations

import re
from typing import Any

import pytest

import structpe
from structpe.encodings.order import Order
from structpe.errors import EncodingError

SENTENCE = structpe.path(["a", "b"])


@pytest.mark.parametrize(
    ("structures", "encodings", "text"),
    [
        ([], [Order()], "encode takes a list of structures, one at least: encode([structure], [encoding, ...])"),
        (SENTENCE, [Order()], "encode takes a list of structures, one at least"),
        ([SENTENCE], Order(), "encode takes a list of encodings, such as [Order(), Distance(limit=8)], and Order() is"),
        ([SENTENCE], ["depth"], "and depth is none; ENCODINGS[name](...) makes an encoding from its name"),
        ([SENTENCE], "depth", "and depth is none"),
    ],
)
def test_wrong_arguments_are_named(structures: Any, encodings: Any, text: str) -> None:
    with pytest.raises(EncodingError, match=re.escape(text)):
        structpe.encode(structures, encodings)

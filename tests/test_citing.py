"""References: every model has one, and it reads as BibTeX."""

from __future__ import annotations

import re

import pytest

from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, build
from structpe.positions.citing import cite, reference


def test_every_model_has_a_reference() -> None:
    for key in sorted({model.spec.cite for model in MODELS.values()}):
        entry = reference(key)
        assert entry.startswith(("@article{", "@inproceedings{", "@misc{", "@book{", "@phdthesis{")), key
        assert re.match(r"@\w+\{" + re.escape(key) + ",", entry), key
        for field in ("author", "title", "year"):
            assert re.search(rf"^\s*{field}\s*=\s*[{{\d]", entry, re.MULTILINE), (key, field)
        assert entry.count("{") == entry.count("}"), key


def test_each_reference_once_in_order_of_use() -> None:
    model = build(["t5", "sinusoidal", ["rotary"]], Dims(8, 2, 1))
    entries = cite([model, "rotary-half", MODELS["shaw"]])
    assert re.findall(r"^@\w+\{(\w+),", entries, re.MULTILINE) == ["raffel2020", "vaswani2017", "su2021", "shaw2018"]


def test_one_model_need_not_stand_in_a_list() -> None:
    for one in ("t5", MODELS["t5"], build("t5", Dims(8, 2, 1)), build(["t5"], Dims(8, 2, 1))):
        assert cite(one) == cite(["t5"])


def test_an_unknown_model() -> None:
    with pytest.raises(PositionError, match=r"there is no position model named 'shawn'\. Did you mean 'shaw'"):
        cite(["shawn"])


def test_a_missing_reference() -> None:
    with pytest.raises(PositionError, match=r"no reference 'nobody1999'; add its BibTeX entry as structpe/refer"):
        reference("nobody1999")

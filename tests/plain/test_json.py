"""JSON: what is deep, long or none ends in one error."""

from __future__ import annotations

from pathlib import Path

import pytest

from structpe.errors import StoreError
from structpe.plain import from_json, json, read_json


def nested(depth: int) -> str:
    return '[{"a":' * (depth // 2) + "1" + "}]" * (depth // 2)


def test_good_texts_are_read() -> None:
    assert from_json('{"a": [1, 2.5, null, true, "b"]}') == {"a": [1, 2.5, None, True, "b"]}
    assert from_json(nested(100)) is not None


@pytest.mark.parametrize("text", [nested(102), nested(100_000), "[" * 100_000], ids=["102", "100000", "open"])
def test_depth_has_a_bound(text: str) -> None:
    with pytest.raises(ValueError, match="lists and mappings are nested deeper than 100"):
        from_json(text)


@pytest.mark.parametrize("text", ["", "{", b"\xff\xfe", "9" * 5000, "[1,]"])
def test_what_is_none_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_json(text)


def test_size_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json, "LARGEST", 10)
    with pytest.raises(ValueError, match="12 bytes of JSON are given, 10 are allowed"):
        from_json('"0123456789"')


def test_a_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "index.json"
    file.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(
        StoreError, match=r"index.json: the file is damaged \(ValueError: lists .* deeper than 100\); begin"
    ):
        read_json(file, "begin anew")
    monkeypatch.setattr(json, "LARGEST", 10)
    with pytest.raises(StoreError, match="100000 bytes of JSON are given, 10 are allowed"):
        read_json(file, "begin anew")
    with pytest.raises(StoreError, match=r"none.json: there is no such file; begin anew"):
        read_json(tmp_path / "none.json", "begin anew")

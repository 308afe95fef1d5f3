"""The comparison of decoding, with tiny models: that both write what is asked for; nothing about time."""

from __future__ import annotations

import pytest

from tests.experiments.script import script

pytest.importorskip("transformers")


def test_every_pair_writes_as_many_units() -> None:
    decoding = script("speed/decoding.py")
    sizes = decoding.Sizes(width=16, heads=2, layers=1, feedforward=32, vocabulary=50, rows=2, units=3)
    rows = list(decoding.rows(sizes, [1, 2], rounds=1))
    assert [row[:2] for row in rows] == [[name, beams] for name in decoding.PAIRS for beams in ("1", "2")]
    assert all(float(row[-1]) > 0 for row in rows)


def test_a_model_that_stops_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    decoding = script("speed/decoding.py")
    sizes = decoding.Sizes(width=16, heads=2, layers=1, feedforward=32, vocabulary=50, rows=2, units=3)
    short = decoding.Writer("short", decoding.nn.Linear(1, 1), lambda beams: [[0], [0, 0, 0]])
    monkeypatch.setattr(decoding, "PAIRS", {"language model": (decoding.language_model, lambda sizes: short)})
    with pytest.raises(ValueError, match=r"short wrote \[1, 3\] units, not 3; nothing is timed"):
        list(decoding.rows(sizes, [1], rounds=1))

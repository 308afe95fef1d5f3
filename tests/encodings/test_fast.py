"""Kernels that numba compiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from structpe.encodings import compiled as compiled_module
from structpe.encodings.compiled import compiled, fast, numba_or_none, slow


@compiled
def _total(numbers: Any) -> Any:
    total = 0
    for number in numbers:
        total += number
    return total


def test_a_kernel_is_compiled_when_it_is_called() -> None:
    pytest.importorskip("numba")
    assert fast()
    assert _total(np.arange(5)) == 10


def test_the_other_way_can_be_asked_for() -> None:
    pytest.importorskip("numba")
    with slow():
        assert not fast()
        with slow():
            assert not fast()
        assert not fast()
    assert fast()


def test_without_numba_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_module, "find_spec", lambda _: None)
    numba_or_none.cache_clear()
    try:
        assert not fast()
    finally:
        numba_or_none.cache_clear()

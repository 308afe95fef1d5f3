"""Kernels that numba compiles."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from structpe.encodings import bfs, columns, label_path_search, tree_pairs, walks
from structpe.encodings import compiled as compiled_module
from structpe.encodings.compiled import WORTH, at_once, compiled, numba_or_none, slow
from tests.modules import ROOT


@compiled
def _total(numbers: Any) -> Any:
    total = 0
    for number in numbers:
        total += number
    return total


def test_a_kernel_is_compiled_when_it_is_called() -> None:
    pytest.importorskip("numba")
    assert _total.pays(1)
    assert _total(np.arange(5)) == 10
    assert _total.__name__ == "_total"


def test_the_other_way_can_be_asked_for() -> None:
    pytest.importorskip("numba")
    with slow():
        assert not _total.pays(1 << 60)
        with slow():
            assert not _total.pays(1)
        assert not _total.pays(1)
        with at_once():
            assert _total.pays(1)
        assert not _total.pays(1)
    assert _total.pays(1)


def test_without_numba_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_module, "find_spec", lambda _: None)
    numba_or_none.cache_clear()
    try:
        assert not _total.pays(1)
    finally:
        numba_or_none.cache_clear()


def test_a_kernel_pays_when_much_was_computed_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kernel counts for itself, over all calls."""
    pytest.importorskip("numba")
    monkeypatch.setattr(compiled_module, "_after", WORTH)
    one, other = compiled(np.sum), compiled(np.sum)
    some = WORTH // 4
    assert [one.pays(some) for _ in range(6)] == [False, False, False, False, True, True]
    assert not other.pays(some)
    assert other.pays(WORTH)


def test_kernels_create_no_arrays() -> None:
    """To compile what creates one takes as long as a loop of ten lines, and a quarter of a second the first time."""
    modules = (bfs, columns, label_path_search, tree_pairs, walks)
    kernels = {name: each for module in modules for name, each in vars(module).items() if isinstance(each, compiled)}
    assert len(kernels) > 25
    creating = {"empty", "empty_like", "zeros", "full", "copy", "array", "arange", "cumsum", "diff"}
    assert not [name for name, each in kernels.items() if creating & {*each.__wrapped__.__code__.co_names}]


FEW = """
import sys
from structpe.encodings import RandomWalk, SPRRelative, UndirectedDistance
from structpe.structure import Structure
ends = [[i // 2, i + 1] for i in range(29)]
trees = [Structure(("",) * 30, ends, order=range(30), root=0) for _ in range(100)]
for encoding in (UndirectedDistance(), RandomWalk(8), SPRRelative()):
    encoding.many(trees)
print([each for each in ("numba", "torch") if each in sys.modules])
"""


def test_to_encode_a_few_structures_nothing_is_compiled() -> None:
    done = subprocess.run([sys.executable, "-c", FEW], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"

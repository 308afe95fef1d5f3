"""The choice of a kernel is cached by call, and is that of asking all kernels again."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from structpe.attention import KERNELS, Call, Probe, disable, enable, probing
from structpe.attention.attend import cheapest, forget_choices, kernel, remembered
from structpe.terms import Terms

MODULE: Any = sys.modules["structpe.attention.attend"]  # the package has a function of this name
CALL = Call(frozenset(), "cpu", torch.float32, (1, 2, 3, 3, 4))


@pytest.fixture(autouse=True)
def none_cached() -> Iterator[None]:
    forget_choices()
    yield
    forget_choices()


@pytest.fixture
def asked() -> Iterator[list[Call]]:
    """The calls that a kernel for no call was asked about."""
    seen: list[Call] = []

    def never(call: Call) -> str:
        seen.append(call)
        return "is for no call"

    @kernel("never", supports="bias mask causal", cost=lambda call: 0.0, limits=never)
    def nothing(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float) -> Tensor:
        return q

    yield seen
    KERNELS.forget("never")


@pytest.mark.parametrize("twice", [1, 2])
def test_it_is_the_cheapest_of_every_call(twice: int) -> None:
    fields = [frozenset(), frozenset({"bias"}), frozenset({"bias", "causal"}), frozenset({"key"}), frozenset({"value"})]
    sizes = [(1, 2, 1, 9, 4), (8, 2, 5, 5, 4), (1, 8, 600, 600, 64)]
    for used, device, shape, dropout in product(fields, ("cpu", "cuda"), sizes, (0.0, 0.5)):
        call = Call(used, device, torch.float32, shape, dropout=dropout)
        assert [remembered(call).name for _ in range(twice)] == [cheapest(call).name] * twice


def test_kernels_are_asked_once_for_equal_calls(asked: list[Call]) -> None:
    for _ in range(3):
        remembered(replace(CALL))
    assert asked == [CALL]
    remembered(replace(CALL, dropout=0.1))
    assert len(asked) == 2


def test_a_traced_call_is_not_cached(asked: list[Call]) -> None:
    traced = replace(CALL, traced=True)
    remembered(traced)
    remembered(traced)
    assert asked == [traced, traced]


def test_deterministic_algorithms_are_another_choice(asked: list[Call]) -> None:
    remembered(CALL)
    torch.use_deterministic_algorithms(True)
    try:
        remembered(CALL)
    finally:
        torch.use_deterministic_algorithms(False)
    remembered(CALL)
    assert len(asked) == 2


def test_a_kernel_that_comes_or_goes_changes_it() -> None:
    before = remembered(CALL).name

    @kernel("free", supports="bias", cost=lambda call: 0.0)
    def nothing(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float) -> Tensor:
        return q

    try:
        assert remembered(CALL).name == "free"
    finally:
        KERNELS.forget("free")
    assert remembered(CALL).name == before


def test_flex_is_considered_when_it_is_enabled_and_not_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "probe", lambda *given: Probe(None))
    call = Call(frozenset({"bias"}), "cuda", torch.float32, (8, 8, 4096, 4096, 64), gradients=True)
    before = remembered(call).name
    enable("flex", "cuda", torch.float32, 64)
    try:
        assert remembered(call).name == cheapest(call).name == "flex" != before
    finally:
        disable("flex")
    assert remembered(call).name == before


def test_calls_of_many_sizes_fill_no_memory_and_threads_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "_MOST_CHOICES", 2)
    wrong: list[BaseException] = []

    def choose(first: int) -> None:
        try:
            for n in range(first, first + 300):
                remembered(replace(CALL, shape=(1, 2, 1 + n % 50, 3, 4)))
        except BaseException as error:  # of a thread, which pytest would not see
            wrong.append(error)

    threads = [threading.Thread(target=choose, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert len(MODULE._CHEAPEST) <= 2 + 4  # each thread may add one at once

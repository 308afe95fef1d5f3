"""Models in one row have one signature, and each model is met."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from structpe.positions import MODELS, Site
from structpe.terms import Lookup, Toeplitz
from tests import representatives
from tests.positions.cases import NAMES, TREES, encoded, labelled_path, made
from tests.representatives import ALIKE, KINDS, few, fewer, in_turn, take_turn


def signature(name: str) -> tuple[Any, ...]:
    model = made(name)
    terms = frozenset() if model.own_attention else frozenset(_terms(model))
    return model.sites, model.own_attention, terms, MODELS[name].spec.cells.learnable, model.causal


def _terms(model: Any) -> Iterator[tuple[str, ...]]:
    """The fields that a model fills in, with their forms: of trees, and of one path."""
    for structures in (TREES, [labelled_path(4)]):
        prepared = model.prepare(encoded(model, structures))
        for layer in range(model.dims.layers):
            terms = model.terms(prepared, Site(layer))
            for field in terms.used():
                value = getattr(terms, field)
                yield from ((field, _form(each)) for each in (value if isinstance(value, tuple) else (value,)))


def _form(x: Any) -> str:
    return "Toeplitz" if isinstance(x, Lookup) and isinstance(x.index, Toeplitz) else type(x).__name__


def test_models_in_a_row_have_one_signature() -> None:
    for row in ALIKE:
        first, *others = row.split()
        expected = signature(first)
        for name in others:
            assert signature(name) == expected, f"{name} does not act as {first}; give it a row of its own, or none"


@pytest.mark.slow
def test_models_of_one_kind_act_at_the_same_sites_and_read_the_same() -> None:
    def kind(name: str) -> tuple[Any, ...]:
        model = made(name)
        read = {type(each).__name__ for each in encoded(model, TREES).values()}
        return model.sites, model.own_attention, read

    for row in KINDS:
        assert len(kinds := [kind(name) for name in row.split()]) == kinds.count(kinds[0]), row


@pytest.mark.parametrize("rows", [ALIKE, KINDS], ids=["alike", "of one kind"])
def test_no_model_is_in_two_rows_and_each_is_one_of_the_registry(rows: tuple[str, ...]) -> None:
    named = [name for row in rows for name in row.split()]
    assert len(named) == len(set(named))
    assert set(named) <= set(NAMES)


@pytest.fixture
def _same_turn() -> Iterator[None]:
    before = representatives._turn
    yield
    take_turn(before)


def quick(names: list[str]) -> set[str]:
    return {each for each in few(names) if isinstance(each, str)}


@pytest.mark.usefixtures("_same_turn")
def test_in_turn_every_model_is_met() -> None:
    take_turn(0)
    always = {name for name in NAMES if all(take_turn(i) == i and name in quick(NAMES) for i in range(3))}
    met, turns = set(), -(-(len(NAMES) - len(always)) // 10) + 1
    for number in range(turns):
        take_turn(number)
        assert quick(NAMES) == quick(NAMES)
        met |= quick(NAMES)
    assert met == set(NAMES)
    assert len(quick(NAMES)) < len(NAMES) / 2


def test_fewer_are_of_each_kind_once() -> None:
    chosen = {each for each in fewer(NAMES) if isinstance(each, str)}
    assert all(len(chosen & {*row.split()}) == 1 for row in KINDS)
    assert quick(NAMES) - chosen == {name for row in KINDS for name in row.split()[1:]} & quick(NAMES)


@pytest.mark.usefixtures("_same_turn")
def test_each_signature_is_represented_among_fewer_models() -> None:
    """Where a law is about some models only, the first of a row may be missing."""
    row = ALIKE[0].split()
    assert len(quick(row[1:])) == min(len(row) - 1, 11)
    assert {"a", "b"} == quick(["a", "b"])
    assert in_turn([]) == []

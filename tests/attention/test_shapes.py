"""Terms that do not fit queries and keys are refused in the words of terms, whatever the kernel."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from structpe.attention import attend
from structpe.errors import PositionError, StructPEError
from structpe.terms import Factor, Lookup, Pairs, Projection, SparsePairs, Terms
from tests.together import together

B, H, N, D = 2, 2, 4, 8
Q = torch.randn(B, H, N, D)
SOME = Pairs(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 2]), torch.tensor([0, 1, 3]))
THREE = torch.tensor([0, 1, 2])


def lookup(*row: int, n: int = N, m: int = N, b: int = 1) -> Lookup:
    return Lookup(torch.randn(3, *row), THREE.expand(b, -1), torch.zeros(1, n, m, dtype=torch.int64))


def mixing(c: int, m: int) -> Projection:
    return Projection(torch.ones(1, 1, c, m), torch.ones(1, 1, c, m))


def forced(value: Any, **fields: Any) -> Any:
    """The value with fields that the types of the tests, which users do not have, would refuse."""
    for name, given in fields.items():
        object.__setattr__(value, name, given)
    return value


FLOATS = forced(Terms(), mask=(torch.ones(1, 1, 1, N),))
SHORT = Terms(pairs=(forced(replace(SOME), query=torch.tensor([0, 1])),))
UNLIKE = Terms(projection=forced(mixing(3, N), values=torch.ones(1, 1, 2, N)))
ONES = torch.ones(1, H, N, 2)
UNRANKED = Terms(factors=(forced(Factor(ONES, ONES), right=torch.ones(1, H, N, 1)),))
ELSEWHERE = Terms(bias=(SparsePairs(torch.ones(3, H), THREE, replace(SOME, batch=THREE)),), pairs=(SOME,))
WRONG = [
    (Terms(bias=(torch.zeros(B, H, 5, N),)), r"bias has shape \(2, 2, 5, 4\); .* \(2 or 1, 2 or 1, 4 or 1, 4 or 1\)"),
    (Terms(bias=(lookup(3),)), r"the table of a bias has shape \(3,\); for these .* must be \(2 or 1\)"),
    (Terms(gate=(lookup(H, m=5),)), r"the index of a gate has shape \(1, 4, 5\); .* \(2 or 1, 4, 4\)"),
    (Terms(gate=(lookup(H, m=1),)), r"the index of a gate has shape \(1, 4, 1\); .* \(2 or 1, 4, 4\)"),
    (Terms(bias=(lookup(H, b=3),)), r"the rows of a bias has shape \(3, 3\); .* must be \(2 or 1, any\)"),
    (Terms(key=(lookup(H, 7),)), r"the table of a key has shape \(2, 7\); .* must be \(2 or 1, 8\)"),
    (Terms(key=(lookup(H, 1),)), r"the table of a key has shape \(2, 1\); .* must be \(2 or 1, 8\)"),
    (Terms(value=(lookup(5, D),)), r"the table of a value has shape \(5, 8\); .* must be \(2 or 1, 8\)"),
    (Terms(value=(lookup(H, 1),), maps=(lambda q, k: (q, k),)), r"the table of a value has shape \(2, 1\)"),
    (Terms(mask=(torch.ones(1, 1, 5, N, dtype=torch.bool),)), r"mask has shape \(1, 1, 5, 4\)"),
    (FLOATS, "a mask must be bool, not torch.float32; convert it, for example with mask > 0"),
    (Terms(factors=(Factor(torch.ones(1, H, 5, 2), torch.ones(1, H, N, 2)),)), "the left of a factor has shape"),
    (Terms(factors=(Factor(torch.ones(1, H, N, 2), torch.ones(3, H, N, 2)),)), "the right of a factor has shape"),
    (UNRANKED, r"the right of a factor has shape \(1, 2, 4, 1\); .* must be \(2 or 1, 2 or 1, 4 or 1, 2\)"),
    (Terms(pairs=(replace(SOME, key=SOME.key + 1),)), "pairs name a key from 1 to 4; it must be from 0 to 3"),
    (Terms(pairs=(replace(SOME, query=SOME.query - 1),)), "pairs name a query from -1 to 1; it must be from 0 to 3"),
    (ELSEWHERE, "the pairs of a bias name a batch from 0 to 2; it must be from 0 to 1"),
    (SHORT, r"pairs has shape \(2,\); .* must be \(3\)"),
    (Terms(bias=(SparsePairs(torch.ones(3, 5), THREE, SOME),), pairs=(SOME,)), r"the table of a bias has shape \(5,\)"),
    (Terms(bias=(SparsePairs(torch.ones(3, H), THREE[:2], SOME),), pairs=(SOME,)), r"the index of a bias .* \(2,\)"),
    (Terms(projection=mixing(3, 5)), r"projection has shape \(1, 1, 3, 5\); .* must be \(2 or 1, 2 or 1, 3, 4\)"),
    (Terms(projection=mixing(3, 1)), r"projection has shape \(1, 1, 3, 1\); .* must be \(2 or 1, 2 or 1, 3, 4\)"),
    (UNLIKE, r"projection has shape \(1, 1, 2, 4\)"),
]


@together(("terms", "message"), WRONG)
def test_terms_of_another_shape(terms: Terms, message: str) -> None:
    for kernel in ("auto", "dense"):
        with pytest.raises(StructPEError, match=message):
            attend(Q, Q, Q, terms, kernel)


@pytest.mark.parametrize(("repeated", "count", "named"), [([0, 1, 0], 1, 0), ([1, 0, 0], 1, 0), ([1, 1, 1], 2, 1)])
def test_a_pair_is_listed_once(repeated: list[int], count: int, named: int) -> None:
    expected = rf"{count} pairs are listed more than once, .*\(0, {named}, {named}\); list each"
    with pytest.raises(PositionError, match=expected):
        Pairs(torch.tensor([0, 0, 0]), torch.tensor(repeated), torch.tensor(repeated))


def test_pairs_alike_but_for_one_place_are_no_repetition() -> None:
    for parts in itertools.permutations(([0, 0, 1, 1], [5, 2, 5, 2], [3, 3, 3, 3])):
        assert len(Pairs(*map(torch.tensor, parts)).key) == 4


def test_pairs_of_unlike_lengths_are_made_and_refused_with_the_queries() -> None:
    SHORT.pairs[0].__post_init__()


def test_pairs_that_cannot_be_looked_at_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """On another device, and while a graph is compiled, which looking would break."""
    twice = torch.zeros(2, dtype=torch.int64)
    assert Pairs(*[twice.to("meta")] * 3).key.device.type == "meta"
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert len(Pairs(twice, twice, twice).key) == 2


def test_maps_may_change_the_width() -> None:
    def double(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return torch.cat([q, q], dim=-1), torch.cat([k, k], dim=-1)

    assert attend(Q, Q, Q, Terms(maps=(double,), key=(lookup(H, 2 * D),))).shape == Q.shape

"""The checks of shapes are on while tests run, for everything that has a shape in its annotations."""

from __future__ import annotations

import pytest
import torch
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from structpe.attention import Layout, attend
from structpe.structure import path
from tests.shapes import check_anew, checked


def test_a_wrong_shape_is_an_error() -> None:
    q, k = torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 5)
    with pytest.raises(TypeCheckError):
        attend(q, q, k[0])


def test_so_is_a_wrong_shape_of_a_field() -> None:
    with pytest.raises(TypeCheckError):
        Layout(((1, 2),), (None,), torch.zeros(2, 2, dtype=torch.int64))


def test_what_has_no_shape_is_not_wrapped() -> None:
    assert path.__code__.co_filename.endswith("structure.py")


def test_the_first_call_is_checked_and_some_that_follow() -> None:
    @checked
    def rows(x: Float[Tensor, "a b"]) -> int:
        return len(x)

    def refused(call: int) -> bool:
        try:
            rows(torch.zeros(call))
        except TypeCheckError:
            return True
        return False

    assert [call for call in range(1, 41) if refused(call)] == [1, 16, 32]
    check_anew()
    assert refused(1)

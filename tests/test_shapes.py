"""The checks of shapes are on while tests run, for everything that has a shape in its annotations."""

from __future__ import annotations

import pytest
import torch
from jaxtyping import TypeCheckError

from structpe.attention import Layout, attend
from structpe.structure import path


def test_a_wrong_shape_is_an_error() -> None:
    q, k = torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 5)
    with pytest.raises(TypeCheckError):
        attend(q, q, k[0])


def test_so_is_a_wrong_shape_of_a_field() -> None:
    with pytest.raises(TypeCheckError):
        Layout(((1, 2),), (None,), torch.zeros(2, 2, dtype=torch.int64))


def test_what_has_no_shape_is_not_wrapped() -> None:
    assert path.__code__.co_filename.endswith("structure.py")

"""What is taken apart comes together again, type by type."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from structpe.errors import StoreError
from structpe.tasks.training.checkpoint import flatten, restore
from tests.examples import examples

TENSORS = [
    torch.arange(6.0).view(2, 3).T,
    torch.tensor(3, dtype=torch.int64),
    torch.zeros(0, 2, dtype=torch.bfloat16),
    torch.tensor([True, False]),
]
ARRAYS = [np.arange(4, dtype=np.uint32), np.array(2.5), np.eye(3)[:, ::2]]
KEYS = st.one_of(
    st.text(max_size=3), st.sampled_from(["$tensor", "$dict", "$", "a.b", "a"]), st.integers(), st.booleans()
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.binary(max_size=4),
    st.sampled_from(TENSORS), st.sampled_from(ARRAYS),
)  # fmt: skip
STATES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=8,
)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, (torch.Tensor, np.ndarray)):
        return (
            type(one) is type(other)
            and one.dtype == other.dtype
            and one.shape == other.shape
            and bool((one == other).all())
        )
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return (
            list(one) == list(other)
            and [type(key) for key in one] == [type(key) for key in other]
            and all(same(one[key], other[key]) for key in one)
        )
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    return type(one) is type(other) and one == other


@examples(50)
@given(STATES)
def test_a_state_survives_json(state: Any) -> None:
    tensors, plain = flatten(state)
    assert same(restore(json.loads(json.dumps(plain, allow_nan=False)), tensors), state)


def test_two_names_of_one_tensor_become_two_tensors() -> None:
    """safetensors refuses tensors that share memory."""
    weight = torch.arange(4.0)
    tensors, _ = flatten({"embedding": weight, "out": weight, "part": weight[1:3]})
    assert len({tensor.data_ptr() for tensor in tensors.values()}) == 3


def test_numbers_of_numpy_are_numbers() -> None:
    assert flatten({"score": np.float64(0.5), "step": np.int64(3)})[1] == {"score": 0.5, "step": 3}


def test_what_needs_pickle_is_refused_by_its_place() -> None:
    with pytest.raises(
        StoreError, match=r"cannot hold 'optimizer\.0\.hook', which is of type function; it holds tensors"
    ):
        flatten({"optimizer": [{"hook": same}]})

"""Random walks along edges and against them, against sums over walks step by step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.encodings.directed_walks import DirectedWalks
from structpe.errors import EncodingError
from structpe.structure import Structure
from tests.examples import examples
from tests.strategies import structures


def after(leads: np.ndarray, source: int, steps: int) -> np.ndarray:
    """(n,) where a walk is after some steps, node by node; where no edge leads on, it stays."""
    here = np.zeros(len(leads))
    here[source] = 1
    for _ in range(steps):
        there = np.zeros(len(leads))
        for u, share in enumerate(here):
            onward = np.flatnonzero(leads[u]).tolist() or [u]
            for w in onward:
                there[w] += share / len(onward)
        here = there
    return here


@examples(30)
@given(structure=structures(units=False), steps=st.integers(1, 4), restart=st.sampled_from([0.3, 0.7]))
def test_they_are_where_walks_are_step_by_step(structure: Structure, steps: int, restart: float) -> None:
    """With parallel edges, self-loops and parts; in the long run a walk has taken s steps since it began anew."""
    n, ways = structure.size, structure.adjacency() > 0
    pairs = DirectedWalks(steps, restart).one(structure).pairs()
    for t in range(n):
        for first, leads in ((0, ways), (steps + 1, ways.T)):
            walked = [after(leads, t, step) for step in range(120)]
            np.testing.assert_allclose(pairs[t, :, first : first + steps].T, walked[1 : steps + 1], atol=1e-9)
            ranks = sum(restart * (1 - restart) ** step * each for step, each in enumerate(walked))
            np.testing.assert_allclose(pairs[t, :, first + steps], ranks, atol=1e-9)


def test_without_directions_both_halves_are_the_same() -> None:
    pairs = DirectedWalks().one(Structure(("x",) * 4, [[0, 1], [1, 2], [1, 1]], directed=False)).pairs()
    assert np.array_equal(pairs[..., :4], pairs[..., 4:])
    assert not pairs[0, 3].any()


@pytest.mark.parametrize("restart", [0.0, 1.0, float("nan")])
def test_a_restart_is_a_probability(restart: float) -> None:
    with pytest.raises(EncodingError, match=f"restart is {restart}; give a probability between 1e-06 and 1"):
        DirectedWalks(restart=restart)

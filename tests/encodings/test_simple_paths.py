"""Counts of simple paths, against a list of all paths by networkx."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.encodings import RRWP, simple_paths
from structpe.encodings.simple_paths import SimplePaths
from structpe.errors import EncodingError
from structpe.structure import Structure
from tests.examples import examples
from tests.strategies import structures


@examples(40)
@given(several=st.lists(structures(), min_size=1, max_size=4), steps=st.integers(1, 5), at_once=st.booleans())
def test_they_are_those_that_networkx_lists(several: list[Structure], steps: int, at_once: bool) -> None:
    """With parallel edges, self-loops, units and parts; of one structure or many, of one block or one for each node."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simple_paths, "_PATHS", 1 << 18 if at_once else 1)
        column = SimplePaths(steps, log=False).many(several)
    for structure, encoded in zip(several, column, strict=True):
        graph = networkx.DiGraph() if structure.directed else networkx.Graph()
        graph.add_nodes_from(range(structure.size))
        graph.add_edges_from(structure.edges.tolist())
        expected = np.zeros((structure.size, structure.size, steps))
        for t in graph:
            expected[t, t, 0] = 1
            for s in set(graph) - {t} if steps > 1 else ():
                for way in networkx.all_simple_paths(graph, t, s, cutoff=steps - 1):
                    expected[t, s, len(way) - 1] += 1
        owner = structure.unit_owner
        assert np.array_equal(encoded.pairs(), expected[owner[:, None], owner])


def test_they_tell_a_cycle_from_a_path() -> None:
    """Where random walks of as many steps say the same of an edge."""
    ring = Structure(("x",) * 8, [(i, (i + 1) % 8) for i in range(8)], directed=False)
    line = Structure(("x",) * 8, [(i, i + 1) for i in range(7)], directed=False)
    assert RRWP(4).one(ring).pairs()[3, 4].tolist() == RRWP(4).one(line).pairs()[3, 4].tolist()
    counts = [SimplePaths(8).one(each).pairs()[3, 4] for each in (ring, line)]
    assert counts[0].tolist() == [0, np.log(2), 0, 0, 0, 0, 0, np.log(2)]
    assert counts[1].tolist() == [0, np.log(2), 0, 0, 0, 0, 0, 0]


def test_too_many_paths_are_refused_before_they_are_listed() -> None:
    whole = Structure(("x",) * 40, [(i, j) for i in range(40) for j in range(i)], directed=False, name="whole")
    with pytest.raises(
        EncodingError, match=r"whole: .*up to 4.8e\+12 paths of 7 steps would be listed, and 1e\+08 are"
    ):
        SimplePaths().many([whole])
    assert SimplePaths(3, log=False).one(whole).pairs()[0, 1].tolist() == [0, 1, 38]

from __future__ import annotations

import networkx
import pytest

from structpe.errors import ReadError
from structpe.readers.graph6 import graph6


def test_the_example_of_the_description_is_read():
    # McKay's own: five nodes, edges 0-2, 0-4, 1-3, 3-4.
    assert graph6("DQc").edges.tolist() == [[0, 2], [0, 4], [1, 3], [3, 4]]
    assert graph6(">>graph6<<DQc").size == 5
    assert not graph6("DQc").directed


@pytest.mark.parametrize("size", [1, 2, 7, 62, 63, 200])
def test_graphs_are_those_that_networkx_writes(size):
    graph = networkx.gnp_random_graph(size, 0.3, seed=size)
    text = networkx.to_graph6_bytes(graph, header=False).decode().strip()
    made = graph6(text)
    assert made.size == size
    assert made.edges.tolist() == sorted(map(list, graph.edges))


@pytest.mark.parametrize("text", ["", "?", "D", "DQ", "DQcc", "D c", "Dé?", "~?", "~~????", "DQ\x7f"])
def test_what_is_no_graph6_is_refused(text):
    with pytest.raises(ReadError) as caught:
        graph6(text)
    assert str(caught.value) == f"{text!r} is not the text of a graph in graph6; bring back the original"

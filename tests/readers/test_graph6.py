from __future__ import annotations

import networkx
import pytest

from structpe.errors import ReadError
from structpe.readers import read
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
    assert str(caught.value) == f"{text!r} is not the text of a graph in graph6; restore the original"


@pytest.mark.parametrize("text", ["DQd", "Bx", "&AP", "&@A", ":Fa@x", ":Fa@x]", ":Fa@x^?", ":Fa@x^~~"])
def test_bits_that_fill_up_are_0_and_of_sparse6_1(text):
    """One bit too many is set or not; or a list of edges was cut off."""
    with pytest.raises(ReadError, match="is not the text of a graph in graph6; restore the original"):
        graph6(text)


@pytest.mark.parametrize("size", [2, 3, 4, 8, 9, 62, 63, 200])
def test_sparse6_is_what_networkx_writes(size):
    graph = networkx.MultiGraph(networkx.gnp_random_graph(size, 0.1, seed=size))
    graph.add_edges_from([(0, 1), (size - 1, size - 1), (0, 1), (size - 2, size - 2)])
    for text in (networkx.to_sparse6_bytes(graph, header=header).decode() for header in (False, True)):
        made = graph6(text)
        assert (made.size, made.directed) == (size, False)
        assert sorted(map(sorted, made.edges.tolist())) == sorted(sorted(edge[:2]) for edge in graph.edges)


def test_the_examples_of_the_descriptions_are_read():
    # McKay's own: seven nodes, edges 0-1, 0-2, 1-2, 5-6; five nodes, edges 0-2, 0-4, 3-1, 3-4.
    assert graph6(":Fa@x^").edges.tolist() == [[0, 1], [0, 2], [1, 2], [5, 6]]
    directed = graph6("&DI?AO?")
    assert directed.directed
    assert directed.edges.tolist() == [[0, 2], [0, 4], [3, 1], [3, 4]]


def test_a_file_has_a_graph_per_line(write):
    items = read(write("a.g6", ">>graph6<<\n>>graph6<<DQc\n\n:Fa@x^\r\n&DI?AO?\n@"))
    assert [(item.structure.size, item.structure.directed) for item in items] == [
        (5, False),
        (7, False),
        (5, True),
        (1, False),
    ]
    assert [item.id for item in items] == ["1", "2", "3", "4"]
    assert items[1].structure.name == "a.g6:2"
    assert items[1].metadata == {"text": ":Fa@x^"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"D Q", "line 2: 'D Q' is not the text of a graph in graph6; restore the original"),
        (b"&DI?AO", "line 2: '&DI?AO' is not the text"),
        (b":Fa@x^" + b"~" * 20, "is not the text of a graph in graph6"),
        (b":~~~~~~~~", "line 2: ':~~~~~~~~' claims 68719476735 nodes, but 16777216 are allowed"),
        (b"~~~~~~~~", "claims 68719476735 nodes"),
        (b":", "line 2: ':' is not the text"),
        (b";Fa@x^", "line 2: ';Fa@x^' is not the text"),
        (b"\xff", "line 2: byte 0xff at column 1 is not UTF-8"),
    ],
)
def test_a_bad_line_is_named(write, line, message):
    file = write("a.g6", b"DQc\n" + line + b"\nDQc\n")
    with pytest.raises(ReadError) as caught:
        read(file)
    assert message in str(caught.value)
    reading = read(file, on_error="skip")
    assert len(reading.skipped) == 1
    assert len(reading) == (2 if b"\xff" not in line else 1)

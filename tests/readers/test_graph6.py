from __future__ import annotations

import networkx
import pytest

from structpe.errors import ReadError, StructureError
from structpe.formats import as_text, read
from structpe.formats.graph6 import graph6
from structpe.structure import Structure
from tests.representatives import only
from tests.together import together


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


@together("text", ["", "?@", ":?@", "D", "DQ", "DQcc", "D c", "Dé?", "~?", "~~????", "DQ\x7f"])
def test_what_is_no_graph6_is_refused(text):
    with pytest.raises(ReadError) as caught:
        graph6(text)
    assert str(caught.value) == f"{text!r} is not the text of a graph in graph6; restore the original"


@together("text", ["DQd", "Bx", "&AP", "&@A", ":Fa@x", ":Fa@x]", ":Fa@x^?", ":Fa@x^~~"])
def test_bits_that_fill_up_are_0_and_of_sparse6_1(text):
    """One bit too many is set or not; or a list of edges was cut off."""
    with pytest.raises(ReadError, match="is not the text of a graph in graph6; restore the original"):
        graph6(text)


@together("size", [2, 3, 4, 8, 9, 62, 63, 200])
def test_sparse6_is_what_networkx_writes(size):
    graph = networkx.MultiGraph(networkx.gnp_random_graph(size, 0.1, seed=size))
    graph.add_edges_from([(0, 1), (size - 1, size - 1), (0, 1), (size - 2, size - 2)])
    for text in (networkx.to_sparse6_bytes(graph, header=header).decode() for header in (False, True)):
        made = graph6(text)
        assert (made.size, made.directed) == (size, False)
        assert sorted(map(sorted, made.edges.tolist())) == sorted(sorted(edge[:2]) for edge in graph.edges)


def boundaries(size):
    """Edges at the ends of the numbers of nodes, where sparse6 fills up differently: at n - 2, at n - 1, at neither."""
    last = [(size - 2, size - 2), (size - 2, 0), (size - 1, 0), (size - 1, size - 1), (0, 0), (0, 1)]
    return [last[:k] + [(0, 0)] * more for k in range(len(last)) for more in range(3)] + [[edge] for edge in last]


@together("size", [2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 61, 62, 63, 64, 65, 127, 128])
def test_sparse6_at_powers_of_two_is_that_of_networkx(size):
    """networkx fills up with a 0 at n = 2^k in more cases than McKay's description; both are read."""
    for pairs in boundaries(size):
        graph = networkx.MultiGraph(pairs)
        graph.add_nodes_from(range(size))
        expected = sorted(sorted(edge) for edge in pairs)
        theirs = networkx.to_sparse6_bytes(graph, header=False).decode().strip()
        made = graph6(theirs)
        assert (made.size, sorted(map(sorted, made.edges.tolist()))) == (size, expected)
        ours = as_text(Structure(("",) * size, pairs, directed=False), "graph6", kind="sparse6").strip()
        back = networkx.from_sparse6_bytes(ours.encode())
        assert (len(back), sorted(sorted(edge[:2]) for edge in back.edges)) == (size, expected)
        assert sorted(map(sorted, graph6(ours).edges.tolist())) == expected


def test_a_zero_that_fills_up_is_of_powers_of_two_only():
    """Of n = 16, four bits are too few for an edge: 0111 and 1111 fill up. Of other numbers 0111 does not."""
    for size, width in ((16, 5), (15, 5), (4, 3), (3, 3)):
        head = chr(63 + size)
        for fill in ("0", "1"):
            bits = "0" * width + fill + "1" * (-width % 6 - 1)
            text = ":" + head + "".join(chr(63 + int(bits[k : k + 6], 2)) for k in range(0, len(bits), 6))
            if fill == "1" or size in (16, 4):
                assert graph6(text).size == size
            else:
                with pytest.raises(ReadError, match="is not the text of a graph"):
                    graph6(text)


def test_four_bits_of_sixteen_nodes_are_filled_up_by_ones():
    """By hand, from McKay's description: steps 1 14, 0 0, 0 1, 0 2, and four ones, too few for an edge."""
    pairs = [(14, 0), (14, 1), (14, 2)]
    assert as_text(Structure(("",) * 16, pairs, directed=False), "graph6", kind="sparse6") == ":O{?Gn\n"
    assert graph6(":O{?Gn").edges.tolist() == graph6(":O{?Gf").edges.tolist() == [[0, 14], [1, 14], [2, 14]]


@pytest.mark.parametrize("size", only((62, 63, 4095, 4096, 258047, 258048), 62, 63, 4096, 258048))
def test_sizes_of_one_three_and_six_characters(size):
    """As in networkx, which writes and reads the same."""
    graph = networkx.empty_graph(size)
    graph.add_edge(1, size - 1)
    theirs = networkx.to_sparse6_bytes(graph, header=False).decode().strip()
    ours = as_text(Structure(("",) * size, [(1, size - 1)], directed=False), "graph6", kind="sparse6").strip()
    assert ours == theirs
    assert ours.startswith({1: ":", 3: ":~", 6: ":~~"}[1 if size < 63 else 3 if size < 258048 else 6])
    made = graph6(theirs)
    assert (made.size, made.edges.tolist()) == (size, [[1, size - 1]])


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


@together(
    "line, message",
    [
        (b"D Q", "line 2: 'D Q' is not the text of a graph in graph6; restore the original"),
        (b"&DI?AO", "line 2: '&DI?AO' is not the text"),
        (b":Fa@x^" + b"~" * 20, "is not the text of a graph in graph6"),
        (b":~~~~~~~~", "line 2: ':~~~~~~~~' claims 68719476735 nodes, but 16777216 are allowed"),
        (b"~~~~~~~~", "claims 68719476735 nodes"),
        (b":", "line 2: ':' is not the text"),
        (
            b";Fa@x^",
            "line 2: ';Fa@x^' is in incremental sparse6, where a line is a difference to the one before; convert",
        ),
        (b"?", "line 2: the graph has no node; a structure needs at least one"),
        (b":?", "line 2: the graph has no node"),
        (b"&?", "line 2: the graph has no node"),
        (b"\xff", "line 2: byte 0xff at column 1 is not UTF-8"),
    ],
)
def test_a_bad_line_is_named(write, line, message):
    file = write("a.g6", b"DQc\n" + line + b"\nDQc\n")
    with pytest.raises((ReadError, StructureError)) as caught:
        read(file)
    assert message in str(caught.value)
    reading = read(file, on_error="skip")
    assert len(reading.skipped) == 1
    assert len(reading) == (2 if b"\xff" not in line else 1)

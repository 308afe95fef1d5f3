"""What every encoding says of odd graphs: the tables here are those of "Odd graphs" in docs/encodings.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from structpe.encodings import (
    ENCODINGS,
    UNREACHABLE,
    Depth,
    Distance,
    Eigenvalues,
    Encoding,
    Laplacian,
    RandomWalk,
    UndirectedDistance,
)
from structpe.encodings.compiled import slow
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from tests.encodings.asking import asked
from tests.encodings.test_laws import meaning
from tests.representatives import only
from tests.together import together

NAMES = sorted(ENCODINGS)


def graph(nodes: int, edges: list[list[int]], directed: bool = True, told: bool = True) -> Structure:
    """With all that an encoding may ask for, or bare."""
    given: dict[str, Any] = {"root": 0, "order": np.arange(nodes)} if told else {}
    features = {"coordinates": np.arange(2.0 * nodes).reshape(nodes, 2)} if told else {}
    ends, labels = np.array(edges, dtype=np.int64).reshape(-1, 2), ("r",) * len(edges)
    return Structure(tuple(f"n{i}" for i in range(nodes)), ends, labels, directed, features=features, **given)


TREE = [[0, 1], [0, 2], [2, 3]]
KITE = [[0, 1], [1, 2], [2, 0], [2, 3]]
ONE, EMPTY, RING = graph(1, []), graph(3, []), graph(3, [[0, 1], [1, 2], [2, 0]])
LOOPS, PARALLEL = [*TREE, [1, 1], [0, 0]], [*TREE, [0, 1]]

OF_TREES = {"ancestor-distance", "branch-path", "child-path", "lowest-common-ancestor", "parent-child",
            "sibling-distance", "sibling-index", "spr-relative"}  # fmt: skip
REFUSED: dict[str, tuple[Structure, set[str]]] = {  # and which encodings refuse them; all others do not
    "one node": (ONE, set()),
    "no edges": (EMPTY, {*OF_TREES, "depth"}),
    "two parts": (graph(5, [[0, 1], [1, 2], [3, 4]]), {*OF_TREES, "depth"}),
    "self-loops": (graph(4, LOOPS), OF_TREES),
    "parallel edges": (graph(4, PARALLEL), OF_TREES),
    "a directed cycle": (RING, OF_TREES),
}
COUNT_LOOPS = {"degree", "directed-walks", "eigenpairs", "eigenvalues", "expander", "intimacy", "laplacian",
               "magnetic-laplacian", "motifs", "neighbours", "personalized-pagerank", "random-walk", "rrwp",
               "tabular", "token-laplacian", "walk-kernel", "weisfeiler-lehman"}  # fmt: skip
COUNT_PARALLEL = {"random-walk", "rrwp"}
# The value of a pair in two parts, if every part is as it is alone.
BETWEEN = {"adjacency": 0, "binned": UNREACHABLE, "distance": UNREACHABLE, "expander": 0, "label-path": 2,
           "neighbours": -1, "path-token": 2, "personalized-pagerank": UNREACHABLE, "resistance": UNREACHABLE,
           "rrwp": 0, "triple-offset": UNREACHABLE, "undirected-distance": UNREACHABLE}  # fmt: skip
APART = {*BETWEEN, "degree", "eigenvalues", "feature", "heat-kernel", "laplacian", "motifs", "random-walk",
         "unit-count", "weisfeiler-lehman"}  # fmt: skip


def fitted(name: str) -> Encoding:
    return asked(name).fit([graph(2, [[0, 1]])])


def outcome(encode: Callable[[], Any]) -> str | None:
    """The error; None if there is none."""
    try:
        encode()
    except EncodingError as error:
        return str(error)
    return None


@together("name", NAMES)
def test_odd_graphs_are_encoded_alone_and_among_others_or_refused(name: str) -> None:
    encoding = fitted(name)
    for what, (odd, refusing) in REFUSED.items():
        for asked_for in (lambda odd=odd: encoding.one(odd), lambda odd=odd: encoding.many([graph(4, TREE), odd])):
            message = outcome(asked_for)
            assert (message is not None) == (name in refusing), (what, message)
            needs = "connect|no path leads from the root" if name == "depth" else "needs a tree"
            assert message is None or (repr(name) in message and any(each in message for each in needs.split("|")))
        if name not in refusing:
            alone, among = encoding.one(odd), encoding.many([graph(4, TREE), odd, ONE])[1]
            np.testing.assert_array_equal(meaning(among, odd.size), meaning(alone, odd.size), err_msg=what)
            assert np.isfinite(alone.values).all(), what


@together("name", sorted(set(NAMES) - OF_TREES))
@together("directed", [True, False])
def test_who_counts_self_loops_and_parallel_edges(name: str, directed: bool) -> None:
    encoding, plain = fitted(name), graph(4, KITE, directed)
    alone = meaning(encoding.one(plain), 4)
    for more, counting in (([[1, 1], [3, 3]], COUNT_LOOPS), ([[2, 0], [2, 0]], COUNT_PARALLEL)):
        same = np.array_equal(meaning(encoding.one(graph(4, KITE + more, directed)), 4), alone)
        assert same == (name not in counting), more


@together("name", sorted(APART))
@together("directed", [True, False])
def test_parts_are_as_they_are_alone(name: str, directed: bool) -> None:
    encoding, line = fitted(name), [[0, 1], [1, 2]]
    both = graph(7, KITE + [[a + 4, b + 4] for a, b in line], directed, told=False)
    whole = meaning(encoding.one(both), 7)
    for part, here in (
        (graph(4, KITE, directed, told=False), slice(4)),
        (graph(3, line, directed, told=False), slice(4, 7)),
    ):
        mine, alone = whole[here] if encoding.arity == 1 else whole[here, here], meaning(encoding.one(part), part.size)
        np.testing.assert_allclose(mine[(..., slice(alone.shape[-1]))] if encoding.ragged else mine, alone, atol=1e-6)
    if encoding.arity == 2:
        between = whole[:4, 4:, 0] if encoding.ragged else whole[:4, 4:]
        assert (between == BETWEEN[name]).all()


@together("name", [name for name in NAMES if ENCODINGS[name].arity == 1])
def test_small_graphs_have_as_many_numbers_as_large_ones(name: str) -> None:
    """With k, or steps, beyond the size of the graph."""
    encoding, large = fitted(name), graph(12, [[i, i + 1] for i in range(11)])
    assert encoding.one(ONE).values.shape[1:] == encoding.one(large).values.shape[1:]
    assert encoding.one(ONE).values.dtype == encoding.one(large).values.dtype


def test_eigenvectors_that_the_solver_chose_are_reported() -> None:
    """A ring of six has the eigenvalues 0, 1/2, 1/2, 3/2, 3/2, 2; what is left out after k counts too."""
    ring = graph(6, [[i, (i + 1) % 6] for i in range(6)], directed=False)
    assert Laplacian(8).repeated(ring)[0].tolist() == [True] * 4 + [False] * 4
    assert Laplacian(1).repeated(ring).tolist() == [[True]] * 6
    assert Laplacian(2, skip=0).repeated(ring)[0].tolist() == [False, True]
    assert not Laplacian(3).repeated(graph(4, KITE)).any()
    lines = graph(4, [[0, 1], [2, 3]])  # two parts, each with 0 and 2
    assert not Laplacian(1).repeated(lines).any()
    assert Laplacian(3, components=False).repeated(lines)[0].tolist() == [True] * 3
    split = replace(lines, units=("a", "b", "c", "d", "e"), owner=np.array([0, 0, 1, 2, 3]))
    assert Laplacian(2).repeated(split).shape == (5, 2)


STEPS = ("distance", "undirected-distance", "label-path", "spr-relative")


@pytest.mark.parametrize("name", only(STEPS, *STEPS[:3]))
def test_ways_of_300_steps_are_as_long_as_they_are(name: str) -> None:
    """Eight bits would end at 254. The path is numbered at random, so that it is no plain sequence."""
    n, number = 300, np.random.default_rng(0).permutation(300)
    line, options = np.column_stack([number[:-1], number[1:]]), {"root": int(number[0]), "order": np.argsort(number)}
    long = Structure(("x",) * n, line, ("r",) * (n - 1), **options)
    encoding, steps = ENCODINGS[name]().fit([long]), np.arange(n)[None] - np.arange(n)[:, None]
    expected = {"distance": steps, "spr-relative": -steps}.get(name, np.abs(steps))
    with slow():
        found = {"without numba": encoding.one(long).pairs()}
    found["with numba"] = encoding.one(long).pairs()
    for how, pairs in found.items():
        lengths = (pairs >= 4).sum(axis=-1) if name == "label-path" else pairs
        np.testing.assert_array_equal(lengths[number][:, number], expected, err_msg=how)


def test_ways_of_70000_steps_are_as_long_as_they_are() -> None:
    """Sixteen bits would end at 65,535."""
    long = path(("",) * (n := 70_000))
    for encoding, least in ((Distance(), 1 - n), (UndirectedDistance(), 0)):
        encoded = encoding.one(long)
        assert (encoded.values.min(), encoded.values.max()) == (least, n - 1)
        assert encoded.index is not None
        assert encoded.values[encoded.index[[0, n - 1, -1]]].tolist() == [1 - n if least else n - 1, 0, n - 1]
    assert Depth().one(replace(long, root=0)).values[[0, -1]].tolist() == [0, n - 1]


MANY = 50_000
LARGE = {
    "random-walk": RandomWalk(steps=1),
    "window": ENCODINGS["window"](2),
    "branch-path": ENCODINGS["branch-path"](binary=True, depth=4),
}
ALL_PAIRS = {name for name in NAMES if ENCODINGS[name].arity == 2 and not ENCODINGS[name].sparse} - {"offset"}
LONG = ("random-walk", "eigenpairs", "expander", "laplacian", "eigenvalues")
"""They take the longest; eigenvectors and eigenvalues of so many nodes are found below."""
MATRICES = {
    *("electrostatic", "heat-kernel", "intimacy", "magnetic-laplacian", "motifs", "multi-q-magnetic"),
    *("tabular", "token-laplacian"),
}


@pytest.fixture(scope="module")
def large() -> Structure:
    parents = np.arange(1, MANY) // 2
    edges = np.column_stack([parents, np.arange(1, MANY)])
    told: dict[str, Any] = {"order": np.arange(MANY), "features": {"coordinates": np.zeros((MANY, 2))}}
    return Structure(("",) * MANY, edges, ("r",) * (MANY - 1), root=0, **told)


@pytest.mark.parametrize("name", only(NAMES, *(name for name in NAMES if name not in LONG)))
def test_50000_nodes_are_encoded_or_refused_with_the_memory_and_what_to_use(name: str, large: Structure) -> None:
    encoding = LARGE.get(name, fitted(name))
    message = outcome(lambda: encoding.many([large]))
    assert (message is not None) == (name in ALL_PAIRS | MATRICES), message
    if message is not None:
        for part in (
            repr(name),
            "for each pair of nodes, for 50000 nodes",
            "GiB of doubles",
            "Encode parts",
            "'degree'",
        ):
            assert part in message


def test_eigenvectors_of_50000_nodes_have_their_eigenvalues(large: Structure) -> None:
    vectors, values = Laplacian(2).one(large).values.astype(np.float64), Eigenvalues(2).one(large).values[0]
    ends = large.edges
    degree = np.maximum(np.bincount(ends.ravel(), minlength=MANY), 1)
    scaled = vectors / np.sqrt(degree)[:, None]
    image = vectors.copy()
    for a, b in (ends.T, ends[:, ::-1].T):
        np.add.at(image, a, -scaled[b] / np.sqrt(degree[a])[:, None])
    assert np.linalg.norm(image - vectors * values, axis=0).max() < 1e-4

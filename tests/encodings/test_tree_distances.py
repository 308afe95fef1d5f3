"""Distances of the Code Transformer: to ancestors, siblings and by walks, and their bins."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given

from structpe.encodings import (
    ENCODINGS,
    UNREACHABLE,
    WITHIN,
    AncestorDistance,
    Binned,
    Coordinates,
    Encoded,
    Encoding,
    GridOffset,
    Offset,
    PersonalizedPageRank,
    SiblingDistance,
    UndirectedDistance,
)
from structpe.encodings.base import as_encoding
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from tests.examples import examples
from tests.strategies import structures, trees
from tests.together import together

# r(a(c, d(g, h), e), b)
TREE = Structure(
    tuple("racdgheb"), [[0, 1], [1, 2], [1, 3], [3, 4], [3, 5], [1, 6], [0, 7]], order=list(range(8)), root=0
)
NONE = UNREACHABLE


def up(structure: Structure, node: int) -> Iterator[int]:
    """A node and its ancestors."""
    parent = {int(target): int(source) for source, target in structure.edges}
    while True:
        yield node
        if node not in parent:
            return
        node = parent[node]


def test_one_tree_by_hand() -> None:
    assert AncestorDistance().one(TREE).pairs()[1].tolist() == [-1, 0, 1, 1, 2, 2, 1, NONE]
    assert AncestorDistance().one(TREE).pairs()[5].tolist() == [-3, -2, NONE, -1, NONE, 0, NONE, NONE]
    assert SiblingDistance().one(TREE).pairs()[2].tolist() == [NONE, NONE, 0, 1, NONE, NONE, 2, NONE]
    assert SiblingDistance().one(TREE).pairs()[7].tolist() == [NONE, -1, *[NONE] * 5, 0]


@examples(40)
@given(tree=trees(units=False))
def test_ancestors_are_on_the_way_up(tree: Structure) -> None:
    pairs = AncestorDistance().one(tree).pairs()
    for i in range(tree.size):
        for j in range(tree.size):
            mine, other = list(up(tree, i)), list(up(tree, j))
            expected = other.index(i) if i in other else -mine.index(j) if j in mine else NONE
            assert pairs[i, j] == expected


@examples(40)
@given(tree=trees(units=False))
def test_siblings_are_counted_in_reading_order(tree: Structure) -> None:
    pairs = SiblingDistance().one(tree).pairs()
    rank = tree.order.tolist()
    for i in range(tree.size):
        for j in range(tree.size):
            mine, other = list(up(tree, i))[1:2], list(up(tree, j))[1:2]
            if mine != other:
                assert pairs[i, j] == NONE
                continue
            children = sorted((int(t) for s, t in tree.edges if [int(s)] == mine), key=lambda v: rank[v]) or [i]
            assert pairs[i, j] == children.index(j) - children.index(i)


@pytest.mark.parametrize("encoding", [AncestorDistance, SiblingDistance])
def test_units_limits_and_paths(encoding: type) -> None:
    split = TREE.with_units(list("racccdgheb"), [0, 1, 2, 2, 2, 3, 4, 5, 6, 7])
    pairs, nodes = encoding().one(split).pairs(), encoding().one(TREE).pairs()
    assert pairs[2, 2:5].tolist() == [0, WITHIN + 1, WITHIN + 2]
    assert pairs[3, 5] == pairs[2, 5] == nodes[2, 3]
    limited = encoding(max_distance=1).one(TREE).pairs()
    np.testing.assert_array_equal(limited, np.where(np.abs(nodes) > 1, NONE, nodes))
    with pytest.raises(EncodingError, match="max_distance is 0; give 1 or more"):
        encoding(max_distance=0)
    with pytest.raises(EncodingError, match="it needs a tree"):
        encoding().one(Structure(("a", "b", "c"), [[0, 2], [1, 2]]))


def test_on_a_path_ancestors_are_those_before() -> None:
    sequence = path("abcdef")
    np.testing.assert_array_equal(AncestorDistance().one(sequence).pairs(), Offset().one(sequence).pairs())
    assert (SiblingDistance().one(sequence).pairs() == np.where(np.eye(6), 0, NONE)).all()


# --- page rank ---


@examples(25)
@given(structure=structures())
def test_page_rank_is_where_a_restarting_walk_is(structure: Structure) -> None:
    """Its series: a walk of k steps, then a restart, c (1 - c)^k."""
    n = structure.size
    both = {(int(s), int(t)) for s, t in structure.edges} | {(int(t), int(s)) for s, t in structure.edges}
    near = [{t for s, t in both if s == i} for i in range(n)]
    share = np.zeros((n, n))
    for start in range(n):
        here = [float(i == start) for i in range(n)]
        for step in range(200):
            share[:, start] += 0.15 * 0.85**step * np.array(here)
            here = [sum(here[j] / len(near[j]) for j in near[i]) for i in range(n)]
    owner = structure.unit_owner
    expected = -np.log(share + 1e-9)[owner[:, None], owner[None]]
    np.testing.assert_allclose(PersonalizedPageRank(threshold=None).one(structure).pairs(), expected, atol=1e-6)


def test_rare_pairs_are_unreachable() -> None:
    long = path(["x"] * 30)
    whole = PersonalizedPageRank(threshold=None).one(long).pairs()
    cut = PersonalizedPageRank().one(long).pairs()
    np.testing.assert_array_equal(cut, np.where(whole > 5, UNREACHABLE, whole))
    assert (cut == UNREACHABLE).any()
    assert (whole[whole != cut] > 5).all()


@pytest.mark.parametrize("wrong", [{"restart": 0.0}, {"restart": 1.0}, {"threshold": -0.1}])
def test_other_probabilities_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(EncodingError, match=r"'personalized-pagerank': .*; give"):
        PersonalizedPageRank(**wrong)


# --- bins ---


class Given(Encoding):
    """Values that a test has in hand; not in the registry."""

    arity = 2

    def __init__(self, values: np.ndarray) -> None:
        object.__setattr__(self, "matrix", values)

    def one(self, structure: Structure) -> Encoded:
        values, index = np.unique(self.matrix, return_inverse=True)
        return Encoded(values, index.reshape(self.matrix.shape))


def binned(matrix: np.ndarray, **options: float | None) -> np.ndarray:
    return Binned(Given(matrix), **options).one(path(["x"] * len(matrix))).pairs()


def by_area(values: list[float], bins: int, growth: float | None) -> list[float]:
    """Edges of bins of equal or growing areas, one at a time along the distances."""
    steps = [math.sqrt(b - a) for a, b in itertools.pairwise(values)]
    total, edges = sum(steps), [values[0]]
    for k in range(1, bins):
        part = k / bins if growth is None else (growth**k - 1) / (growth**bins - 1)
        target, at = part * total, 0
        while target > steps[at]:
            target, at = target - steps[at], at + 1
        edges.append(values[at] + target / steps[at] * (values[at + 1] - values[at]))
    return [*edges, values[-1]]


@together("growth", [None, 1.3, 2.0])
@together("bins, fixed", [(12, 5), (10, 4), (14, 9), (12, 11), (8, 0)])
def test_bins_of_signed_offsets(bins: int, fixed: int, growth: float | None) -> None:
    after = np.arange(40)[None] - np.arange(40)[:, None]
    low, high = -(fixed // 2), math.ceil(fixed / 2)
    below, above = sorted({-v for v in after.flat if v < low}), sorted({v for v in after.flat if v >= high})
    if bins - 1 <= fixed:
        edges = by_area(sorted(set(after.flat)), bins - 2, None)
    else:
        part = (after < low).sum() / ((after < low).sum() + (after >= high).sum())
        under, over = math.floor(part * (bins - 1 - fixed)), math.ceil((1 - part) * (bins - 1 - fixed))
        outer = {0: lambda v: [], 1: lambda v: [v[-1]]}
        lower = outer.get(under, lambda v: by_area(v, under, growth)[1:])(below)
        upper = outer.get(over, lambda v: by_area(v, over, growth)[1:])(above)
        edges = [-e for e in lower] + list(range(low, high)) + upper
    assert len(edges) == bins - 1
    got = binned(after, bins=bins, fixed=fixed, growth=growth)
    for value, mine in zip(after.flat, got.flat, strict=True):
        if value < 0:
            near = [e for e in edges if e <= value + 1e-6 and e < 0]
        else:
            near = [e for e in edges if e >= value - 1e-6 and e >= 0]
        expected = (max(near) if value < 0 else min(near)) if near else UNREACHABLE
        assert mine == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("fixed", [3, 6])
def test_bins_of_distances_are_exact_first(fixed: int) -> None:
    far = np.abs(np.arange(30)[None] - np.arange(30)[:, None])
    edges = [*range(fixed), *by_area(sorted(v for v in set(far.flat) if v > fixed), 9 - fixed - 1, None)]
    got = binned(far, bins=10, fixed=fixed)
    for value, mine in zip(far.flat, got.flat, strict=True):
        assert mine == pytest.approx(min(e for e in edges if e >= value - 1e-6), abs=1e-4)
    assert set(got[got < fixed].tolist()) == set(range(fixed))


@pytest.mark.parametrize("missing", [False, True])
def test_bins_of_real_numbers_have_equal_areas(missing: bool) -> None:
    values = np.random.default_rng(0).gamma(2.0, size=(9, 9))
    if missing:
        values[values > 4] = UNREACHABLE
    plain = sorted(v for v in values.flat if v < UNREACHABLE)
    edges = by_area(plain, 6 - missing, None)
    got = binned(values, bins=7)
    for value, mine in zip(values.flat, got.flat, strict=True):
        expected = UNREACHABLE if value == UNREACHABLE else min(e for e in edges if e >= value - 1e-6)
        assert mine == pytest.approx(expected, abs=1e-5)
    assert len(np.unique(got)) <= 7


def test_few_integers_stay_as_they_are() -> None:
    for encoding in (AncestorDistance(), SiblingDistance(), UndirectedDistance()):
        np.testing.assert_array_equal(Binned(encoding).one(TREE).pairs(), encoding.one(TREE).pairs())


def test_a_thousand_is_as_far_as_nowhere() -> None:
    far = np.array([[0, 999], [-1000, 5000]])
    assert binned(far).tolist() == [[0, 999], [UNREACHABLE, UNREACHABLE]]


def test_too_few_lower_distances_have_no_bin() -> None:
    values = np.arange(400).reshape(20, 20)
    values[0, 0] = -7
    got = binned(values, bins=12, fixed=3)
    assert got[0, 0] == UNREACHABLE
    assert (got[values >= 0] < UNREACHABLE).all()


def test_units_of_one_node_count_their_places() -> None:
    split = path("ab").with_units(list("aaab"), [0, 0, 0, 1])
    for encoding in (UndirectedDistance(), AncestorDistance()):
        assert Binned(encoding).one(split).pairs()[1].tolist() == [-1, 0, 1, 1]


def test_plain_data_describes_what_is_binned() -> None:
    encoding = Binned(AncestorDistance(max_distance=3), bins=8)
    data = json.loads(json.dumps({"name": encoding.name, **encoding.options()}))
    assert as_encoding(data) == encoding == ENCODINGS["binned"](**encoding.options())
    assert hash(as_encoding(data)) == hash(encoding)
    assert Binned() == Binned(UndirectedDistance())


@pytest.mark.parametrize("wrong", [{"bins": 2}, {"fixed": -1}, {"growth": 1.0}])
def test_bins_that_are_none_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(
        EncodingError, match="'binned' needs 3 bins or more, 0 fixed ones or more, and a growth above 1"
    ):
        Binned(**wrong)


def test_only_one_number_per_pair_can_be_binned() -> None:
    with pytest.raises(EncodingError, match="needs one number for each pair; 'coordinates' has none"):
        Binned(Coordinates())
    with pytest.raises(EncodingError, match="it needs one number for each pair; 'grid-offset' has several"):
        Binned(GridOffset()).one(path("ab"))

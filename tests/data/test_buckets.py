"""Buckets are cut where it costs least: of all ways to cut, none is cheaper."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from structpe.attention import Layout
from structpe.data.batch import cut, padded

SIZES = st.lists(st.integers(1, 12), min_size=1, max_size=9).map(sorted)


def cost(sizes: list[int], ends: list[int], overhead: int) -> int:
    total, start = 0, 0
    for end in ends:
        total += (end - start) * max(sizes[start:end]) ** 2 + overhead
        start = end
    return total


@given(sizes=SIZES, overhead=st.integers(0, 300))
def test_no_other_way_to_cut_is_cheaper(sizes: list[int], overhead: int) -> None:
    ends = cut(sizes, overhead)
    assert ends == sorted(set(ends))
    assert ends[0] > 0
    assert ends[-1] == len(sizes)
    ways = ([*inner, len(sizes)] for count in range(len(sizes)) for inner in combinations(range(1, len(sizes)), count))
    assert cost(sizes, ends, overhead) == min(cost(sizes, way, overhead) for way in ways)


@given(sizes=SIZES)
def test_graphs_of_one_size_are_never_parted(sizes: list[int]) -> None:
    assert all(end == len(sizes) or sizes[end - 1] < sizes[end] for end in cut(sizes, 10))


def test_without_cost_each_size_has_its_bucket_and_at_a_high_cost_there_is_one() -> None:
    sizes = [1, 2, 2, 5]
    assert cut(sizes, 0) == [1, 3, 4]
    assert padded(sizes, [1, 3, 4]) == 1 + 4 + 4 + 25
    assert cut(sizes, 10**6) == [4]
    assert padded(sizes, [4]) == 100
    assert cut([3]) == [1]


@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=9), masked=st.booleans(), data=st.data())
def test_a_layout_has_the_places_of_a_loop(sizes: list[int], masked: bool, data: st.DataObject) -> None:
    inner = data.draw(st.sets(st.integers(1, len(sizes))))
    ends = sorted(inner | {len(sizes)})
    layout, places, unit = Layout.of(sizes, ends, masked), [], 0
    for (first, end), shape, present in zip(pairwise([0, *ends]), layout.shapes, layout.present, strict=True):
        bucket = sizes[first:end]
        assert shape == (len(bucket), max(bucket))
        assert (present is None) == (not masked and min(bucket) == max(bucket))
        for row, size in enumerate(bucket):
            there = [column < size for column in range(max(bucket))]
            assert present is None or present[row].tolist() == there
            places += [unit + column if is_there else -1 for column, is_there in enumerate(there)]
            unit += size
    if layout.places is None or layout.where is None:
        assert not masked
        assert -1 not in places
        return
    assert layout.places.tolist() == [max(place, 0) for place in places]
    assert layout.where.tolist() == [places.index(number) for number in range(unit)]

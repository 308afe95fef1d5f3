"""Symmetric pairs are stored as halves, and read whole; the form of an index follows from its length."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.data.store import load, write
from structpe.data.store_index import mapped
from structpe.encodings import Distance, Encoding, Resistance, UndirectedDistance
from structpe.encodings.columns import halves, is_half, whole
from structpe.encodings.compiled import slow
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from structpe.terms import Toeplitz
from tests.examples import examples
from tests.strategies import structures

RINGS = [Structure(("x",) * n, [[i, (i + 1) % n] for i in range(n)], directed=False) for n in (1, 2, 3, 4, 9, 40)]


@examples(30)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6), data=st.data())
@pytest.mark.parametrize("how", ["fast", "slow"])
def test_what_is_halved_comes_back(how: str, sizes: list[int], data: st.DataObject) -> None:
    random, squares, expected = np.random.default_rng(data.draw(st.integers(0, 99))), [], []
    for n in sizes:
        square = random.integers(0, 3, (n, n), dtype=np.uint16)
        kind = data.draw(st.sampled_from(["any", "symmetric", "sequence"]))
        square = np.tril(square) + np.tril(square, -1).T if kind == "symmetric" else square
        squares.append(square[0, :1].repeat(2 * n - 1) if kind == "sequence" else square)
        symmetric = squares[-1].ndim == 2 and n > 2 and (square == square.T).all()
        expected.append(n * (n + 1) // 2 if symmetric else squares[-1].size)
    starts, u = np.cumsum([0, *(each.size for each in squares)]), np.array(sizes)
    flat = np.concatenate([each.reshape(-1) for each in squares])
    with slow() if how == "slow" else nullcontext():
        index, ends = halves(flat, starts, u)
        parts = zip(np.split(index, ends[1:-1]), sizes, strict=True)
        found = [whole(part, n) if is_half(len(part), n) else part for part, n in parts]
    assert np.diff(ends).tolist() == expected
    assert index.dtype == np.uint16
    for mine, square in zip(found, squares, strict=True):
        np.testing.assert_array_equal(mine.reshape(square.shape), square)


@examples(10)
@given(drawn=st.lists(structures(), min_size=1, max_size=5))
def test_a_store_gives_back_what_was_encoded(tmp_path_factory: pytest.TempPathFactory, drawn: list[Structure]) -> None:
    asked: list[Encoding] = [Distance(), UndirectedDistance(), Resistance()]
    store = write(tmp_path_factory.mktemp("s") / "s", drawn, asked)
    for encoding in asked:
        for one, stored in zip(encoding.many(drawn), store.of(encoding), strict=True):
            np.testing.assert_array_equal(stored.pairs(), one.pairs())


def test_undirected_distances_take_half_of_the_bytes(tmp_path: Path) -> None:
    """Not those of plain sequences, nor of subwords: the first is not as far from the second as this from that."""
    split = path("abc").with_units(["a", "b", "b", "c"], owner=[0, 1, 1, 2])
    some = [*RINGS, path("abcd"), split]
    write(tmp_path / "s", some, [UndirectedDistance()])
    lengths = np.diff(mapped(tmp_path / "s" / "00000.safetensors")["0.starts"])
    assert lengths.tolist() == [1, 4, 6, 10, 45, 820, 7, 16]
    stored = load(tmp_path / "s").of(UndirectedDistance())
    for structure, each in zip(some, stored, strict=True):
        np.testing.assert_array_equal(each.pairs(), UndirectedDistance().one(structure).pairs())


@pytest.mark.parametrize("how", ["fast", "slow"])
def test_a_batch_of_some_structures_of_a_store(how: str, tmp_path: Path) -> None:
    """Halves, squares and sequences are written into padded squares, the same as those of the structures themselves."""
    random = np.random.default_rng(0)
    graphs = [Structure(("x",) * n, random.integers(0, n, (n, 2)), directed=bool(n % 2)) for n in (1, 2, 3, 6, 9, 70)]
    graphs += [*RINGS, path(["a", "b"]), path(["a"]), path(list("abcde"))]
    encodings: list[Encoding] = [Distance(), UndirectedDistance(), Resistance()]
    store = write(tmp_path / "store", graphs, encodings)
    for items in ([14, 3, 0, 7, 3, 12, 5, 2, 1], [14, 12], [13, 0], [-1, 3], [4]):
        with slow() if how == "slow" else nullcontext():
            stored, direct = store.positions(items), encode([graphs[i] for i in items], encodings)
        for encoding in encodings:
            mine, other = stored[encoding], direct[encoding]
            assert isinstance(mine.index, Toeplitz) == isinstance(other.index, Toeplitz)
            np.testing.assert_allclose(mine.dense(), other.dense(), rtol=1e-9)
            if not isinstance(mine.index, Toeplitz):
                outside = np.ones(mine.index.shape, dtype=bool)
                for row, i in zip(outside, items, strict=True):
                    row[: graphs[i].size, : graphs[i].size] = False
                assert encoding.real or not mine.index.numpy()[outside].any()
    with pytest.raises(IndexError, match="structure 15 of a store of 15"):
        store.positions([0, 15])

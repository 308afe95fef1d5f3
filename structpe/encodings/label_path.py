"""The labels along shortest paths: step by step, or one token per whole path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from structpe.computed import computed
from structpe.encodings.base import (
    FIT,
    Column,
    Encoded,
    Encoding,
    check_all_pairs,
    check_limits,
    check_matrices,
    check_sizes,
)
from structpe.encodings.columns import narrow
from structpe.encodings.graphs import Graphs
from structpe.encodings.label_path_search import FIRST_STEP, UNKNOWN, PairSequences, labels_of, search, walk
from structpe.structure import Ids, Structure

__all__ = ["LabelPath", "PathToken"]


_TOGETHER = 500  # structures whose paths are searched together, where paths are not what is kept


@dataclass(frozen=True)
class LabelPath(Encoding, name="label-path"):
    """The labels along a shortest path, step by step.

    The sequence of edge labels on a shortest path from the node of query t to that of key s, with directions.

    Paths ignore directions; each step is the label of its edge, and whether it follows the direction of the edge (down)
    or not (up). All steps in an undirected structure are down. Values are sequences of these symbols, padded with -1::

        0               a step with a label that is not in ``labels``
        1               the whole path from a node to itself, or between units of one node
        2               no path
        3               a whole path that is longer than ``max_length``, with ``longer="symbol"``
        4 + 2i, 5 + 2i  a step down, up an edge with label i

    Of several shortest paths those with the smallest sequences of symbols are kept, in that order, so the choice
    does not depend on the numbering of nodes. Paths through different nodes or parallel edges count separately, even
    if their labels are the same. (Zhu et al. 2019, section 3.2; Cai and Lam 2020.)

    Args:
        labels: the known labels; :meth:`fit` finds them. The empty one is that of edges without a label, so graphs
            without labels need no fit.
        max_length: number of steps up to which a path is kept whole; None for no limit.
        longer: how longer paths are represented: by their first steps (``cut``) or by symbol 3 (``symbol``).
        paths: k, the largest number of shortest paths of a pair. Values have shape (r, L) for k = 1, else (r, k, L).

    Raises:
        EncodingError: the structure has edges with labels, and no label but the empty one is known.
    """

    arity = 2
    causal = True
    ragged = True

    labels: tuple[str, ...] = ("",)
    max_length: int | None = None
    longer: Literal["cut", "symbol"] = "cut"
    paths: int = 1

    def __post_init__(self) -> None:
        check_limits(self, max_length=self.max_length)
        check_sizes(self, paths=self.paths)

    @property
    def size(self) -> int:
        """Number of symbols, and of the rows of a learned table."""
        return FIRST_STEP + 2 * len(self.labels)

    def fit(self, structures: Sequence[Structure]) -> LabelPath:
        return replace(self, labels=labels_of(structures) or ("",))

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs, cut = Graphs.of(structures), self.longer == "cut"
        check_matrices(self, graphs.most, self.paths)
        if not any(self.labels):
            _check_labels(self, structures)
        numbers = {label: i for i, label in enumerate(self.labels)}
        if self.paths == 1:
            found = search(graphs, structures, numbers, self.max_length, cut)
            return Column.of_pairs(graphs.units, found.table, found.index)
        walks = walk(graphs, structures, numbers, self.max_length, cut, self.paths)
        rows, starts = graphs.pairs_of_units(walks.rows), graphs.unit_pair_start.tolist()
        parts = [rows[a : a + n * n].reshape(n, n, -1) for a, n in zip(starts, graphs.units.tolist(), strict=False)]
        return Column.of([self._sets(part, walks.paths) for part in parts], self)

    def _sets(self, rows: Ids, paths: Ids) -> Encoded:
        """Several paths of each pair of units (u, u, k)."""
        used = int((rows >= 0).any((0, 1)).sum())
        flat = rows[:, :, :used].reshape(-1, used)
        number = flat[:, 0]
        for column in flat.T[1:]:  # sorting whole rows at once takes three times as long
            number = np.unique(number * (flat.max() + 2) + column + 1, return_inverse=True)[1]
        _, first, index = np.unique(number, return_index=True, return_inverse=True)
        sets = flat[first]
        values = np.where(sets[:, :, None] < 0, -1, paths[sets]).astype(np.min_scalar_type(-self.size))
        longest = int((values >= 0).reshape(-1, values.shape[-1]).any(0).sum())
        return Encoded(values[..., :longest], narrow(index.reshape(rows.shape[:2])))


@dataclass(frozen=True)
class PathToken(Encoding, name="path-token"):
    """The labels along a shortest path, one token per whole path.

    One number per whole path of labels: the path of :class:`LabelPath` as a word of a vocabulary.

    A step is written ``-:label`` down and ``+:label`` up an edge; steps are joined by spaces. Values::

        0      a path that is not in ``tokens``
        1      the path from a node to itself, or between units of one node
        2      no path
        3 + i  the path tokens[i]

    (Zhu et al. 2019, section 3.2, "feature-based".)

    Args:
        tokens: the known paths; :meth:`fit` finds them.
        max_length: number of steps after which a path is cut; None for no limit.
        max_tokens: how many paths :meth:`fit` keeps, the most frequent ones; 5,000 in the authors' code. None for all.

    Raises:
        EncodingError: the structure has edges, but no path is known.
    """

    arity = 2
    causal = True

    tokens: tuple[str, ...] = ()
    max_length: int | None = None
    max_tokens: int | None = 5000

    def __post_init__(self) -> None:
        check_limits(self, max_length=self.max_length, max_tokens=self.max_tokens)

    @property
    def size(self) -> int:
        """Number of values, and of the rows of a learned table."""
        return 3 + len(self.tokens)

    def fit(self, structures: Sequence[Structure]) -> PathToken:
        check_all_pairs(self, structures)
        times: Counter[str] = Counter()
        for some in _some(structures):
            found, labels = _search(replace(Graphs.of(some), owner=None), some, self.max_length)
            often = np.bincount(found.index, minlength=len(found.table)).tolist()
            for word, number in zip(_words(found, labels), often, strict=True):
                times[word] += number
        del times[_SELF], times[_UNREACHED]
        ranked = sorted(times, key=lambda word: (-times[word], word))
        return replace(self, tokens=tuple(sorted(ranked[: self.max_tokens])))

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures)
        if not self.tokens and (joined := next(filter(_joined, structures), None)) is not None:
            raise self.error(joined, f"it knows no path yet; {FIT}")
        values, parts = np.arange(self.size), [np.zeros(0, dtype=np.min_scalar_type(self.size - 1))]
        for some in _some(structures):
            found, labels = _search(Graphs.of(some), some, self.max_length)
            numbers = np.array([self._numbers.get(word, UNKNOWN) for word in _words(found, labels)])
            parts.append(numbers.astype(parts[0].dtype)[found.index])
        used = np.zeros(self.size, dtype=np.bool_)
        for part in parts:
            used[part] = True
        row = narrow(np.cumsum(used) - 1)
        units = np.array([each.unit_count for each in structures], dtype=np.int64)
        return Column.of_pairs(units, values[used], np.concatenate([row[part] for part in parts]))

    @computed
    def _numbers(self) -> dict[str, int]:
        return {word: i for i, word in enumerate((_SELF, _UNREACHED, *self.tokens), start=1)}


_SELF, _UNREACHED = "self", "unreachable"  # not steps, which begin with - or +


def _some(structures: Sequence[Structure]) -> Iterator[Sequence[Structure]]:
    """Some structures at a time: their different paths take more memory than what is made of these."""
    for first in range(0, len(structures), _TOGETHER):
        yield structures[first : first + _TOGETHER]


def _search(
    graphs: Graphs, structures: Sequence[Structure], max_length: int | None
) -> tuple[PairSequences, tuple[str, ...]]:
    """The path of each pair, by the labels that these structures have."""
    labels = labels_of(structures)
    return search(graphs, structures, {label: i for i, label in enumerate(labels)}, max_length, True), labels


def _words(paths: PairSequences, labels: Sequence[str]) -> Iterator[str]:
    """The paths as words, in their order: that of each length is the one of the length before and a step."""
    steps = ["", _SELF, _UNREACHED, ""] + [sign + label for label in labels for sign in ("-:", "+:")]
    lengths = np.bincount((paths.table >= 0).sum(axis=1))
    before: list[str] = []
    above = first = 0  # the first rows of the length before, and of this one
    for length, count in enumerate(lengths[1:].tolist(), start=1):
        mine = slice(first, first + count)
        found = []
        for row, parent, last in zip(
            range(first, first + count),
            paths.parent[mine].tolist(),
            paths.table[mine, length - 1].tolist(),
            strict=True,
        ):
            if parent >= 0:
                found.append(f"{before[parent - above]} {steps[last]}")
            else:
                found.append(" ".join([steps[symbol] for symbol in paths.table[row, :length].tolist()]))
        yield from found
        before, above, first = found, first, first + count


def _joined(structure: Structure) -> bool:
    """Whether an edge joins two nodes."""
    return bool((structure.edges[:, 0] != structure.edges[:, 1]).any())


def _check_labels(encoding: LabelPath, structures: Sequence[Structure]) -> None:
    """Check that an encoding that knows no label, or the empty one only, is not asked for others.

    Raises:
        EncodingError: an edge between two nodes has a label.
    """
    for structure in structures:
        if (any(structure.relations) or not encoding.labels) and _joined(structure):
            raise encoding.error(structure, f"it knows no label yet; {FIT}")

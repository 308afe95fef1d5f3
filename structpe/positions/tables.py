"""Offsets and distances of pairs, and learned tables with a row for each, which heads and layers may share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

import torch
from torch import Tensor, nn

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.encodings.order import Offset
from structpe.errors import PositionError
from structpe.positions.base import Cells, Dims, PositionModel, Site
from structpe.positions.batch import Positions, check_offsets, holds, of_all_pairs, of_arity, offsets
from structpe.precision import wide, widened
from structpe.structure import path
from structpe.terms import Lookup, Terms, Toeplitz

__all__ = [
    "BOUND",
    "UNBOUND",
    "KeyValueTables",
    "PairModel",
    "PairNetwork",
    "PairRows",
    "PairTable",
    "Rows",
    "Sharing",
    "Table",
    "by_head",
    "clipped_row",
    "clipped_rows",
    "diagonal",
    "distance_row",
    "distances",
    "everywhere",
    "is_plain",
    "merged",
    "numbers_and_marks",
    "pair_width",
    "steps",
    "vector_table",
]


_HALF = (WITHIN - UNREACHABLE) // 2


def is_plain(values: Tensor) -> Tensor:
    """Where values are offsets, not code points."""
    return values < UNREACHABLE - _HALF // 2


def steps(values: Tensor) -> Tensor:
    """Signed integers: k for units of one node, k places apart, and 0 for pairs without a path."""
    inner = torch.where(values == UNREACHABLE, 0, values - WITHIN)
    return torch.where(is_plain(values), values, inner)


def distances(model: str, encoding: Encoding, values: Tensor) -> Tensor:
    """|r| for each offset; k for two units of one node k places apart; the encoding's ``max_distance`` without a path.

    Raises:
        PositionError: there is a pair without a path, and the encoding has no ``max_distance``.
    """
    far = torch.where(is_plain(values), values, values - WITHIN).abs()
    if not encoding.codes:
        return far
    max_distance: int | None = encoding.options().get("max_distance")
    if max_distance is None and holds((values == UNREACHABLE).any()):
        raise PositionError(
            f"position model {model!r} got a pair of units without a path, which has no distance; give the encoding "
            f"a max_distance, to count such pairs as that far: {encoding.name!r} with max_distance=..."
        )
    return torch.where(values == UNREACHABLE, max_distance or 0, far)


def everywhere(table: Tensor, like: Lookup) -> Lookup:
    """The one row of a table (1, ...) for every pair that ``like`` has. The index is a view, without memory."""
    none = like.rows.new_zeros(1, 1)
    return Lookup(table, none, none[:, :, None].expand(1, *like.index.shape[1:]))


@dataclass(frozen=True)
class Rows:
    """The row of a table for each value: first offsets, by a rule, then one row for "unreachable", then "within".

    Args:
        encoding: where the values come from; code points that it never uses get no row.
        offsets: number of rows for offsets.
        rule: maps offsets to rows 0..offsets - 1.
        within: units of one node up to this far apart have a row for each distance, on both sides; others share the
            last.

    Raises:
        PositionError: the encoding gives real numbers.
    """

    encoding: Encoding
    offsets: int
    rule: Callable[[Tensor], Tensor]
    within: int = 8

    def __post_init__(self) -> None:
        if self.encoding.arity == 2:  # of another, the model says that it needs pairs
            check_offsets(self.encoding)

    @property
    def size(self) -> int:
        """Number of rows, R."""
        codes = self.encoding.codes
        return self.offsets + ("unreachable" in codes) + ("within" in codes) * (2 * self.within + 1)

    def of(self, values: Tensor) -> Tensor:
        """Row of each value."""
        rows = self.rule(torch.where(is_plain(values), values, 0))
        if "unreachable" in self.encoding.codes:
            rows = torch.where(values == UNREACHABLE, self.offsets, rows)
        if "within" in self.encoding.codes:
            first = self.size - 2 * self.within - 1
            inner = (values - WITHIN).clamp(-self.within, self.within) + self.within + first
            rows = torch.where(values > UNREACHABLE, inner, rows)
        return rows


def clipped_rows(encoding: Encoding, max_distance: int, within: int = 8) -> Rows:
    """A row for each offset from -m to m, m = max_distance; offsets farther away share the row at their end.

    (Shaw et al. 2018.) ``within`` is as in :class:`Rows`.
    """
    return Rows(encoding, 2 * max_distance + 1, partial(clipped_row, most=max_distance), within)


def clipped_row(offsets: Tensor, most: int) -> Tensor:
    """clip(r, -most, most) + most."""
    return offsets.clamp(-most, most) + most


def distance_row(offsets: Tensor, most: int) -> Tensor:
    """min(|r|, most)."""
    return offsets.abs().clamp(max=most)


Sharing: TypeAlias = Literal["none", "head-wise", "layer-wise", "both"]
"""Which parameters are one and the same (Chen et al. 2021, section 4.4): ``head-wise`` for all heads of a layer,
``layer-wise`` for all layers, each head having its own."""


BOUND = partial(Cells, "R", "MAM", True, True, False)
"""Cells of a table of offsets: relative, in attention, learned, recurring, bound; takes the formula of parameters."""
UNBOUND = partial(Cells, "R", "MAM", True, True, True)
"""Likewise, of a function of offsets that distinguishes all of them."""


class Table(nn.Module):
    """A learned table per layer and head, or shared over either.

    Args:
        dims: sizes of the Transformer.
        rows: R, number of rows.
        sharing: which layers and heads have the same numbers.
        width: width of each entry; None for a scalar.
        std: deviation of the normal distribution that they start from; 0 starts at zero.
    """

    def __init__(self, dims: Dims, rows: int, sharing: Sharing, width: int | None = None, std: float = 0.02) -> None:
        super().__init__()
        self.layers = dims.layers
        layers, heads = _separate(sharing, dims)
        shape = (layers, rows, heads) if width is None else (layers, rows, heads, width)
        self.weight = nn.Parameter(torch.randn(shape) * std)

    def at(self, layer: int) -> Tensor:
        """(R, h or 1) scalars or (R, h or 1, width) vectors of a layer, in float32 at least.

        Raises:
            PositionError: there is no such layer.
        """
        if not 0 <= layer < self.layers:
            last = self.layers - 1
            raise PositionError(f"this model was built for {self.layers} layers, 0..{last}; there is no layer {layer}")
        own: Tensor = self.weight[0 if self.common else layer]
        return wide(own)

    def entries(self, rows: Lookup, site: Site) -> Lookup:
        """The entry of each row, in the table of a layer."""
        return rows.map(self.at(site.layer).__getitem__)

    @property
    def common(self) -> bool:
        """Whether all layers have the same numbers."""
        return len(self.weight) == 1

    @staticmethod
    def copies(sharing: Sharing, dims: Dims) -> int:
        """How many tables there are: the factor of a formula of parameters."""
        layers, heads = _separate(sharing, dims)
        return layers * heads


def _separate(sharing: Sharing, dims: Dims) -> tuple[int, int]:
    """How many layers, and how many heads, have numbers of their own."""
    return (
        1 if sharing in ("layer-wise", "both") else dims.layers,
        1 if sharing in ("head-wise", "both") else dims.heads,
    )


class RowRule(Protocol):
    """Which row of a table each value of an encoding of pairs has."""

    @property
    def size(self) -> int:
        """Number of rows, R."""

    def of(self, values: Tensor) -> Tensor:
        """Row of each value."""


class PairModel(PositionModel):
    """A model of one number for each pair of units: its offset, its distance, or the value of another encoding.

    Args:
        encoding: r_ij, signed integers per pair: s - t, key minus query, or any other.

    Raises:
        PositionError: the encoding is not of pairs, or does not give one integer per pair.
    """

    def __init__(self, dims: Dims, encoding: Encoding = Offset()) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 2)])

    def of_pairs(self, positions: Positions) -> Lookup:
        """The value of each pair."""
        encoding = self.encodings[0]
        return offsets(self.name, encoding, positions[encoding])


class PairRows(PairModel):
    """Finds the row of a table for each pair; subclasses have the tables and define where the entries act.

    Args:
        encoding: r_ij, signed integers per pair: s - t, key minus query, or any other. Pairs without a path and units
            of one node have rows of their own.
        rows: the rule of the rows.
        sharing: which layers and heads have the same numbers.
    """

    def __init__(self, dims: Dims, encoding: Encoding, rows: RowRule, sharing: Sharing) -> None:
        super().__init__(dims, encoding)
        self.sizes = {"R": rows.size, "copies": Table.copies(sharing, dims)}
        self.rows = rows

    def prepare(self, positions: Positions) -> Any:
        """The row of each distinct value: computed once per value, not per pair and layer."""
        return self.of_pairs(positions).map(self.rows.of).share()


class PairTable(PairRows):
    """s_ij += b[row(r_ij)]: b (R, h) is a learned table of each layer, r_ij the value of the pair.

    Args:
        width: width of each entry, for subclasses that add vectors; None for scalars.
        std: deviation of the normal distribution that the entries start from.
    """

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding,
        rows: RowRule,
        sharing: Sharing,
        width: int | None = None,
        std: float = 0.02,
    ) -> None:
        super().__init__(dims, encoding, rows, sharing)
        self.table = Table(dims, rows.size, sharing, width, std)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(bias=(self.entries(prepared, site),))

    def entries(self, rows: Lookup, site: Site) -> Lookup:
        """The entry of each row in the table of the layer; made once if the layers have one table."""
        if not self.table.common or not isinstance(rows, Lookup):
            return self.table.entries(rows, site)
        return rows.cached("entries", lambda: self.table.entries(rows, site).share())


class KeyValueTables(PairRows):
    """s_ij = q_i.(k_j + K[row(r_ij)]) / sqrt(d_h),  o_i = sum_j w_ij (v_j + V[row(r_ij)]): K, V (R, d_h) are learned.

    Args:
        sharing: which layers and heads have the same vectors.
        std: deviation of the normal distribution that the entries start from; None for Glorot's.
    """

    def __init__(
        self, dims: Dims, encoding: Encoding, rows: RowRule, sharing: Sharing, std: float | None = None
    ) -> None:
        super().__init__(dims, encoding, rows, sharing)
        self.keys, self.values = (vector_table(dims, rows.size, sharing, std) for _ in range(2))

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(key=(self.keys.entries(prepared, site),), value=(self.values.entries(prepared, site),))


def vector_table(dims: Dims, rows: int, sharing: Sharing, std: float | None = None) -> Table:
    """A table of vectors as wide as a head, from N(0, std^2); std is Glorot's, sqrt(2 / (R + d_h)), unless given."""
    return Table(dims, rows, sharing, dims.head, math.sqrt(2 / (rows + dims.head)) if std is None else std)


def pair_width(model: str, encoding: Encoding, vectors: bool = True) -> int:
    """How many numbers an encoding of all pairs gives a pair.

    Args:
        model: name of the position model, for errors.
        encoding: of pairs.
        vectors: whether it may be several.

    Raises:
        PositionError: the encoding is of single units, or of listed pairs, or gives sequences, or several numbers.
    """
    needed = (
        f"position model {model!r} needs {'a number or a vector' if vectors else 'one number'} for each pair of units"
    )
    if of_all_pairs(model, encoding).ragged:
        raise PositionError(f"{needed} (resistance, ...); {encoding.name!r} gives sequences")
    shape = encoding.one(path(["a", "b"])).values.shape[1:]
    if len(shape) > 1 or (shape and not vectors):
        raise PositionError(f"{needed} (resistance, ...); {encoding.name!r} gives {shape[0]} numbers")
    return int(shape[0]) if shape else 1


def numbers_and_marks(encoding: Encoding, values: Tensor, dtype: torch.dtype) -> Tensor:
    """(R, K) the numbers of distinct values (R,) or (R, K); (R, K + 1) if there can be pairs without a path.

    Such a pair has 0 for the numbers and 1 in the last column, which is 0 for all others. Two units of one node, k
    places apart, have k.
    """
    if values.ndim == 1:
        values = values[:, None]
    if not encoding.codes:
        return values.to(dtype)
    plain = is_plain(values)
    inside = ~plain & (values > UNREACHABLE) if not values.is_floating_point() else torch.zeros_like(plain)
    numbers = torch.where(plain, values, torch.where(inside, values - WITHIN, 0)).to(dtype)
    return torch.cat([numbers, (~plain & ~inside).any(1, keepdim=True).to(dtype)], dim=1)


def merged(pairs: Lookup) -> Lookup:
    """The same pairs with one row for all that have the same number; vectors as they are.

    Encodings of real numbers do not look for equal ones, but a network on all of them takes longer than the search:
    resistances of trees, for example, are a few whole numbers. How many there are must not matter to a traced graph.
    """
    if pairs.table.ndim > 1 or torch.compiler.is_compiling():
        return pairs
    table, where = torch.unique(pairs.table, return_inverse=True)
    return Lookup(table, where[pairs.rows.long()], pairs.index)


def by_head(pairs: Lookup, table: Tensor, queries: slice = slice(None)) -> Tensor:
    """(b or 1, h or 1, c, m) a number of each head for the pairs of some queries, whose distinct values have ``table``.

    Each head is gathered by itself: heads come first, where attention needs them, and nothing is copied.

    Args:
        pairs: which distinct value each pair has.
        table: (R, h or 1) the numbers of each of them.
        queries: which ones; by default all.
    """
    first, last, _ = queries.indices(pairs.index.shape[1])
    given = pairs.index
    index = given.block(first, last, given.m).dense() if isinstance(given, Toeplitz) else given[:, queries]
    local = table.index_select(0, pairs.rows.long().flatten()).view(*pairs.rows.shape, -1).transpose(1, 2)
    b, h = max(len(local), len(index)), local.shape[1]
    picked = local.expand(b, -1, -1).gather(-1, index.long().flatten(1)[:, None].expand(b, h, -1))
    return picked.view(b, h, *index.shape[1:])


def diagonal(pairs: Lookup) -> Tensor:
    """(b, n, ...) what each unit has with itself."""
    index = pairs.dense_index().diagonal(dim1=1, dim2=2)
    return pairs.table[pairs.rows.gather(1, index).long()]


class PairNetwork(PositionModel):
    """s_ij += phi(x_ij) of the head, the same for all layers: phi runs once per distinct value.

    Args:
        encoding: of pairs.
        vectors: whether a pair may have several numbers.
        sizes: of the symbols of the formula of parameters; K is the number of columns of :meth:`network`'s input.
    """

    def __init__(self, dims: Dims, encoding: Encoding, vectors: bool, **sizes: int) -> None:
        width = pair_width(self.name, encoding, vectors) + bool(encoding.codes)
        super().__init__(dims, [encoding], K=width, **sizes)

    def prepare(self, positions: Positions) -> Terms:
        """The same for all layers."""
        pairs = merged(positions[self.encodings[0]])
        exact = widened(self)
        dtype = next(exact.parameters()).dtype
        inputs = pairs.map(lambda values: numbers_and_marks(self.encodings[0], values, dtype))
        return Terms(bias=(inputs.map(exact.network).share(),))

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared

    @abstractmethod
    def network(self, inputs: Tensor) -> Tensor:
        """(R, h) phi of the numbers and marks (R, K) of distinct values."""

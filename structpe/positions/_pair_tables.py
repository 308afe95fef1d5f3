"""Bases of position models with learned tables, indexed by the values of an encoding of pairs."""

from __future__ import annotations

import math
from typing import Any, Protocol

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.positions._batch import Positions
from structpe.positions._checks import of_arity, offsets
from structpe.positions._dims import Dims
from structpe.positions._sites import Site
from structpe.positions._tables import Sharing, Table
from structpe.positions.base import PositionModel
from structpe.terms import Lookup, Terms

__all__ = ["KeyValueTables", "PairRows", "PairTable"]


class RowRule(Protocol):
    """Which row of a table each value of an encoding of pairs has."""

    @property
    def size(self) -> int:
        """Number of rows, R."""

    def of(self, values: Tensor) -> Tensor:
        """Row of each value."""


class PairRows(PositionModel):
    """Finds the row of a table for each pair; subclasses have the tables and define where the entries act.

    Args:
        dims: sizes of the Transformer.
        encoding: of pairs.
        rows: the rule of the rows.
        sharing: which layers and heads share a table, for the formula of parameters.

    Raises:
        PositionError: the encoding is of single units.
    """

    def __init__(self, dims: Dims, encoding: Encoding, rows: RowRule, sharing: Sharing) -> None:
        encodings = [of_arity(self.name, encoding, 2)]
        super().__init__(dims, encodings, R=rows.size, copies=Table.copies(sharing, dims))
        self.rows = rows

    def of_pairs(self, positions: Positions) -> Lookup:
        """The value of each pair, by default one integer."""
        return offsets(self.name, self.encodings[0], positions[self.encodings[0]])

    def prepare(self, positions: Positions) -> Any:
        """The row of each distinct value: computed once per value, not per pair and layer."""
        return self.of_pairs(positions).map(self.rows.of).share()


class PairTable(PairRows):
    """s_ij += b[row(r_ij)]: b (R, h) is a learned table of each layer, r_ij the value of the pair.

    Args:
        dims: sizes of the Transformer.
        encoding: of pairs.
        rows: the rule of the rows.
        sharing: which layers and heads have the same numbers.
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
        own = self.table.at(site.layer).__getitem__
        if not self.table.common or not isinstance(rows, Lookup):
            return rows.map(own)
        return rows.kept("entries", lambda: rows.map(own).share())


class KeyValueTables(PairRows):
    """s_ij = q_i.(k_j + K[row(r_ij)]) / sqrt(d_h),  o_i = sum_j w_ij (v_j + V[row(r_ij)]): K, V (R, d_h) are learned.

    Args:
        dims: sizes of the Transformer.
        encoding: of pairs.
        rows: the rule of the rows.
        sharing: which layers and heads have the same vectors.
        std: deviation of the normal distribution that the entries start from; None for Glorot's.
    """

    def __init__(
        self, dims: Dims, encoding: Encoding, rows: RowRule, sharing: Sharing, std: float | None = None
    ) -> None:
        super().__init__(dims, encoding, rows, sharing)
        std = math.sqrt(2 / (rows.size + dims.head)) if std is None else std
        self.keys = Table(dims, rows.size, sharing, width=dims.head, std=std)
        self.values = Table(dims, rows.size, sharing, width=dims.head, std=std)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        keys, values = self.keys.at(site.layer), self.values.at(site.layer)
        return Terms(key=(prepared.map(keys.__getitem__),), value=(prepared.map(values.__getitem__),))

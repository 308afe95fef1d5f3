"""The pairs of units of a batch of structures, one after another, without padding."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from structpe.quantities import Lookup

__all__ = ["ListedPairs"]


@dataclass(frozen=True, eq=False)
class ListedPairs:
    """All pairs of units of one structure, structure by structure and query by query.

    What a model holds for each pair then has no padding, which is about half of all pairs of a batch of molecules.

    Attributes:
        together: (b, n, n) which pairs are of one structure. Those are listed; all b n n while a graph is traced, as
            its sizes cannot depend on numbers.
        places: (P,) of each pair in (b, n, n).
        query: (P,) place of its query in (b, n).
        key: (P,) place of its key in (b, n).
        real: (P,) whether it is of one structure.
    """

    together: Bool[Tensor, "b n n"]
    places: Int[Tensor, " P"]
    query: Int[Tensor, " P"]
    key: Int[Tensor, " P"]
    real: Bool[Tensor, " P"]

    @classmethod
    def of(cls, pairs: Lookup, present: Bool[Tensor, "#b n"] | None) -> ListedPairs:
        """The pairs of a batch.

        Args:
            pairs: a quantity of all of them.
            present: which places have a unit; None if all have.
        """
        b, n, _ = pairs.index.shape
        units = torch.ones(1, n, dtype=torch.bool, device=pairs.rows.device) if present is None else present
        b = max(b, len(pairs.rows), len(units))
        return cls._of((units[:, :, None] & units[:, None]).expand(b, n, n))

    @classmethod
    def _of(cls, together: Tensor) -> ListedPairs:
        _, n, m = together.shape
        flat = together.flatten()
        traced = torch.compiler.is_compiling()
        places = torch.arange(flat.numel(), device=flat.device) if traced else flat.nonzero().squeeze(1)
        return cls(together, places, places // m, places // (n * m) * n + places % m, flat[places])

    def repeated(self, times: int) -> ListedPairs:
        """The same pairs of one structure for several rows."""
        return self._of(self.together.expand(times, -1, -1))

    def read(self, pairs: Lookup) -> Shaped[Tensor, "P ..."]:
        """The quantity of each listed pair."""
        b, n, m = self.together.shape
        local = pairs.places().expand(b, -1, -1).flatten()[self.places]
        rows = pairs.rows.expand(b, -1)[self.places // (n * m), local]
        return pairs.table.index_select(0, rows.long())

    def of_query(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "P d"]:
        """What each pair's query has."""
        return x.flatten(0, 1).index_select(0, self.query)

    def of_key(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "P d"]:
        """What each pair's key has."""
        return x.flatten(0, 1).index_select(0, self.key)

    def sum_keys(self, x: Float[Tensor, "P d"]) -> Float[Tensor, "b n d"]:
        """The sum over the keys of each query."""
        b, n, _ = self.together.shape
        return x.new_zeros(b * n, x.shape[1]).index_add(0, self.query, x).view(b, n, -1)

    def dense(self, x: Float[Tensor, "P h"]) -> Float[Tensor, "b n n h"]:
        """The same numbers in their places; zero elsewhere."""
        b, n, m = self.together.shape
        return x.new_zeros(b * n * m, x.shape[1]).index_copy(0, self.places, x).view(b, n, m, -1)

    def of_dense(self, x: Float[Tensor, "b n n h"]) -> Float[Tensor, "P h"]:
        """What :meth:`dense` undoes: the numbers of the listed pairs."""
        return x.flatten(0, 2).index_select(0, self.places)

"""Steps up and down between two nodes of a tree as vectors at keys and values (Villmow et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.lowest_common_ancestor import LowestCommonAncestor as Steps
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Positions, Spec
from structpe.positions._pair_tables import KeyValueTables
from structpe.positions._tables import Sharing
from structpe.terms import Lookup

__all__ = ["LowestCommonAncestor"]


class LowestCommonAncestor(KeyValueTables, name="lowest-common-ancestor"):
    """Steps up and down between two nodes of a tree as vectors at keys and values (Villmow et al. 2021).

    s_ij = q_i.(k_j + K[up, down]) / sqrt(d_h),  o_i = sum_j w_ij (v_j + V[up, down]), up and down at most m.

    From the node of i it is ``up`` steps to the lowest common ancestor of i and j, and from there ``down`` to the node
    of j. K and V have (m + 1)^2 rows of width d_h. (Villmow et al. 2021 use these steps in Shaw et al.'s attention
    instead of offsets; no code by them is known. Tables are shared as in ``shaw``.)

    Args:
        dims: sizes of the Transformer.
        encoding: (up, down) per pair.
        reach: m, the most steps that have their own vectors.
        sharing: ``head-wise`` as in Shaw's code.

    Raises:
        PositionError: the reach is below 1, or the encoding does not give two numbers per pair.
    """

    spec = Spec(
        "villmow2021", "tree", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="2*R*dh*copies")
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Steps(), reach: int = 8, sharing: Sharing = "head-wise"
    ) -> None:
        super().__init__(dims, encoding, _Rows(reach), sharing)

    def of_pairs(self, positions: Positions) -> Lookup:
        """The steps up and down of each pair."""
        of_pairs: Lookup = positions[self.encodings[0]]
        if of_pairs.table.ndim != 2 or of_pairs.table.shape[1] != 2:
            raise PositionError(
                f"position model {self.name!r} needs two numbers per pair, steps up and down; "
                f"{self.encodings[0].name!r} gives others"
            )
        return of_pairs


@dataclass(frozen=True)
class _Rows:
    """A row for each number of steps up and down, up to ``reach`` each."""

    reach: int

    @property
    def size(self) -> int:
        return (self.reach + 1) ** 2

    def of(self, values: Tensor) -> Tensor:
        up, down = values.clamp(0, self.reach).unbind(-1)
        return up * (self.reach + 1) + down

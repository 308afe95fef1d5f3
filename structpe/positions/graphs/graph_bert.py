"""Role, intimacy and hops of each node as learned vectors at the input (Zhang et al. 2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.intimacy import Intimacy
from structpe.encodings.root_distance import RootDistance
from structpe.encodings.weisfeiler_lehman import WeisfeilerLehman
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import holds, indices, of_whole
from structpe.positions.graphs._roles import check_rows

__all__ = ["GraphBERT"]


class GraphBERT(PositionModel, name="graph-bert"):
    """Role, intimacy and hops of each node as learned vectors at the input (Zhang et al. 2020).

    x_u + E_role[role(u)] + E_rank[rank(u)] + E_hop[hop(u)]: three learned tables (n, d).

    role(u) is the Weisfeiler-Lehman role of the node, rank(u) its place by intimacy with the target, hop(u) its
    distance from the target, which is the root and has 0 twice. (Zhang et al. 2020, section 3.2; the authors' code,
    whose three tables are learned; the paper's and the survey's form without parameters is ``graph-bert-survey``.)

    The code computes all three in one large graph and feeds contexts of a target and the k nodes nearest to it:
    :func:`structpe.transforms.contexts.contexts` makes these, with the features that ``Feature("intimacy")`` and
    ``Feature("hop")`` then read here. Its roles are those of one round, functions of the degree. The LayerNorm and the
    dropout that it applies after the sum, and the residual of raw features in each layer, are not included.

    Args:
        dims: sizes of the Transformer.
        encoding: roles; the 99 most frequent by default.
        rank: integers 0, 1, ... per unit.
        hop: integers 0, 1, ... per unit.
        rows: n, of each table.

    Raises:
        PositionError: a batch has a number of ``rows`` or more.
    """

    spec = Spec(
        "zhang2020",
        "graph",
        Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="3*n*d"),
        table1=Cells("B", "APE", learnable=False, recurring=False, unbound=True, params="0"),
        note="the code has learned tables in place of sinusoids; relative to a target means absolute to all others",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = WeisfeilerLehman(most=99),
        rank: Encoding = Intimacy(),
        hop: Encoding = RootDistance(),
        rows: int = 100,
    ) -> None:
        check_rows(self.name, encoding, rows)
        super().__init__(dims, [of_whole(self.name, each) for each in (encoding, rank, hop)], n=rows)
        self.tables = nn.ParameterList(torch.randn(rows, dims.width) for _ in range(3))

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        for table, encoding in zip(self.tables, self.encodings, strict=True):
            of_units = indices(self.name, encoding, prepared.queries(encoding))
            if holds((of_units >= len(table)).any()):
                most = int(of_units.max())
                raise PositionError(
                    f"position model 'graph-bert' has {len(table)} rows, {encoding.name!r} gives {most}; build it "
                    f"with more rows, take smaller contexts, or choose 'graph-bert-survey', which has no tables"
                )
            x = x + table[of_units]
        return x

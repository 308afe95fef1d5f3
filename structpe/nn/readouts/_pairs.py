"""What readouts of pairs share."""

from __future__ import annotations

from abc import abstractmethod

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from structpe.data.batch import Batch
from structpe.nn.readouts.base import Readout

__all__ = ["PairReadout"]


class PairReadout(Readout, level="pair"):
    """A score s(h, r, t) of a triple, of all candidates for the missing entity of each query of the batch.

    Args:
        width: d.
        outputs: how many relations; each has a learned vector r of d numbers.
    """

    head = False

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__(width, outputs)
        self.relations = nn.Parameter(torch.empty(outputs, width))
        nn.init.xavier_uniform_(self.relations)

    def forward(self, x: Float[Tensor, "N d"], batch: Batch) -> Float[Tensor, "q N"]:
        """The scores of all nodes for each of ``Batch.queries``; the batch has one graph."""
        assert batch.queries is not None, "batches of pairs have queries"
        given, relation, reverse = batch.queries.unbind(1)
        return self.score(x[given], self.relations[relation], reverse[:, None].bool(), x)

    @abstractmethod
    def score(
        self,
        given: Float[Tensor, "q d"],
        relation: Float[Tensor, "q d"],
        reverse: Bool[Tensor, "q 1"],
        candidates: Float[Tensor, "N d"],
    ) -> Float[Tensor, "q N"]:
        """s(given, r, candidate), and s(candidate, r, given) of the queries that are ``reverse``."""

"""Readouts: from the vectors of nodes to graphs, nodes or pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from structpe.data.batch import Batch
from structpe.errors import ConfigError
from structpe.registry import Registry

__all__ = [
    "READOUTS",
    "ComplEx",
    "DistMult",
    "MaxReadout",
    "MeanReadout",
    "NodeReadout",
    "PairReadout",
    "Readout",
    "RootReadout",
    "SumReadout",
    "TransE",
    "readout_of",
    "summed",
]

READOUTS: Registry[type[Readout]] = Registry("structpe.nn.readouts", "readout", ConfigError)
"""All readouts, by name."""


class Readout(nn.Module, ABC):
    """Base class. Most readouts compute a vector of each item, from which the head of the model makes the prediction.

    Args:
        width: d, of the vectors of nodes.
        outputs: number of predicted numbers; for pairs, number of relations.

    Attributes:
        level: level of its predictions: ``graph``, ``node`` or ``pair``.
        default: whether it is the readout of its level if the configuration names none.
        head: whether the head makes the prediction; otherwise the readout does.
    """

    name: ClassVar[str]
    level: ClassVar[str]
    default: ClassVar[bool] = False
    head: ClassVar[bool] = True

    def __init_subclass__(cls, name: str = "", level: str = "", default: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        if level:
            cls.level = level
        if name:
            cls.name, cls.default = name, default
            READOUTS.add(name, cls)

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        del width, outputs

    @abstractmethod
    def forward(self, x: Float[Tensor, "N d"], batch: Batch) -> Tensor:
        """(c, d) vectors of the items of a batch, or their predictions.

        Args:
            x: vectors of nodes.
            batch: the batch.
        """


def readout_of(name: str | None, level: str | None) -> type[Readout]:
    """The readout of this name, or the default of a level.

    Args:
        name: of the readout; None for the default.
        level: level of the predictions; None takes the readout's own, or graphs if no readout is named either.

    Raises:
        ConfigError: there is no such readout or level, or the readout has another level.
    """
    if name is not None:
        readout = READOUTS[name]
        if level in (None, readout.level):
            return readout
        known = ", ".join(each for each in READOUTS if READOUTS[each].level == level)
        wrong = f"readout is {name!r}, which has the level {readout.level!r}; predictions here have the level {level!r}"
        raise ConfigError(f"{wrong}: choose one of {known}, or leave it out")
    for readout in READOUTS.values():
        if readout.default and readout.level == (level or "graph"):
            return readout
    raise ConfigError(f"no readout is the default of the level {level!r}; give it one, or choose a readout by name")


def summed(x: Float[Tensor, "N d"], batch: Batch) -> Float[Tensor, "g d"]:
    """The sum over the nodes of each graph."""
    return x.new_zeros(len(batch.sizes), x.shape[1]).index_add(0, batch.graph, x)


class MeanReadout(Readout, name="mean", level="graph", default=True):
    """r_g = 1/n_g sum_i x_i over the n_g nodes of graph g."""

    def forward(self, x: Float[Tensor, "N d"], batch: Batch) -> Float[Tensor, "g d"]:
        return summed(x, batch) / batch.sizes[:, None].to(x.dtype)


class MaxReadout(Readout, name="max", level="graph"):
    """r_g = max_i x_i over the nodes of graph g, in each dimension (Qi et al. 2017)."""

    def forward(self, x: Float[Tensor, "N d"], batch: Batch) -> Float[Tensor, "g d"]:
        lowest = x.new_full((len(batch.sizes), x.shape[1]), -torch.inf)
        return lowest.scatter_reduce(0, batch.graph[:, None].expand_as(x), x, "amax")


class SumReadout(Readout, name="sum", level="graph"):
    """r_g = sum_i x_i over the nodes of graph g (Xu et al. 2019)."""

    def forward(self, x: Float[Tensor, "N d"], batch: Batch) -> Float[Tensor, "g d"]:
        return summed(x, batch)


class NodeReadout(Readout, name="node", level="node", default=True):
    """r_i = x_i of each node of ``Batch.target_mask``, or of all nodes if the batch has none."""

    def forward(self, x: Float[Tensor, "N d"], batch: Batch) -> Float[Tensor, "c d"]:
        return x if batch.target_mask is None else x[batch.target_mask]


class RootReadout(Readout, name="root", level="graph"):
    """r_g = x_root, for trees; the first node of a graph without a root."""

    def forward(self, x: Float[Tensor, "N d"], batch: Batch) -> Float[Tensor, "g d"]:
        return x[batch.roots]


class PairReadout(Readout, level="pair"):
    """A score s(h, r, t) of a triple, of all candidates for the missing entity of each query of the batch.

    Args:
        width: d.
        outputs: number of relations; each has a learned vector r of d numbers.
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


class ComplEx(PairReadout, name="complex"):
    """s(h, r, t) = Re(sum_k h_k r_k conj(t_k)), vectors of d/2 complex numbers: real parts first, then imaginary parts.

    Trouillon et al. 2016, equations 9 to 11. With the head missing, h is scored by the conjugates of r and t:
    Re(h r conj(t)) = Re(t conj(r) conj(h)).

    Raises:
        ConfigError: the width is odd.
    """

    def __init__(self, width: int, outputs: int) -> None:
        if width % 2:
            raise ConfigError(f"width is {width}; complex needs an even width, for real and imaginary parts")
        super().__init__(width, outputs)

    def score(self, given: Tensor, relation: Tensor, reverse: Tensor, candidates: Tensor) -> Tensor:
        (a, b), (c, d) = given.chunk(2, 1), relation.chunk(2, 1)
        d = torch.where(reverse, -d, d)
        # Re(z conj(t)) is the product of the real parts plus that of the imaginary parts.
        return torch.cat([a * c - b * d, a * d + b * c], dim=1) @ candidates.T


class DistMult(PairReadout, name="distmult", default=True):
    """s(h, r, t) = sum_k h_k r_k t_k.

    Yang et al. 2015, equation 2 with a diagonal matrix. The score is the same in both directions.
    """

    def score(self, given: Tensor, relation: Tensor, reverse: Tensor, candidates: Tensor) -> Tensor:
        del reverse
        return (given * relation) @ candidates.T


class TransE(PairReadout, name="transe"):
    """s(h, r, t) = -||h + r - t||, the Euclidean norm (Bordes et al. 2013, equation 1 with the L2 norm).

    The authors keep entities on the unit sphere and train with a margin; here vectors are free, and the loss is that of
    the objective.
    """

    def score(self, given: Tensor, relation: Tensor, reverse: Tensor, candidates: Tensor) -> Tensor:
        wanted = given + torch.where(reverse, -relation, relation)
        # |w - t|^2 = |w|^2 - 2 w.t + |t|^2 takes (q, N) numbers; the differences themselves would take (q, N, d).
        squares = wanted.square().sum(1, keepdim=True) - 2 * wanted @ candidates.T + candidates.square().sum(1)
        return -squares.clamp(min=1e-12).sqrt()

"""What the structure extractors of SAT share: graph convolutions over units, a norm and a projection after them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.unit_count import UnitCount
from structpe.positions import Dims, PositionModel, Site, Sources
from structpe.positions._batch_norm import BatchNorm
from structpe.positions.spectral._nodes import Nodes

__all__ = ["Convolution", "Extracting", "Extractor", "Surroundings"]


@dataclass(frozen=True)
class Surroundings:
    """What is around each unit.

    Attributes:
        nodes: the nodes of the batch.
        neighbours: (b, n, n) weights of a sum over the nodes that an edge joins with a unit's node.
        members: (b, n, n) whether the second unit's node is in the subgraph around the first's; None if nothing asks.
    """

    nodes: Nodes
    neighbours: Tensor
    members: Tensor | None = None


class Convolution(nn.Module):
    """relu(W x_i + w + V sum of x_j over the neighbours j of i), of x (..., n, d) with neighbours (..., n, n)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.itself, self.around = nn.Linear(width, width), nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, neighbours: Tensor) -> Tensor:
        return torch.relu(self.itself(x) + self.around(neighbours @ x))


class Extractor(nn.Module):
    """U norm(what :meth:`gathered` gives) + u, for units (b, n, d); norm is batch normalisation over real units.

    Args:
        width: d.
        hops: number of convolutions.
        gathered: how many times d its vectors are wide.
    """

    def __init__(self, width: int, hops: int, gathered: int) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(Convolution(width) for _ in range(hops))
        self.norm, self.out = BatchNorm(gathered * width), nn.Linear(gathered * width, width)

    def forward(self, x: Tensor, surroundings: Surroundings) -> Tensor:
        out: Tensor = self.out(self.norm(self.gathered(x, surroundings), surroundings.nodes.present))
        return out

    @abstractmethod
    def gathered(self, x: Tensor, surroundings: Surroundings) -> Tensor:
        """(b, n, c d) from (b, n, d)."""


class Extracting(PositionModel):
    """Queries and keys are projected from what an extractor of each layer makes of the units, values from the units.

    Args:
        dims: sizes of the Transformer.
        encodings: of the graph.
        extractors: one for each layer.
        hops: k, for the formula of parameters.
    """

    def __init__(self, dims: Dims, encodings: list[Encoding], extractors: list[Extractor], hops: int) -> None:
        self.unit_count = UnitCount()
        super().__init__(dims, [*encodings, self.unit_count], k=hops)
        self.extractors = nn.ModuleList(extractors)

    @property
    def causal(self) -> bool:
        """No: an edge to a later unit changes what is around an earlier one."""
        return False

    def sources(self, sources: Sources, prepared: Surroundings, site: Site) -> Sources:
        made: Tensor = self.extractors[site.layer](sources.query, prepared)
        return Sources(made, made, sources.value)

"""A convolution computes new vectors of nodes from their neighbours, and optionally new vectors of edges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from structpe.data.adjacency import CSRAdjacency
from structpe.errors import ConfigError
from structpe.registry import Registry

__all__ = ["CONVOLUTIONS", "Convolution"]

CONVOLUTIONS: Registry[type[Convolution]] = Registry("structpe.nn.convolutions", "convolution", ConfigError)
"""All convolutions, by name."""


class Convolution(nn.Module, ABC):
    """Base class: new vectors of nodes and edges of the same width d.

    Attributes:
        reads_edges: whether it needs vectors of edges; edges without features share one learned vector.
        updates_edges: whether it also computes new vectors of edges for the next layer.
        rectifies: whether it has a rectifier of its own, between two linear maps. A hybrid layer adds no activation
            after it; one with a linear residual does.
        keeps_sums: whether it is an affine map of the vectors of nodes, so that several are no more than one.
        glorot: whether its maps begin with the numbers of Glorot & Bengio 2010, larger than PyTorch's. A linear
            residual beside it begins alike.
    """

    name: ClassVar[str]
    reads_edges: ClassVar[bool] = False
    updates_edges: ClassVar[bool] = False
    rectifies: ClassVar[bool] = False
    keeps_sums: ClassVar[bool] = False
    glorot: ClassVar[bool] = False

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if name:
            cls.name = name
            CONVOLUTIONS.add(name, cls)

    @abstractmethod
    def __init__(self, width: int) -> None:
        super().__init__()

    @abstractmethod
    def forward(
        self, x: Float[Tensor, "N d"], edges: Float[Tensor, "E d"] | None, adjacency: CSRAdjacency
    ) -> tuple[Float[Tensor, "N d"], Float[Tensor, "E d"] | None]:
        """New vectors of nodes, and of edges.

        Args:
            x: vectors of nodes.
            edges: vectors of edges, one per message; None if the convolution does not read them.
            adjacency: the messages.
        """

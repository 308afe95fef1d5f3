"""A convolution makes a node's vector of those of its neighbours, and perhaps an edge's of those at its ends."""

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
"""Every convolution by its name."""


class Convolution(nn.Module, ABC):
    """From vectors of nodes and edges to new ones; built for a width d, which it keeps.

    Attributes:
        reads_edges: whether it asks for vectors of edges; where edges have no features it is given one for all.
        updates_edges: whether it also makes new vectors of edges, which the next layer shall be given.
    """

    name: ClassVar[str]
    reads_edges: ClassVar[bool] = False
    updates_edges: ClassVar[bool] = False

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
            x: of nodes.
            edges: of messages; None where the convolution does not read them.
            adjacency: the messages.
        """

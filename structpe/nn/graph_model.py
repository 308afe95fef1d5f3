"""A model of graphs: features to vectors, layers, and what is predicted of each graph or node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from structpe.data.batch import Batch, Grouping
from structpe.data.features import Features
from structpe.errors import ConfigError
from structpe.nn.features import FeatureEmbedding
from structpe.nn.layer import StackConfig
from structpe.nn.stack import Stack
from structpe.plain.bounds import LAYERS, bounded
from structpe.positions import PositionModel

__all__ = ["GraphModel", "GraphModelConfig"]


@dataclass(frozen=True)
class GraphModelConfig(StackConfig):
    """Sizes and options of a model of graphs: those of its layers (:class:`StackConfig`), and of what it predicts with.

    Args:
        pooling: how a graph is read out: ``mean`` or ``sum`` over its nodes, or its ``root``.
        head_layers: of the part that makes a prediction of a vector: 1 is a linear map, which fits best where few
            nodes or graphs are labelled.
    """

    pooling: Literal["mean", "sum", "root"] = "mean"
    head_layers: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head_layers < 1:
            raise ConfigError(f"head_layers is {self.head_layers}; it must be 1 or more")
        bounded(self, head_layers=LAYERS)


class GraphModel(nn.Module):
    """Nodes and edges with features to numbers for each graph, or each node of ``Batch.target_mask``.

    Args:
        config: sizes and options.
        position: built for ``config.dims``.
        nodes: features of nodes.
        edges: features of edges.
        outputs: how many numbers are predicted.

    Raises:
        ConfigError: nothing would ask the position model, or its attention has no use for the feature map.
    """

    def __init__(
        self, config: GraphModelConfig, position: PositionModel, nodes: Features, edges: Features, outputs: int
    ) -> None:
        super().__init__()
        self.config = config
        self.nodes = FeatureEmbedding(nodes, config.width)
        self.stack = Stack(config, position, edges, directed=True)
        hidden = [
            nn.Sequential(nn.Linear(config.width, config.width), nn.ReLU()) for _ in range(config.head_layers - 1)
        ]
        self.head = nn.Sequential(*hidden, nn.Linear(config.width, outputs))

    @property
    def position(self) -> PositionModel:
        """The position model."""
        return self.stack.position

    @property
    def grouping(self) -> Grouping:
        """How batches must be made for it."""
        return self.stack.grouping

    def forward(self, batch: Batch) -> Float[Tensor, "c o"]:
        """What is predicted of each graph, in the order of the batch, or of each node of the target mask."""
        hidden = self.hidden(batch)
        rows = self.pooled(hidden, batch) if batch.target_mask is None else hidden[batch.target_mask]
        predicted: Tensor = self.head(rows)
        return predicted

    def hidden(self, batch: Batch) -> Float[Tensor, "N d"]:
        """Vectors of all nodes after the last layer."""
        hidden: Tensor = self.stack(self.nodes(batch.x, len(batch.graph)), batch)
        return hidden

    def pooled(self, x: Float[Tensor, "N d"], batch: Batch) -> Float[Tensor, "g d"]:
        """A vector of each graph."""
        if self.config.pooling == "root":
            return x[batch.roots]
        total = x.new_zeros(len(batch.sizes), x.shape[1]).index_add(0, batch.graph, x)
        return total / batch.sizes[:, None].to(x.dtype) if self.config.pooling == "mean" else total

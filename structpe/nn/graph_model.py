"""A model of graphs: features to vectors, layers, and what is predicted of each graph or node."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from structpe.data.features import Features
from structpe.data.graphs import GraphBatch, Layout
from structpe.errors import ConfigError
from structpe.nn.convolutions import CONVOLUTIONS
from structpe.nn.features import FeatureEmbedding
from structpe.nn.graph_attention import Asking
from structpe.nn.graph_layers import GraphModelConfig, layer_of
from structpe.positions.base import PositionModel, Site

__all__ = ["GraphModel"]


class GraphModel(nn.Module):
    """Nodes and edges with features to numbers for each graph, or each counted node.

    Args:
        config: sizes and options.
        position: built for ``config.dims``.
        nodes: features of nodes.
        edges: features of edges.
        outputs: how many numbers are predicted.

    Raises:
        ConfigError: the position model would not be heard.
    """

    def __init__(
        self, config: GraphModelConfig, position: PositionModel, nodes: Features, edges: Features, outputs: int
    ) -> None:
        super().__init__()
        if position.sites and not config.attention and not position.sites & {"inputs", "layer"}:
            raise ConfigError(
                "the position model acts on attention only, and this model has none; choose one that acts on the "
                "input, or set attention to true"
            )
        self.config, self.position = config, position
        self.nodes = FeatureEmbedding(nodes, config.width)
        convolution = None if config.message_passing is None else CONVOLUTIONS[config.message_passing]
        self.edges = FeatureEmbedding(edges, config.width) if convolution and convolution.reads_edges else None
        self.against = None if self.edges is None else nn.Parameter(torch.zeros(config.width))
        self.dropout = nn.Dropout(config.input_dropout)
        self.layers = nn.ModuleList(layer_of(config, position) for _ in range(config.layers))
        self.virtual = VirtualNodes(config) if config.virtual_node else None
        self.norm = nn.LayerNorm(config.width) if config.attention and config.norm_first else nn.Identity()
        hidden = [
            nn.Sequential(nn.Linear(config.width, config.width), nn.ReLU()) for _ in range(config.head_layers - 1)
        ]
        self.head = nn.Sequential(*hidden, nn.Linear(config.width, outputs))

    @property
    def layout(self) -> Layout:
        """How batches must be made for it."""
        inside = self.config.attention and ({"terms", "sources"} & self.position.sites)
        if self.config.attention and self.position.own_attention:
            return "one"
        if not inside:
            return "beside"
        return "one" if any("BatchNorm" in type(m).__name__ for m in self.position.modules()) else "buckets"

    def forward(self, batch: GraphBatch) -> Float[Tensor, "c o"]:
        """What is predicted of each graph, in the order of the batch, or of each counted node."""
        hidden = self.hidden(batch)
        read: Tensor = self.head(hidden[batch.counted] if batch.counted is not None else self.pooled(hidden, batch))
        return read

    def hidden(self, batch: GraphBatch) -> Float[Tensor, "N d"]:
        """Vectors of all nodes after the last layer."""
        asking = Asking(self.position, batch)
        x = self.dropout(asking.inputs(self.nodes(batch.x, len(batch.graph))))
        edges = self._edges(batch)
        virtual = None if self.virtual is None else self.virtual.start(batch)
        for number, layer in enumerate(self.layers):
            site = Site(number, self.training)
            x = asking.layer(x, site)
            if self.virtual is not None and virtual is not None:
                x, virtual = self.virtual(x, virtual, batch, number)
            x, edges = layer(x, edges, batch, asking, site)
        out: Tensor = self.norm(x)
        return out

    def pooled(self, x: Float[Tensor, "N d"], batch: GraphBatch) -> Float[Tensor, "g d"]:
        """A vector of each graph."""
        if self.config.pooling == "root":
            return x[batch.roots]
        total = x.new_zeros(len(batch.sizes), x.shape[1]).index_add(0, batch.graph, x)
        return total / batch.sizes[:, None].to(x.dtype) if self.config.pooling == "mean" else total

    def _edges(self, batch: GraphBatch) -> Tensor | None:
        if self.edges is None or self.against is None:
            return None
        edges: Tensor = self.edges(batch.edge_x, len(batch.near.source))
        return edges if batch.against is None else edges + batch.against[:, None].to(edges.dtype) * self.against


class VirtualNodes(nn.Module):
    """Before each layer: x_i <- x_i + v, v' = v + MLP(v + sum_i x_i), of each graph.

    Gilmer et al. 2017, section 5.2; in the order of the code of OGB (Hu et al. 2020). Its MLP has two linear maps with
    batch normalisation; here it has one with layer normalisation, so that a batch of one graph can be trained on.

    Args:
        config: sizes and options.
    """

    def __init__(self, config: GraphModelConfig) -> None:
        super().__init__()
        width = config.width
        self.first = nn.Parameter(torch.zeros(width))
        self.updates = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU(), nn.Dropout(config.dropout))
            for _ in range(config.layers - 1)
        )

    def start(self, batch: GraphBatch) -> Float[Tensor, "g d"]:
        """The virtual nodes before the first layer."""
        return self.first.expand(len(batch.sizes), -1)

    def forward(self, x: Tensor, virtual: Tensor, batch: GraphBatch, number: int) -> tuple[Tensor, Tensor]:
        """Nodes with what the virtual ones say, and the virtual ones for the next layer."""
        x = x + virtual.index_select(0, batch.graph)
        if number == len(self.updates):
            return x, virtual
        return x, virtual + self.updates[number](virtual.index_add(0, batch.graph, x))

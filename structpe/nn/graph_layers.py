"""The layers of models of graphs: message passing beside attention, either alone, and what surrounds them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from structpe.data.graphs import GraphBatch
from structpe.errors import ConfigError
from structpe.feature_maps import PositiveFeatures, elu_plus_one
from structpe.nn.convolutions import CONVOLUTIONS
from structpe.nn.graph_attention import Asking, GraphAttention
from structpe.plain.bounds import HEADS, LAYERS, WIDTH, bounded, few_parameters
from structpe.positions.base import Dims, PositionModel, Site

__all__ = ["GraphLayer", "GraphModelConfig", "HybridLayer", "MessageLayer", "layer_of"]


@dataclass(frozen=True)
class GraphModelConfig:
    """Sizes and options of a model of graphs.

    Attention and message passing together make the hybrid layer of GPS, attention alone a Transformer, message passing
    alone a classic graph network. Normalisation, residual connections, dropout and feed-forward parts are of all of
    them: they are what a tuned baseline has (Luo et al. 2024).

    Args:
        width: d, of the hidden vectors.
        layers: how many.
        heads: of attention.
        attention: whether each node attends to all nodes of its graph.
        message_passing: convolution along the edges: gcn, gin, gine, gatedgcn, sage, gatv2, or null.
        feedforward: hidden width of the feed-forward parts; 0 for none.
        norm: ``batch``, ``layer`` or ``none``.
        norm_first: whether a part reads normalised vectors and adds to what was not (pre-norm), as Transformers for
            text do; otherwise sums are normalised, as in GPS. Of models with attention only.
        residual: whether a layer of message passing alone adds to what it was given.
        dropout: probability with which what a part adds is dropped in training.
        attention_dropout: of attention weights.
        input_dropout: of what the first layer is given.
        virtual_node: whether a node linked to all of its graph carries messages between layers (Gilmer et al. 2017).
        pooling: how a graph is read out: ``mean`` or ``sum`` over its nodes, or its ``root``.
        head_layers: of what makes a prediction of a vector: 1 is a linear map, which fits best where few are labelled.
        kernel: attention kernel, or auto.
        feature_map: what stands for the exponential of a score. ``none``: nothing does. ``elu``: elu + 1 (Katharopoulos
            et al. 2020), ``random``: 256 random features, FAVOR+ (Choromanski et al. 2021), fixed from the beginning:
            with either, attention takes time and memory linear in the number of nodes, and position models may say
            nothing of scores.
    """

    width: int = 64
    layers: int = 4
    heads: int = 4
    attention: bool = True
    message_passing: str | None = "gine"
    feedforward: int = 128
    norm: Literal["batch", "layer", "none"] = "batch"
    norm_first: bool = False
    residual: bool = True
    dropout: float = 0.0
    attention_dropout: float = 0.0
    input_dropout: float = 0.0
    virtual_node: bool = False
    pooling: Literal["mean", "sum", "root"] = "mean"
    head_layers: int = 2
    kernel: str = "auto"
    feature_map: Literal["none", "elu", "random"] = "none"

    def __post_init__(self) -> None:
        for name in ("width", "layers", "heads", "head_layers"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 1 or more")
        if self.feedforward < 0:
            raise ConfigError(f"feedforward is {self.feedforward}; give a width, or 0 for no feed-forward parts")
        bounded(self, width=WIDTH, heads=HEADS, layers=LAYERS, head_layers=LAYERS, feedforward=4 * WIDTH)
        few_parameters(self.width, self.feedforward, self.layers)
        for name in ("dropout", "attention_dropout", "input_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 0 or more and below 1")
        if self.message_passing is not None:
            CONVOLUTIONS[self.message_passing]  # raises for an unknown name
        elif not self.attention:
            raise ConfigError("a model needs attention, or message_passing, or both; this one has neither")

    @property
    def dims(self) -> Dims:
        """Sizes, for a position model."""
        return Dims(self.width, self.heads, self.layers)


class GraphLayer(nn.Module, ABC):
    """From vectors of nodes and of edges to new ones."""

    @abstractmethod
    def forward(
        self, x: Tensor, edges: Tensor | None, batch: GraphBatch, asking: Asking, site: Site
    ) -> tuple[Tensor, Tensor | None]:
        """(N, d) and (E, d) to the same.

        Args:
            x: of nodes.
            edges: of messages; None where no convolution reads them.
            batch: whose nodes these are.
            asking: the position model.
            site: which layer this is.
        """


class Messages(nn.Module):
    """A convolution; the vectors of edges that it updates are normalised, rectified and added to what they were."""

    def __init__(self, config: GraphModelConfig) -> None:
        super().__init__()
        assert config.message_passing is not None
        self.convolution = CONVOLUTIONS[config.message_passing](config.width)
        self.norm = norm_of(config) if self.convolution.updates_edges else None
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, edges: Tensor | None, batch: GraphBatch) -> tuple[Tensor, Tensor | None]:
        """What comes to the nodes (N, d), and the new vectors of edges."""
        passed, updated = self.convolution(x, edges, batch.near)
        if self.norm is None or edges is None:
            return passed, edges
        return passed, edges + self.dropout(self.norm(updated).relu())


class HybridLayer(GraphLayer):
    """y = norm(x + messages(x)) + norm(x + attention(x)), then norm(y + feedforward(y)): GPS (Rampasek et al. 2022).

    Without messages it is the layer of a Transformer. With ``norm_first``: n = norm(x), y = x + messages(n) +
    attention(n), then y + feedforward(norm(y)).

    Args:
        config: sizes and options.
        position: the position model.
    """

    def __init__(self, config: GraphModelConfig, position: PositionModel) -> None:
        super().__init__()
        self.first = config.norm_first
        self.attention = GraphAttention(
            config.dims, config.kernel, config.attention_dropout, position, feature_map_of(config, position)
        )
        self.attention_norm = norm_of(config)
        self.messages = None if config.message_passing is None else Messages(config)
        self.messages_norm = None if self.messages is None or self.first else norm_of(config)
        self.feedforward = feedforward_of(config)
        self.feedforward_norm = None if self.feedforward is None else norm_of(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, x: Tensor, edges: Tensor | None, batch: GraphBatch, asking: Asking, site: Site
    ) -> tuple[Tensor, Tensor | None]:
        read = self.attention_norm(x) if self.first else x
        y = x + self.dropout(self.attention(read, asking, site))
        y = y if self.first else self.attention_norm(y)
        if self.messages is not None:
            passed, edges = self.messages(read, edges, batch)
            passed = self.dropout(passed)
            y = y + (passed if self.messages_norm is None else self.messages_norm(x + passed))
        return _fed(y, self.feedforward, self.feedforward_norm, self.first), edges


class MessageLayer(GraphLayer):
    """y = x + relu(norm(messages(x))), then norm(y + feedforward(y)): a classic graph network (Luo et al. 2024).

    Args:
        config: sizes and options; without ``residual`` x is not added.
    """

    def __init__(self, config: GraphModelConfig) -> None:
        super().__init__()
        self.residual = config.residual
        self.messages, self.norm = Messages(config), norm_of(config)
        self.feedforward = feedforward_of(config)
        self.feedforward_norm = None if self.feedforward is None else norm_of(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, x: Tensor, edges: Tensor | None, batch: GraphBatch, asking: Asking, site: Site
    ) -> tuple[Tensor, Tensor | None]:
        passed, edges = self.messages(x, edges, batch)
        y = self.dropout(self.norm(passed).relu())
        return _fed(x + y if self.residual else y, self.feedforward, self.feedforward_norm, False), edges


def layer_of(config: GraphModelConfig, position: PositionModel) -> GraphLayer:
    """The layer that a configuration asks for."""
    return HybridLayer(config, position) if config.attention else MessageLayer(config)


def feature_map_of(config: GraphModelConfig, position: PositionModel) -> Callable[[Tensor], Tensor] | None:
    """What makes attention linear; None where nothing shall.

    Raises:
        ConfigError: the position model brings an attention of its own, which would not ask.
    """
    if config.feature_map == "none":
        return None
    if position.own_attention:
        raise ConfigError(
            f"feature_map is {config.feature_map!r}, but the position model brings an attention of its own, which has "
            f"no use for it; set feature_map to none, or choose another position model"
        )
    return elu_plus_one if config.feature_map == "elu" else PositiveFeatures(config.dims.head)


def norm_of(config: GraphModelConfig) -> nn.Module:
    """Over all nodes of the batch, over the channels of each node, or none."""
    if config.norm == "batch":
        return nn.BatchNorm1d(config.width)
    return nn.LayerNorm(config.width) if config.norm == "layer" else nn.Identity()


def feedforward_of(config: GraphModelConfig) -> nn.Module | None:
    """Linear, rectifier, linear; None where its width is 0."""
    if not config.feedforward:
        return None
    return nn.Sequential(
        nn.Linear(config.width, config.feedforward),
        nn.ReLU(),
        nn.Dropout(config.dropout),
        nn.Linear(config.feedforward, config.width),
        nn.Dropout(config.dropout),
    )


def _fed(x: Tensor, feedforward: nn.Module | None, norm: nn.Module | None, first: bool) -> Tensor:
    if feedforward is None or norm is None:
        return x
    out: Tensor = x + feedforward(norm(x)) if first else norm(x + feedforward(x))
    return out

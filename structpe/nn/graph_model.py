"""A model of graphs: features to vectors, layers, and what is predicted of graphs, nodes or pairs of nodes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from structpe.data.batch import Batch, Grouping
from structpe.data.features import Features
from structpe.dropout import Dropout
from structpe.errors import ConfigError
from structpe.nn.features import FeatureEmbedding
from structpe.nn.layer import StackConfig, activation_of
from structpe.nn.readouts import READOUTS, Readout, readout_of
from structpe.nn.stack import Stack
from structpe.plain.bounds import LAYERS, bounded
from structpe.plain.inert import Inert, refuse_inert
from structpe.positions import PositionModel
from structpe.positions.build import Config

__all__ = ["GraphModel", "GraphModelConfig"]


@dataclass(frozen=True)
class GraphModelConfig(StackConfig):
    """Sizes and options of a model of graphs: those of its layers (:class:`StackConfig`), and of what it predicts with.

    Args:
        readout: what predictions are made of, a name of ``READOUTS``, such as sum or root of graphs, complex of pairs
            of nodes; null for the mean of graphs, the vectors of nodes, distmult of pairs.
        head_layers: linear maps of the head, which makes predictions of vectors, with ``activation`` between them; 1
            fits best where few nodes or graphs are labelled.
        head_dropout: dropout probability before each linear map of the head; unused by readouts without a head.

    Raises:
        ConfigError: as :class:`StackConfig`; the readout is unknown; a number of the head is out of range.
    """

    readout: str | None = None
    head_layers: int = 2
    head_dropout: float = 0.0

    @property
    def activates(self) -> bool:
        headed = self.readout is None or self.readout not in READOUTS or READOUTS[self.readout].head
        return self.layers_activate or (headed and self.head_layers > 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head_layers < 1:
            raise ConfigError(f"head_layers is {self.head_layers}; it must be 1 or more")
        bounded(self, head_layers=LAYERS)
        if not 0 <= self.head_dropout < 1:
            raise ConfigError(f"head_dropout is {self.head_dropout}; it must be 0 or more and below 1")
        if self.readout is not None:
            self.check_readout(READOUTS[self.readout])  # raises for an unknown name

    def check_readout(self, readout: type[Readout]) -> None:
        """Check that nothing is set that acts in the head only, where a readout has none.

        Raises:
            ConfigError: it is.
        """
        if not readout.head:
            why = f"the readout {readout.name!r} has no head"
            names = ("head_layers", "head_dropout", *(() if self.layers_activate else ("activation",)))
            refuse_inert(self, also=[Inert(names, why)])


class GraphModel(nn.Module):
    """Nodes and edges with features to numbers for each graph, node or pair of nodes.

    Args:
        config: sizes and options.
        position: built for ``config.dims``.
        nodes: features of nodes.
        edges: features of edges.
        outputs: how many numbers are predicted; of pairs, how many relations there are.
        level: what is predicted: ``graph``, ``node`` or ``pair``; None takes that of the readout.

    Raises:
        ConfigError: nothing would ask the position model, its attention has no use for the feature map, or the readout
            is of another level.
    """

    def __init__(
        self,
        config: GraphModelConfig,
        position: PositionModel | Config,
        nodes: Features,
        edges: Features,
        outputs: int,
        level: str | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.nodes = FeatureEmbedding(nodes, config.width)
        self.stack = Stack(config, position, edges, directed=True)
        readout = readout_of(config.readout, level)
        config.check_readout(readout)
        self.readout = readout(config.width, outputs)
        self.dropout = Dropout(config.head_dropout if self.readout.head else 0.0)
        self.head = _head(config, outputs) if self.readout.head else nn.Identity()

    def start_at(self, predicted: Float[Tensor, "o"]) -> None:
        """Let what is predicted be near these numbers before training, by the bias of the last linear map.

        Numbers of another scale, such as energies, would otherwise take thousands of steps to be reached.
        """
        last = self.head[-1] if isinstance(self.head, nn.Sequential) else self.head
        if isinstance(last, nn.Linear):
            with torch.no_grad():
                last.bias.copy_(predicted)

    @property
    def position(self) -> PositionModel:
        """The position model."""
        return self.stack.position

    @property
    def grouping(self) -> Grouping:
        """How batches must be made for it."""
        return self.stack.grouping

    def forward(self, batch: Batch) -> Float[Tensor, "c o"]:
        """What is predicted: of each graph in the order of the batch, of each node of the mask, of each query."""
        predicted: Tensor = self.head(self.dropout(self.readout(self.hidden(batch), batch)))
        return predicted

    def hidden(self, batch: Batch) -> Float[Tensor, "N d"]:
        """Vectors of all nodes after the last layer."""
        hidden: Tensor = self.stack(self.nodes(batch.x, len(batch.graph)), batch)
        return hidden


def _head(config: GraphModelConfig, outputs: int) -> nn.Module:
    return nn.Sequential(*(_hidden(config) for _ in range(config.head_layers - 1)), nn.Linear(config.width, outputs))


def _hidden(config: GraphModelConfig) -> nn.Module:
    linear = nn.Linear(config.width, config.width)
    return nn.Sequential(linear, activation_of(config.activation), Dropout(config.head_dropout))

"""A model of graphs: features to vectors, layers, and predictions for graphs, nodes or pairs of nodes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from structpe.data.batch import Batch, Grouping
from structpe.data.features import Features
from structpe.dropout import Dropout
from structpe.nn.layer import StackConfig, activation_of
from structpe.nn.readouts import READOUTS, Readout, readout_of
from structpe.nn.stack import FeatureEmbedding, Stack
from structpe.plain.options import LAYERS, Inert, bounded, check_shares, refuse_inert
from structpe.positions import PositionModel
from structpe.positions.build import Config

__all__ = ["GraphModel", "GraphModelConfig"]


@dataclass(frozen=True)
class GraphModelConfig(StackConfig):
    """Sizes and options of a model of graphs: those of its layers (:class:`StackConfig`), its readout and its head.

    Args:
        readout: a name of ``READOUTS``, such as sum or root for graphs, complex for pairs of nodes; null for the mean
            of a graph, the vectors of nodes, and distmult for pairs.
        head_layers: number of linear maps of the head, which turns vectors into predictions, with ``activation``
            between them; 1 is best if few nodes or graphs are labelled.
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
        bounded(self, head_layers=(1, LAYERS))
        check_shares(self, "", "head_dropout")
        if self.readout is not None:
            self.check_readout(READOUTS[self.readout])  # raises for an unknown name

    def check_readout(self, readout: type[Readout]) -> None:
        """Check that no option of the head is set if the readout has none.

        Raises:
            ConfigError: one is set.
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
        outputs: number of predicted numbers; for pairs, number of relations.
        level: level of the predictions: ``graph``, ``node`` or ``pair``; None takes that of the readout.

    Raises:
        ConfigError: the position model would have no effect, its attention cannot have a feature map, or the readout
            has another level.
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

    def start_at(self, predicted: Float[Tensor, " o"]) -> None:
        """Set the bias of the last linear map to these numbers, which are then predicted before training.

        Without it, reaching numbers of another scale, such as energies, would take thousands of steps.
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
        """The grouping of its batches."""
        return self.stack.grouping

    def forward(self, batch: Batch) -> Float[Tensor, "c o"]:
        """Predictions for each graph in the order of the batch, each node of the mask, or each query."""
        predicted: Tensor = self.head(self.dropout(self.readout(self.hidden(batch), batch)))
        return predicted

    def hidden(self, batch: Batch) -> Float[Tensor, "N d"]:
        """Vectors of all nodes after the last layer."""
        hidden: Tensor = self.stack(self.nodes(batch.x, len(batch.graph)), batch)
        return hidden


def _head(config: GraphModelConfig, outputs: int) -> nn.Module:
    width, activation = config.width, config.activation
    hidden = (
        nn.Sequential(nn.Linear(width, width), activation_of(activation), Dropout(config.head_dropout))
        for _ in range(config.head_layers - 1)
    )
    return nn.Sequential(*hidden, nn.Linear(width, outputs))

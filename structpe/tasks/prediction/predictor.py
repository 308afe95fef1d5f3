"""A trained model of graphs, ready for graphs that it has not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from structpe.data.batch import Example
from structpe.errors import ConfigError, StructPEError
from structpe.nn.graph_model import GraphModel
from structpe.structure import Structure
from structpe.tasks.forms import listed
from structpe.tasks.prediction.quadratic import MOST, quadratic
from structpe.tasks.prediction.signature import Signature
from structpe.tasks.prediction.task import Structures, by_room

__all__ = ["Predictions", "Predictor"]


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model predicts of c graphs or nodes, in the order of the graphs.

    Attributes:
        graph: (c,) number of the graph of each row.
        node: (c,) number of the node in its graph; None if graphs are predicted.
        scores: (c, k) what the model gives, before any softmax or sigmoid.
        columns: by name, (c,) what it means: numbers of a regression, probabilities of labels, the class and the
            probabilities of all classes.
    """

    graph: Int[np.ndarray, "c"]
    node: Int[np.ndarray, "c"] | None
    scores: Float[np.ndarray, "c k"]
    columns: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.graph)

    def table(self, ids: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
        """All columns, as ``pandas.DataFrame`` takes them: ``id``, ``node`` where nodes are predicted, predictions.

        Args:
            ids: of the graphs; by default their numbers.

        Raises:
            ConfigError: there are more or fewer ids than graphs.
        """
        graphs = int(self.graph[-1]) + 1
        given: Any = ids
        if ids is not None and (not isinstance(given, Sized) or len(given) != graphs):
            raise ConfigError(f"ids are {ids!r:.80}; give one for each of {graphs} graphs, or None for their numbers")
        rows = {"id": self.graph if ids is None else np.asarray(ids, dtype=object)[self.graph]}
        if self.node is not None:
            rows["node"] = self.node
        return rows | {f"predicted {name}" if name in rows else name: each for name, each in self.columns.items()}


class Predictor:
    """A trained model of graphs; :func:`structpe.load` makes one of the folder of a run.

    Args:
        model: in evaluation mode, on the device.
        signature: what it reads and predicts.
        device: where it is.

    Raises:
        ConfigError: the model predicts pairs of nodes of the graph that it learned from.
    """

    def __init__(self, model: GraphModel, signature: Signature, device: torch.device) -> None:
        if signature.objective.level == "pair":
            raise ConfigError(
                "the model predicts pairs of nodes of the graph that it has learned from, and of no other; give a run "
                "that predicts graphs or nodes"
            )
        self.model, self.signature, self.device = model, signature, device

    def predict(self, graphs: Structure | Sequence[Structure]) -> Predictions:
        """Predict graphs, or each of their nodes. What is said of a graph does not depend on the others.

        Args:
            graphs: one or more, with the features ``x`` and ``edge_x`` that the model reads. :func:`structpe.read`
                reads files, :func:`structpe.as_structure` converts objects of other libraries.

        Raises:
            ConfigError: there is no graph, something is not one, one lacks features, or one is too large for a model
                that looks at all pairs.
            EncodingError: a graph lacks what an encoding needs.
            StructPEError: a prediction is not finite.
        """
        given = listed(
            graphs,
            (Structure,),
            wrong="predict takes structures",
            hint="structpe.as_structure makes one of what other libraries hold, item.structure is that of an item that "
            "was read",
            none="there is no graph to predict; give one or more",
        )
        self._check(given)
        examples = self._examples(given)
        parts = [self._predict(examples, numbers) for numbers in by_room([e.size for e in examples], Structures.room)]
        graph = np.concatenate([numbers for numbers, _ in parts])
        order = np.argsort(graph, kind="stable")
        graph, scores = graph[order], torch.cat([scores for _, scores in parts])[torch.from_numpy(order)]
        if not scores.isfinite().all():
            raise StructPEError("the model predicts numbers that are not finite: its training has diverged")
        node = np.concatenate([np.arange(each.size) for each in given]) if self._of_nodes else None
        columns = self.signature.objective.columns(scores, self.signature.names)
        return Predictions(graph, node, scores.numpy(), columns)

    @property
    def _of_nodes(self) -> bool:
        return self.signature.objective.level == "node"

    def _check(self, graphs: Sequence[Structure]) -> None:
        self.signature.check(graphs)
        largest = max(graphs, key=lambda graph: graph.size)
        if largest.size > MOST and quadratic(self.model):
            raise ConfigError(
                f"{largest.name or 'a graph'} has {largest.size} nodes, and the model looks at all pairs of nodes, of "
                f"{MOST} at most; predict smaller graphs, or train a model without attention among all nodes"
            )

    def _examples(self, graphs: Sequence[Structure]) -> list[Example]:
        nodes = [replace(graph, units=None, owner=None) if graph.owner is not None else graph for graph in graphs]
        encoded = {encoding: encoding.many(nodes) for encoding in dict.fromkeys(self.model.position.encodings)}
        each = (Example.of(node, {e: values[i] for e, values in encoded.items()}) for i, node in enumerate(nodes))
        return [self._read(example) for example in each]

    def _read(self, example: Example) -> Example:
        """The example with the features that the model reads."""
        x = None if self.signature.nodes is None else example.x
        return replace(example, x=x, edge_x=None if self.signature.edges is None else example.edge_x)

    @torch.no_grad()
    def _predict(self, examples: Sequence[Example], numbers: Sequence[int]) -> tuple[NDArray[np.int64], Tensor]:
        """The graph of each row, and the row."""
        batch = Structures(self.model.grouping, self.device.type)([examples[i] for i in numbers]).to(self.device)
        scores = self.model(batch).float().cpu()
        of = batch.order[batch.graph] if self._of_nodes else batch.order
        return np.asarray(numbers)[of.cpu().numpy()], scores

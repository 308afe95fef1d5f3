"""A trained model of graphs, which predicts new graphs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from structpe.data.batch import Example
from structpe.data.features import Categories, Features, Numbers
from structpe.datasets import Benchmark
from structpe.datasets.own import READ, targets_of, with_rows
from structpe.errors import ConfigError, StructPEError, located, undamaged
from structpe.formats import as_items
from structpe.nn.graph_model import GraphModel
from structpe.objectives import METRICS, OBJECTIVES, Objective
from structpe.plain import read_json
from structpe.structure import Structure
from structpe.system.files import atomic_text
from structpe.tasks.prediction.encodings import MOST, quadratic
from structpe.tasks.prediction.task import Structures, by_room

__all__ = ["Predictions", "Predictor", "Signature"]


REMEDY = "train afresh"


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a model.

    Attributes:
        nodes: kind of the features ``x`` of nodes.
        edges: kind of the features ``edge_x`` of edges.
        objective: the objective.
        names: names of the predicted labels, numbers or classes.
        reader: name of the reader whose graphs have these features; empty without one.
        options: options of the reader.
    """

    nodes: Features
    edges: Features
    objective: Objective
    names: tuple[str, ...]
    reader: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, benchmark: Benchmark) -> Self:
        """The signature of a model of a benchmark. Outputs without names are called ``prediction`` or numbered."""
        outputs = benchmark.objective.outputs
        names = benchmark.names or (("prediction",) if outputs == 1 else tuple(map(str, range(outputs))))
        return cls(benchmark.nodes, benchmark.edges, benchmark.objective, names, benchmark.reader, benchmark.options)

    def save(self, file: Path) -> None:
        """Write the signature as JSON."""
        made = {each.name: getattr(self.objective, each.name) for each in fields(self.objective) if each.init}
        plain = {
            "nodes": None if self.nodes is None else asdict(self.nodes),
            "edges": None if self.edges is None else asdict(self.edges),
            "objective": {"name": self.objective.name, **made},
            "names": self.names,
            "reader": self.reader,
            "options": dict(self.options),
        }
        atomic_text(file, json.dumps(plain, indent=2, ensure_ascii=False))

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read what :meth:`save` wrote.

        Raises:
            StoreError: the file is missing or damaged.
        """
        with undamaged(file, REMEDY):
            plain = read_json(file, REMEDY)
            objective = dict(plain["objective"])
            return cls(
                _features(plain["nodes"]),
                _features(plain["edges"]),
                OBJECTIVES[objective.pop("name")](**objective),
                tuple(plain["names"]),
                plain["reader"],
                plain["options"],
            )

    def check(self, graphs: Sequence[Structure]) -> None:
        """Check that graphs have the features that the model reads; other features are ignored.

        Raises:
            ConfigError: features are missing, or of another kind.
        """
        for number, graph in enumerate(graphs):
            with located(graph.name or f"graph {number}"):
                self._check("nodes", "x", self.nodes, graph)
                self._check("edges", "edge_x", self.edges, graph)

    def _check(self, what: str, key: str, features: Features, graph: Structure) -> None:
        if features is None:
            return
        values = graph.features.get(key)
        if values is None:
            options = ", ".join(f"{name}={value}" for name, value in self.options.items()) or "no options"
            how = f"the reader {self.reader!r} with {options}" if self.reader else "your own code"
            raise ConfigError(
                f"the model reads {features.columns} numbers of each of the {what}, and the graph has no features "
                f"{key!r}; let {how} make them as for the training data"
            )
        features.check(np.asarray(values), f"features {key!r} of {what}")


def _features(plain: Mapping[str, Any] | None) -> Features:
    if plain is None:
        return None
    return Categories(tuple(plain["sizes"])) if "sizes" in plain else Numbers(plain["columns"])


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions for c graphs or nodes, in the order of the graphs.

    Attributes:
        graph: (c,) number of the graph of each row.
        node: (c,) number of the node in its graph; None if graphs are predicted.
        scores: (c, k) outputs of the model, before any softmax or sigmoid.
        columns: (c,) predictions by name: numbers of a regression, probabilities of labels, or the class and the
            probabilities of all classes.
    """

    graph: Int[np.ndarray, " c"]
    node: Int[np.ndarray, " c"] | None
    scores: Float[np.ndarray, "c k"]
    columns: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.graph)

    def table(self, ids: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
        """All columns, for ``pandas.DataFrame``: ``id``, ``node`` if nodes are predicted, and the predictions.

        Args:
            ids: ids of the graphs; by default their numbers.

        Raises:
            ConfigError: the number of ids is not that of the graphs.
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
    """A trained model of graphs; :func:`structpe.load` makes one from the folder of a run.

    Args:
        model: the model, in evaluation mode and on the device.
        signature: inputs and outputs of the model.
        device: the device.
        targets: names of the metadata with the targets; by default those of the outputs.

    Raises:
        ConfigError: the model predicts pairs of nodes, which it can do only for the graph of its training.
    """

    def __init__(
        self, model: GraphModel, signature: Signature, device: torch.device, targets: Sequence[str] = ()
    ) -> None:
        if signature.objective.level == "pair":
            raise ConfigError(
                "the model predicts pairs of nodes of the graph that it has learned from, and of no other; give a run "
                "that predicts graphs or nodes"
            )
        self.model, self.signature, self.device = model, signature, device
        self.targets = tuple(targets) or signature.names

    def predict(self, graphs: Any) -> Predictions:
        """Predict graphs, or each of their nodes. The predictions for a graph do not depend on the others.

        Args:
            graphs: one or more structures, items, or what :func:`structpe.formats.as_item` makes items of, with the
                features ``x`` and ``edge_x`` that the model reads.

        Raises:
            ReadError: there is no graph, or an object is not a graph.
            ConfigError: features are missing, or a graph is too large for a model of all pairs.
            EncodingError: a graph lacks what an encoding needs.
            StructPEError: a prediction is not finite.
        """
        given = [with_rows(item.structure) for item in as_items(graphs)]
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

    def evaluate(self, graphs: Any) -> tuple[dict[str, float], Predictions]:
        """Predict graphs, and score the predictions: the metrics of a split that a run reports.

        Args:
            graphs: as of :meth:`predict`, with their targets in the metadata.

        Raises:
            ConfigError: an item has no target, or each node has one, which are features; or as of :meth:`predict`.
            ReadError: a target does not fit the objective; or as of :meth:`predict`.
        """
        objective = self.signature.objective
        if self._of_nodes or objective.name not in READ:
            what = "nodes" if self._of_nodes else f"what the objective {objective.name!r} needs"
            raise ConfigError(
                f"the model predicts {what}, and targets of items are numbers or a class of each graph; score it on a "
                f"split of its own data: structpe evaluate RUN --split test"
            )
        items = as_items(graphs)
        targets = targets_of(items, self.targets, objective.name, self.signature.names)
        found = self.predict(items)
        answers = objective.answer(torch.from_numpy(found.scores), torch.from_numpy(targets)).numpy()
        return {name: METRICS[name].of(answers, targets) for name in objective.reported}, found

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
        reads_x, reads_edge_x = self.signature.nodes is not None, self.signature.edges is not None
        return [replace(e, x=e.x if reads_x else None, edge_x=e.edge_x if reads_edge_x else None) for e in each]

    @torch.no_grad()
    def _predict(self, examples: Sequence[Example], numbers: Sequence[int]) -> tuple[NDArray[np.int64], Tensor]:
        """The number of the graph of each row, and the rows."""
        batch = Structures(self.model.grouping, self.device.type)([examples[i] for i in numbers]).to(self.device)
        scores = self.model(batch).float().cpu()
        of = batch.order[batch.graph] if self._of_nodes else batch.order
        return np.asarray(numbers)[of.cpu().numpy()], scores

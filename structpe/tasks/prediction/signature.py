"""What a model of graphs reads and predicts: what is needed, besides its weights, to use it without its data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from structpe.data.features import Categories, Features, Numbers
from structpe.datasets import Benchmark
from structpe.errors import ConfigError, located, undamaged
from structpe.files import atomic_text
from structpe.objectives import OBJECTIVES, Objective
from structpe.plain import read_json
from structpe.structure import Structure

__all__ = ["Signature"]

REMEDY = "train afresh"


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs of a model.

    Attributes:
        nodes: kind of the features ``x`` of nodes.
        edges: kind of the features ``edge_x`` of edges.
        objective: what is predicted.
        names: of the labels, numbers or classes that are predicted.
        reader: the reader that gives graphs these features, from a file; empty where there is none.
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
        """That of a model of a benchmark. What has no name is called ``prediction``, or has its number as name."""
        outputs = benchmark.objective.outputs
        names = benchmark.names or (("prediction",) if outputs == 1 else tuple(map(str, range(outputs))))
        return cls(benchmark.nodes, benchmark.edges, benchmark.objective, names, benchmark.reader, benchmark.options)

    def save(self, file: Path) -> None:
        """Write it as JSON."""
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
        """Check that graphs have the features that the model reads. Further ones are ignored.

        Raises:
            ConfigError: a graph lacks features, or they are of another kind.
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
            how = f"the reader {self.reader!r} with {_said(self.options)}" if self.reader else "your own code"
            raise ConfigError(
                f"the model reads {features.columns} numbers of each of the {what}, and the graph has no features "
                f"{key!r}; let {how} make them as for the training data"
            )
        features.check(np.asarray(values), f"features {key!r} of {what}")


def _features(plain: Mapping[str, Any] | None) -> Features:
    if plain is None:
        return None
    return Categories(tuple(plain["sizes"])) if "sizes" in plain else Numbers(plain["columns"])


def _said(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items()) or "no options"

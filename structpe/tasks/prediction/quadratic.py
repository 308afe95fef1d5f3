"""Whether a model looks at all pairs of nodes, and of how many nodes it may."""

from __future__ import annotations

from structpe.datasets import Benchmark
from structpe.nn.graph_model import GraphModel
from structpe.positions import PositionModel, Sum
from structpe.tasks.prediction.config import PredictionConfig

__all__ = ["MOST", "check_pairs", "most_nodes", "quadratic"]

MOST = 20_000
"""Nodes whose pairs may all be looked at, at most: a number for each pair takes 1.6 GB then, for each head."""


def most_nodes(model: GraphModel, size: int) -> int:
    """How many nodes of a graph of this size a batch may have."""
    return MOST if quadratic(model) else size


def quadratic(model: GraphModel) -> bool:
    """Whether the model looks at all pairs of nodes: time and memory then grow with the square of their number."""
    return _attends_to_all(model) or any(e.arity == 2 and not e.sparse for e in model.position.encodings)


def _attends_to_all(model: GraphModel) -> bool:
    config, position = model.config, model.position
    if not config.attention:
        return False
    if position.own_attention or config.kernel not in ("auto", "edges", "linear"):
        return True
    return config.feature_map == "none" and not all(_lists(position, layer) for layer in range(config.layers))


def _lists(position: PositionModel, layer: int) -> bool:
    """Whether a position model lists the pairs that attend in a layer."""
    if isinstance(position, Sum):
        return any(_lists(each, own) for each, own in position.acting(layer))
    return any(encoding.sparse for encoding in position.encodings)


def check_pairs(config: PredictionConfig, benchmark: Benchmark, model: GraphModel) -> None:
    """Check that no piece whose pairs are all looked at is too large, before anything is computed.

    Raises:
        ConfigError: the model looks at all pairs of too many nodes.
    """
    n, kind, parts = benchmark.graphs[0].size, config.sampling.kind, config.sampling.parts
    if n <= MOST or not quadratic(model):
        return
    who = "attention looks" if _attends_to_all(model) else "an encoding of the position model looks"
    if kind == "partition":
        together = -(-n // parts) * config.training.batch_size
        if together > MOST:
            raise benchmark.error(
                f"{config.training.batch_size} of {parts} parts are some {together} nodes, and {who} at all pairs of "
                f"them, {MOST} nodes at most; raise sampling.parts, or lower training.batch_size, the parts of a step"
            )
        return
    raise benchmark.error(
        f"the graph has {n} nodes, and {who} at all pairs of nodes, of {MOST} nodes at most. Set sampling.kind to "
        f"partition; or make attention linear (model.feature_map: elu), let a position model list the pairs that "
        f"attend (exphormer, dwivedi-neighbours), or leave attention out (model.attention: false)"
    )

"""The encodings of a benchmark, computed once and stored for all runs of a study; and limits on its size."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from structpe.data import store
from structpe.data.chunks import parts
from structpe.datasets import Benchmark
from structpe.encodings.base import Encoded, Encoding
from structpe.errors import undamaged
from structpe.nn.graph_model import GraphModel
from structpe.positions import PositionModel, Sum
from structpe.structure import Structure
from structpe.system.files import atomic_text, sweep
from structpe.system.workers import workers
from structpe.tasks.prediction.config import PredictionConfig

__all__ = ["MOST", "Encodings", "check_pairs", "encode", "most_nodes", "quadratic"]


@dataclass(frozen=True, eq=False)
class Encodings:
    """The encodings of the graphs of a benchmark.

    Attributes:
        values: for each encoding, its values for each graph.
        seconds: the time it took to compute them.
    """

    values: Mapping[Encoding, Sequence[Encoded]]
    seconds: float

    def of(self, graph: int) -> Mapping[Encoding, Encoded]:
        """The encodings of one graph; stored values are read on access."""
        return _Row(self.values, graph)


class _Row(Mapping[Encoding, Encoded]):
    """The encodings of one graph, which holds only its number: a list of these is small."""

    __slots__ = ("graph", "values_of")

    def __init__(self, values_of: Mapping[Encoding, Sequence[Encoded]], graph: int) -> None:
        self.values_of, self.graph = values_of, graph

    def __getitem__(self, encoding: Encoding) -> Encoded:
        return self.values_of[encoding][self.graph]

    def __iter__(self) -> Iterator[Encoding]:
        return iter(self.values_of)

    def __len__(self) -> int:
        return len(self.values_of)


def encode(graphs: Sequence[Structure], encodings: Sequence[Encoding], folder: Path, jobs: int = 1) -> Encodings:
    """Encode graphs, or open the stores of an earlier run.

    Each encoding has its own store, named after the encoding and a digest of the graphs. One run computes it while
    others wait. The store of a process that was killed is completed.

    Args:
        graphs: the graphs of a benchmark.
        encodings: fitted, if they need to be.
        folder: folder of the stores.
        jobs: number of processes that encode; the stores do not depend on it. With several, runs that share the folder
            encode one after another: together they start no more processes.

    Raises:
        EncodingError: a graph lacks what an encoding needs.
        StoreError: a store is damaged.
    """
    content = store.fingerprint(graphs)
    values, seconds = {}, 0.0
    for encoding in dict.fromkeys(encodings):
        digest = store.key(content, encoding)[:16]
        stored, took = _stored(folder / f"{encoding.name}-{digest}", graphs, encoding, jobs)
        values[encoding] = stored.of(encoding)
        seconds += took
    return Encodings(values, seconds)


def _stored(path: Path, graphs: Sequence[Structure], encoding: Encoding, jobs: int) -> tuple[store.Store, float]:
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    clock = path.with_name(f"{path.name}.seconds.json")
    with FileLock(path.with_name(f"{path.name}.lock")):
        if not path.exists():
            # The time of a process that was killed counts only if its unfinished store is still there.
            before = _seconds(clock) if path.with_name(f"{path.name}.tmp").exists() else 0.0
            began = 0.0

            def progress(done: int) -> None:
                del done
                atomic_text(clock, json.dumps(before + time.perf_counter() - began))

            with _several(path.parent, graphs, jobs) as executor:
                began = time.perf_counter()  # waiting for others is not encoding
                store.write(path, graphs, [encoding], progress, executor=executor)
        sweep(path, clock)
    return store.load(path, [encoding]), _seconds(clock)


@contextmanager
def _several(folder: Path, graphs: Sequence[Structure], jobs: int) -> Iterator[Executor | None]:
    """An executor, if there are several processes and enough graphs for them."""
    from filelock import FileLock

    count = min(jobs, sum(1 for _ in parts(graphs))) if jobs > 1 else 1
    with FileLock(folder / "encoding.lock") if count > 1 else nullcontext(), workers(count) as executor:
        yield executor


def _seconds(clock: Path) -> float:
    if not clock.exists():
        return 0.0
    with undamaged(clock, "remove it; how long encoding took is then not known"):
        return float(json.loads(clock.read_text(encoding="utf-8")))


MOST = 20_000
"""Largest number of nodes for a model of all pairs; a number per pair then takes 1.6 GB per head."""


def most_nodes(model: GraphModel, size: int) -> int:
    """Largest number of nodes in a batch of a graph of this size."""
    return MOST if quadratic(model) else size


def quadratic(model: GraphModel) -> bool:
    """Whether the model uses all pairs of nodes: its time and memory are then quadratic."""
    return _attends_to_all(model) or any(e.arity == 2 and not e.sparse for e in model.position.encodings)


def _attends_to_all(model: GraphModel) -> bool:
    config, position = model.config, model.position
    if not config.attention:
        return False
    if position.own_attention or config.attention.kernel not in ("auto", "edges", "linear"):
        return True
    return config.attention.feature_map == "none" and not all(_lists(position, layer) for layer in range(config.layers))


def _lists(position: PositionModel, layer: int) -> bool:
    """Whether a position model restricts attention in a layer to listed pairs."""
    if isinstance(position, Sum):
        return any(_lists(each, own) for each, own in position.acting(layer))
    return any(encoding.sparse for encoding in position.encodings)


def check_pairs(config: PredictionConfig, benchmark: Benchmark, model: GraphModel) -> None:
    """Check the number of nodes per step of a model of all pairs, before anything is computed.

    Raises:
        ConfigError: there are too many nodes.
    """
    n, parts = benchmark.graphs[0].size, config.sampling.parts
    if n <= MOST or not quadratic(model):
        return
    who = "attention looks" if _attends_to_all(model) else "an encoding of the position model looks"
    if parts is not None:
        together = -(-n // parts) * config.training.batch_size
        if together > MOST:
            raise benchmark.error(
                f"{config.training.batch_size} of {parts} parts are some {together} nodes, and {who} at all pairs of "
                f"them, {MOST} nodes at most; raise sampling.parts, or lower training.batch_size, the parts of a step"
            )
        return
    raise benchmark.error(
        f"the graph has {n} nodes, and {who} at all pairs of nodes, of {MOST} nodes at most. Set sampling.parts, "
        f"such as 64; or make attention linear (model.attention.feature_map: elu), let a position model list the pairs "
        f"that attend (exphormer, dwivedi-neighbours), or leave attention out (model.attention: null)"
    )

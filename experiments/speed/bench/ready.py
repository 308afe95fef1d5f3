"""The last table: from structures to a batch, beside PyG, whose graphs are there before the clock starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from peers import pyg_data
from samples import batches, sample
from tables import Row, Table, number
from torch_geometric.data import Batch as Joined
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE
from turns import medians

from structpe.adapters.pyg import AddEncoding
from structpe.data.batch import Batch, Example, collate
from structpe.encodings import Encoding, UndirectedDistance
from structpe.encodings.compiled import slow
from structpe.structure import Structure

__all__ = ["TABLE"]

Ways = tuple[str, Callable[[], object], Callable[[], object]]
"""What the peer does, ours and theirs."""
ENCODINGS: tuple[Encoding, ...] = (UndirectedDistance(),)


def _batch(structures: Sequence[Structure]) -> Ways:
    """Ours has distances."""
    each = list(batches(structures))
    theirs = [[pyg_data(structure) for structure in some] for some in each]
    return (
        "Batch.from_data_list, no encoding",
        lambda: [Batch.of(some, ENCODINGS) for some in each],
        lambda: [Joined.from_data_list(some) for some in theirs],
    )


def _collate(structures: Sequence[Structure]) -> Ways:
    """Of what was encoded before."""
    column = ENCODINGS[0].many(structures)
    examples = [Example.of(s, {ENCODINGS[0]: column[i]}) for i, s in enumerate(structures)]
    theirs = [[pyg_data(structure) for structure in some] for some in batches(structures)]
    first = range(0, len(examples), len(theirs[0]))
    each = [examples[i : i + len(theirs[0])] for i in first]
    return (
        "Batch.from_data_list, no encoding",
        lambda: [collate(some) for some in each],
        lambda: [Joined.from_data_list(some) for some in theirs],
    )


def _one_by_one(
    name: str, encoding: Mapping[str, object], peer: Callable[[object], object], structures: Sequence[Structure]
) -> Ways:
    """A transform of PyG's graphs, ours and theirs."""
    data, ours = [pyg_data(structure) for structure in structures], AddEncoding(dict(encoding))
    return (
        name,
        lambda: [ours(each.clone()) for each in data],
        lambda: [peer(each.clone()) for each in data],
    )


WALKS: Mapping[str, object] = {"name": "random-walk", "steps": 16}
VECTORS: Mapping[str, object] = {"name": "laplacian", "k": 8}
JOBS: Mapping[str, Callable[[Sequence[Structure]], Ways]] = {
    "batch-of": _batch,
    "batch-collate": _collate,
    "add-encoding-random-walk": partial(_one_by_one, "AddRandomWalkPE", WALKS, AddRandomWalkPE(16)),
    "add-encoding-laplacian": partial(
        _one_by_one,
        "AddLaplacianEigenvectorPE, is_undirected=True",
        VECTORS,
        AddLaplacianEigenvectorPE(8, is_undirected=True),
    ),
}
SAMPLES = ("larger molecules", "larger AMR graphs")


def _measure(name: str, graphs: str, rounds: int) -> Iterator[Sequence[str]]:
    """A line: microseconds a graph."""
    peer, ours, theirs = JOBS[name](sample(graphs))

    def without() -> None:
        with slow():
            ours()

    for run in (ours, without, theirs):
        run()
    took = medians({"ours": ours, "without": without, "theirs": theirs}, rounds)
    times = [number(each / len(sample(graphs)) * 1e6) for each in took.values()]
    yield [name, graphs, peer, *times, *(number(took["theirs"] / took[way]) for way in ("ours", "without"))]


TABLE = Table(
    "batches",
    "From structures to a batch",
    (
        *("what", "graphs", "PyG's", "structpe, µs each", "without numba, µs each", "PyG, µs each"),
        *("PyG / structpe", "PyG / without numba"),
    ),
    [Row(name, graphs, partial(_measure, name, graphs)) for name in JOBS for graphs in SAMPLES],
    rounds=5,
)

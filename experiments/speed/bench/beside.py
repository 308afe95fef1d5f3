"""The first table: encodings compared with other libraries that compute the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from distances import DISTANCES
from paths import PATHS
from peers import installed
from quantities import FLAT, OURS, PADDED, WITHOUT, Quantity
from samples import batches, sample
from spectra import SPECTRA
from tables import Row, Table, number
from trees import TREES
from turns import check, medians
from walks import WALKS

__all__ = ["TABLE"]

QUANTITIES = (*DISTANCES, *PATHS, *SPECTRA, *WALKS, *TREES)


def _measure(quantity: Quantity, graphs: str, rounds: int) -> Iterator[Sequence[str]]:
    """A line for each other library, in milliseconds a batch.

    Raises:
        Disagreement: one computes something else.
    """
    ways = quantity.ways(graphs, installed())
    check(f"{quantity.encoding.name} of {graphs}", ways, quantity.close)
    theirs: dict[str, Callable[[], object]] = {name: way.run for name, way in ways.items() if name != OURS}
    count = len(list(batches(sample(graphs))))
    took = {way: each / count for way, each in medians(quantity.ends(graphs) | theirs, rounds).items()}
    ours = [took[way] for way in (PADDED, FLAT, WITHOUT)]
    for library in theirs:
        times = [number(each * 1e3) for each in (*ours, took[library])]
        yield [quantity.encoding.name, graphs, library, *times, *(number(took[library] / each) for each in ours)]


TABLE = Table(
    "encodings",
    "Encodings and other libraries",
    (
        *("encoding", "graphs", "peer", "padded, ms", "flat, ms", "without numba, ms", "peer, ms"),
        *("peer / padded", "peer / flat", "peer / without numba"),
    ),
    [
        Row(quantity.encoding.name, graphs, partial(_measure, quantity, graphs))
        for quantity in QUANTITIES
        for graphs in quantity.samples
    ],
    rounds=3,
)

"""The first table: encodings compared with other libraries that compute the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from distances import DISTANCES
from paths import PATHS
from peers import installed
from quantities import OURS, Quantity
from spectra import SPECTRA
from tables import Row, Table, number
from trees import TREES
from turns import check, medians
from walks import WALKS

__all__ = ["TABLE"]

QUANTITIES = (*DISTANCES, *PATHS, *SPECTRA, *WALKS, *TREES)


def _measure(quantity: Quantity, graphs: str, rounds: int) -> Iterator[Sequence[str]]:
    """A line for each other library.

    Raises:
        Disagreement: one computes something else.
    """
    ways = quantity.ways(graphs, list(installed()))
    check(f"{quantity.encoding.name} of {graphs}", ways, quantity.close)
    took = medians({name: way.run for name, way in ways.items()}, rounds)
    ours = took.pop(OURS)
    for library, theirs in took.items():
        times = [number(ours * 1e3), number(theirs * 1e3), number(theirs / ours)]
        yield [quantity.encoding.name, graphs, library, *times]


TABLE = Table(
    "Encodings and other libraries",
    ("encoding", "graphs", "peer", "structpe, ms", "peer, ms", "peer / structpe"),
    [
        Row(quantity.encoding.name, graphs, partial(_measure, quantity, graphs))
        for quantity in QUANTITIES
        for graphs in quantity.samples
    ],
    rounds=5,
)

"""What structpe and other libraries both compute: how each computes it, and how one compares what they give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from samples import batches, sample
from turns import Way

from structpe.encodings import Encoded, Encoding
from structpe.encodings.compiled import slow
from structpe.encodings.graphs import concatenated_once
from structpe.positions.batch import encode
from structpe.structure import Structure

__all__ = ["FLAT", "OURS", "PADDED", "WITHOUT", "Peer", "Quantity", "Read", "flat", "from_rows", "padded", "without"]

OURS = "structpe"
PADDED, FLAT, WITHOUT = "padded", "flat", "without numba"
"""How our result ends: positions of each batch, padded, as models of padded rows take them; values, one structure after
the other; and padded again, as where numba is not installed."""
Read: TypeAlias = Callable[[Structure, Any], NDArray[Any]]


def padded(encodings: Sequence[Encoding], structures: Sequence[Structure]) -> list[Any]:
    """Encode, batch by batch, to positions that are padded to the largest of the batch."""
    return [encode(batch, encodings) for batch in batches(structures)]


def flat(encodings: Sequence[Encoding], structures: Sequence[Structure]) -> list[Any]:
    """Encode, batch by batch, to values one structure after the other."""
    found = []
    for batch in batches(structures):
        with concatenated_once():
            found.append([encoding.many(batch) for encoding in encodings])
    return found


def without(encodings: Sequence[Encoding], structures: Sequence[Structure]) -> list[Any]:
    """As :func:`padded`, where numba is not installed."""
    with slow():
        return padded(encodings, structures)


@dataclass(frozen=True)
class Peer:
    """How another library computes a quantity.

    Args:
        library: its name in the tables.
        native: a graph as the library holds it; made outside the clock.
        compute: what is timed.
        read: what it gives, as an array that is compared with ours; outside the clock too.
        whole: the same of all pairs of a structure, (n, n), with its graph made inside the clock; then padded to the
            largest of a batch, in narrow integers, as models take them; a row of its own.
        named: its name in the table, if that says more than the library.
    """

    library: str
    native: Callable[[Structure], Any]
    compute: Callable[[Any], Any]
    read: Read
    whole: Callable[[Structure], NDArray[Any]] | None = None
    named: str = ""


@dataclass(frozen=True)
class Quantity:
    """What an encoding says of graphs, and who says the same.

    Args:
        encoding: ours.
        read: what it gives, as an array to compare.
        peers: the others.
        samples: names of the graphs.
        close: how large a difference may be.
        beside: encodings that are computed in the same go, in our time only.
    """

    encoding: Encoding
    read: Callable[[Structure, Encoded], NDArray[Any]]
    peers: tuple[Peer, ...]
    samples: tuple[str, ...]
    close: float = 0.0
    beside: tuple[Encoding, ...] = ()

    def ways(self, graphs: str, libraries: Sequence[str]) -> dict[str, Way]:
        """Ours first, then those of the libraries that are here: what is compared."""
        structures = sample(graphs)
        encoding = self.encoding.fit(structures)  # it learns the labels, if it needs them
        ours = Way(partial(encoding.many, structures), _reader(self.read, structures))
        found = {OURS: ours}
        for peer in self.peers:
            if peer.library in libraries:
                name = peer.named or peer.library
                found[name] = _way(peer, structures)
                if peer.whole is not None:
                    run = partial(_to_padded, peer.whole, structures)
                    found[f"{name}, to padded"] = Way(run, _unpadded(_reader(peer.read, structures), structures))
        return found

    def ends(self, graphs: str) -> dict[str, Callable[[], object]]:
        """Ours, as it is timed: to padded positions, to flat values, and without numba."""
        structures = sample(graphs)
        encodings = [each.fit(structures) for each in (self.encoding, *self.beside)]
        return {way: partial(run, encodings, structures) for way, run in ENDS.items()}


ENDS = {PADDED: padded, FLAT: flat, WITHOUT: without}


def _way(peer: Peer, structures: Sequence[Structure]) -> Way:
    natives = [peer.native(structure) for structure in structures]
    return Way(lambda: [peer.compute(native) for native in natives], _reader(peer.read, structures))


def _to_padded(whole: Callable[[Structure], NDArray[Any]], structures: Sequence[Structure]) -> list[NDArray[np.int16]]:
    """(b, m, m) of each batch, -1 where padded."""
    found = []
    for batch in batches(structures):
        most = max(structure.size for structure in batch)
        array = np.full((len(batch), most, most), -1, dtype=np.int16)
        for number, structure in enumerate(batch):
            array[number, : structure.size, : structure.size] = whole(structure)
        found.append(array)
    return found


def _unpadded(
    read: Callable[[Sequence[Any]], list[NDArray[Any]]], structures: Sequence[Structure]
) -> Callable[[Sequence[Any]], list[NDArray[Any]]]:
    def of_all(arrays: Sequence[Any]) -> list[NDArray[Any]]:
        rows = [row for array in arrays for row in array]
        return read([row[: s.size, : s.size] for row, s in zip(rows, structures, strict=True)])

    return of_all


def _reader(read: Read, structures: Sequence[Structure]) -> Callable[[Sequence[Any]], list[NDArray[Any]]]:
    def of_all(results: Sequence[Any]) -> list[NDArray[Any]]:
        return [read(structure, result) for structure, result in zip(structures, results, strict=True)]

    return of_all


def from_rows(size: int, rows: Iterable[tuple[int, Mapping[int, float]]], missing: float) -> NDArray[np.float64]:
    """(n, n) from what networkx gives: for each node a mapping from the others."""
    result = np.full((size, size), missing)
    for node, others in rows:
        result[node, list(others)] = list(others.values())
    return result

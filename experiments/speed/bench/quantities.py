"""What structpe and other libraries both compute: how each computes it, and how one compares what they give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from samples import sample
from turns import Way

from structpe.encodings import Encoded, Encoding
from structpe.encodings.graphs import concatenated_once
from structpe.structure import Structure

__all__ = ["OURS", "Peer", "Quantity", "Read", "from_rows"]

OURS = "structpe"
Read: TypeAlias = Callable[[Structure, Any], NDArray[Any]]


@dataclass(frozen=True)
class Peer:
    """How another library computes a quantity.

    Args:
        library: its name in the tables.
        native: a graph as the library holds it; made outside the clock.
        compute: what is timed.
        read: what it gives, as an array that is compared with ours; outside the clock too.
        whole: the same from a structure to narrow integers, as a model takes them, with its graph made inside the
            clock; a row of its own.
        named: its name in the table, if that says more than the library.
    """

    library: str
    native: Callable[[Structure], Any]
    compute: Callable[[Any], Any]
    read: Read
    whole: Callable[[Structure], Any] | None = None
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
        """Ours first, then those of the libraries that are here."""
        structures = sample(graphs)
        encoding = self.encoding.fit(structures)  # it learns the labels, if it needs them
        ours = Way(lambda: self._run(encoding, structures), _reader(self.read, structures))
        found = {OURS: ours}
        for peer in self.peers:
            if peer.library in libraries:
                name = peer.named or peer.library
                found[name] = _way(peer, structures)
                if (whole := peer.whole) is not None:
                    run = partial(_each, whole, structures)
                    found[f"{name}, with its graph"] = Way(run, _reader(peer.read, structures))
        return found

    def _run(self, encoding: Encoding, structures: Sequence[Structure]) -> Sequence[Any]:
        with concatenated_once():
            for other in self.beside:
                other.many(structures)
            return encoding.many(structures)


def _way(peer: Peer, structures: Sequence[Structure]) -> Way:
    natives = [peer.native(structure) for structure in structures]
    return Way(lambda: [peer.compute(native) for native in natives], _reader(peer.read, structures))


def _each(whole: Callable[[Structure], Any], structures: Sequence[Structure]) -> Sequence[Any]:
    return [whole(structure) for structure in structures]


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

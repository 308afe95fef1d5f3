"""graph6, sparse6 and digraph6: a graph without labels as one line of text."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.readers import _text
from structpe.readers.base import Item
from structpe.structure import Structure
from structpe.writers.base import WriteError, writer

__all__ = ["graph6"]

Kind: TypeAlias = Literal["graph6", "sparse6", "digraph6"]
Bits: TypeAlias = NDArray[np.uint8]

LOWEST, LARGE = 63, 126


@writer("graph6", ".g6 .s6 .d6")
def graph6(item: Item, kind: Kind | None = None, labels: Literal["refuse", "drop"] = "refuse") -> str:
    """An unlabelled graph in graph6, sparse6 or digraph6, one line of printable characters.

    Nodes keep their numbers; order, root, units and features are lost.

    Args:
        item: an item, or a structure.
        kind: ``graph6`` is for undirected graphs without loops and parallel edges, ``sparse6`` for undirected graphs of
            any kind, and short for few edges, ``digraph6`` for directed graphs without parallel edges. By default the
            first of them that can write the graph in a line of at most 64 MiB.
        labels: whether labels of nodes and edges, which none of the three can store, raise an error or are dropped.

    Raises:
        WriteError: the kind cannot store the graph, or there are labels and ``labels`` is ``refuse``.
    """
    structure = item.structure
    if labels == "refuse" and (any(structure.nodes) or any(structure.relations)):
        raise WriteError("graph6 cannot store labels, and nodes or edges have some; give labels='drop' to drop them")
    parallel = not structure.directed and _loops_or_parallels(structure)
    kind = kind or _kind(structure, parallel)
    if structure.directed != (kind == "digraph6"):
        has, fit = ("directed", "digraph6") if structure.directed else ("undirected", "graph6 or sparse6")
        raise WriteError(f"{kind} cannot store a graph whose edges are {has}; give kind {fit}")
    if kind == "sparse6":
        return f":{_number(structure.size)}{_characters(_list(structure))}\n"
    if parallel:
        raise WriteError("graph6 cannot store loops and parallel edges; give kind 'sparse6'")
    bits = _matrix(structure) if kind == "digraph6" else _triangle(structure)
    return f"{'&' if kind == 'digraph6' else ''}{_number(structure.size)}{_characters(bits)}\n"


def _kind(structure: Structure, parallel: bool) -> Kind:
    if structure.directed:
        return "digraph6"
    long = structure.size * (structure.size - 1) // 12 >= _text.LIMIT
    return "sparse6" if long or parallel else "graph6"


def _loops_or_parallels(structure: Structure) -> bool:
    pairs = structure.edges.tolist()  # for small graphs a set is faster than sorting arrays
    kinds = {(low, high) if low < high else (high, low) for low, high in pairs if low != high}
    return len(kinds) < len(pairs)


def _triangle(structure: Structure) -> Bits:
    low, high = np.sort(structure.edges, axis=1).T
    return _filled(structure.size * (structure.size - 1) // 2, high * (high - 1) // 2 + low, "graph6")


def _matrix(structure: Structure) -> Bits:
    places = structure.edges @ np.array([structure.size, 1])
    if len(set(places.tolist())) < len(places):
        raise WriteError("digraph6 cannot store parallel edges; leave out all but one of each")
    return _filled(structure.size**2, places, "digraph6")


def _filled(count: int, places: NDArray[np.int64], kind: str) -> Bits:
    if count // 6 >= _text.LIMIT:
        raise WriteError(
            f"the text in {kind} would be longer than a line may be; write so large a graph in another format"
        )
    bits: Bits = np.zeros(count, dtype=np.uint8)
    bits[places] = 1
    return _padded(bits, 0)


def _list(structure: Structure) -> Bits:
    """Steps of a bit and a number, as the reader takes them: edges in the order of their larger node."""
    width = (structure.size - 1).bit_length()
    low, high = np.sort(structure.edges, axis=1).T
    steps, at = [], 0
    for node, other in sorted(zip(high.tolist(), low.tolist(), strict=True)):
        if node > at + 1:
            steps += [(1, node), (0, other)]
        else:
            steps.append((node - at, other))
        at = node
    numbers = np.array(steps, dtype=np.int64).reshape(-1, 2)
    digits = (numbers[:, 1:] >> np.arange(width)[::-1]) & 1
    bits = np.concatenate([numbers[:, :1], digits], axis=1).astype(np.uint8).reshape(-1)
    # Ones fill up the last character, with a zero before them if they would be a loop of the last node.
    fills = -len(bits) % 6
    if structure.size == 1 << width and fills > width and at == structure.size - 2:
        bits = np.append(bits, np.uint8(0))
    return _padded(bits, 1)


def _padded(bits: Bits, fill: int) -> Bits:
    return np.concatenate([bits, np.full(-len(bits) % 6, fill, dtype=np.uint8)])


def _number(size: int) -> str:
    length = 1 if size < LARGE - LOWEST else 3 if size < 1 << 18 and size <= 258047 else 6
    digits = [size >> 6 * place & 63 for place in range(length)][::-1]
    return chr(LARGE) * {1: 0, 3: 1, 6: 2}[length] + "".join(chr(LOWEST + digit) for digit in digits)


def _characters(bits: Bits) -> str:
    return (np.packbits(bits.reshape(-1, 6), axis=1)[:, 0] // 4 + LOWEST).tobytes().decode("ascii")

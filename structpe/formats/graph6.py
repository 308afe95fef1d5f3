"""graph6, sparse6 and digraph6: a graph as one line of text (McKay, "Description of graph6, sparse6 and digraph6")."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.errors import ReadError
from structpe.formats import text as text_module
from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.formats.text import lines, shown
from structpe.formats.writing import WriteError, writer
from structpe.structure import Ids, Structure

__all__ = ["g6", "graph6", "graph6_text"]

Kind: TypeAlias = Literal["graph6", "sparse6", "digraph6"]
Bits: TypeAlias = NDArray[np.uint8]
HEADERS = (">>graph6<<", ">>sparse6<<", ">>digraph6<<")
LOWEST, LARGE = 63, 126
"""The character of six zero bits; the one before a number of nodes of more than one character."""
MOST = 1 << 24
"""The largest number of nodes of a graph; a few characters can claim more than fits into memory."""


@reader("graph6", ".g6 .s6 .d6")
def g6(path: Path) -> Iterator[Yielded]:
    """graph6, sparse6 and digraph6: an unlabelled graph per line, as nauty and the House of Graphs write them.

    Graphs in graph6 and sparse6 are undirected, those in digraph6 directed; the first character of a line determines
    the format. Nodes have empty labels. ``metadata["text"]`` is the line.
    """
    count = 0
    for number, line in lines(path):
        text = _bare(line)
        if text:
            count += 1
            yield attempt(partial(_item, text, str(count), path.name), line=number)


def graph6(text: str, name: str = "") -> Structure:
    """A graph from its text.

    The number of nodes comes first. Then graph6 has the bits of the upper triangle of the matrix, six per character;
    digraph6, which begins with ``&``, those of the whole matrix; sparse6, which begins with ``:``, a list of edges,
    with loops and parallel edges. Edges are in the order of their first node, then of their second; in sparse6 in the
    order of the list.

    Args:
        text: a line of a file.
        name: where it comes from, for error messages.

    Raises:
        ReadError: the text is in none of the formats, in incremental sparse6, or claims more than 16,777,216 nodes.
        StructureError: the graph has no node.
    """
    bare = _bare(text)
    if bare.startswith(";"):
        raise ReadError(
            f"{shown(text)} is in incremental sparse6, where a line is a difference to the one before; convert each "
            "to a whole graph first, for example with nauty: copyg -s"
        )
    kind = bare[:1] if bare[:1] in (":", "&") else ""
    try:
        codes = np.frombuffer(bare.removeprefix(kind).encode("ascii"), dtype=np.uint8)
        if (codes < LOWEST).any() or (codes > LARGE).any():
            raise _no_graph6(text)
        size, bits = _size(codes)
    except (UnicodeEncodeError, IndexError):
        raise _no_graph6(text) from None
    if size > MOST:
        raise ReadError(f"{shown(text)} claims {size} nodes, but {MOST} are allowed at most; correct or remove it")
    edges = {"": _triangle, "&": _matrix, ":": _listed}[kind](size, bits)
    if edges is None:
        raise _no_graph6(text)
    return Structure(("",) * size, edges, directed=kind == "&", name=name)


def _item(text: str, id: str, file: str) -> Item:
    return Item(graph6(text, f"{file}:{id}"), id=id, metadata={"text": text})


def _bare(line: str) -> str:
    text = line.strip()
    for header in HEADERS:
        text = text.removeprefix(header)
    return text


def _size(codes: Bits) -> tuple[int, Bits]:
    """The number of nodes, in one, three or six characters, and the bits of the characters after it."""
    length, skipped = (1, 0) if codes[0] != LARGE else (3, 1) if codes[1] != LARGE else (6, 2)
    digits = codes[skipped : skipped + length].astype(np.int64) - LOWEST
    if len(digits) < length:
        raise IndexError
    size = int(digits @ 64 ** np.arange(len(digits))[::-1])
    rest = ((codes[skipped + length :] - LOWEST) << 2).astype(np.uint8)
    return size, np.unpackbits(rest[:, None], axis=1)[:, :6].reshape(-1)


def _triangle(size: int, bits: Bits) -> Ids | None:
    if len(bits) != -(-size * (size - 1) // 12) * 6 or bits[size * (size - 1) // 2 :].any():
        return None
    places = np.flatnonzero(bits[: size * (size - 1) // 2])
    # Column j begins at place j (j - 1) / 2; the square root is exact enough to find j.
    column = ((1 + np.sqrt(8.0 * places + 1)) / 2).astype(np.int64)
    column += (column + 1) * column // 2 <= places
    column -= column * (column - 1) // 2 > places
    row = places - column * (column - 1) // 2
    return np.stack([row, column], axis=1)[np.lexsort((column, row))]


def _matrix(size: int, bits: Bits) -> Ids | None:
    if len(bits) != -(-size * size // 6) * 6 or bits[size * size :].any():
        return None
    return np.stack(np.divmod(np.flatnonzero(bits[: size * size]), size), axis=1)


def _listed(size: int, bits: Bits) -> Ids | None:
    """Steps of a bit b and a number x: b adds one to the node v; then x > v becomes v, any other x is an edge to v."""
    width = (size - 1).bit_length() + 1
    steps = bits[: len(bits) // width * width].reshape(-1, width)
    numbers = steps[:, 1:].astype(np.int64) @ (1 << np.arange(width - 1)[::-1]) if len(steps) else np.zeros(0, int)
    node, done, edges = 0, 0, []
    for ahead, number in zip(steps[:, 0].tolist(), numbers.tolist(), strict=True):
        node += ahead
        if number >= size or node >= size:
            break
        done += width
        if number > node:
            node = number
        else:
            edges.append((number, node))
    return np.array(edges, dtype=np.int64).reshape(-1, 2) if _fills_up(bits[done:], size) else None


def _fills_up(bits: Bits, size: int) -> bool:
    """Whether bits only fill up the last character: fewer than six, and all 1.

    In graphs of 2, 4, 8 or 16 nodes the first bit may be 0, since the bits could be an edge otherwise.
    """
    return len(bits) < 6 and bool(bits[1 if size in (2, 4, 8, 16) else 0 :].all())


def _no_graph6(text: str) -> ReadError:
    return ReadError(f"{shown(text)} is not the text of a graph in graph6; restore the original")


@writer("graph6", ".g6 .s6 .d6")
def graph6_text(item: Item, kind: Kind | None = None, labels: Literal["refuse", "drop"] = "refuse") -> str:
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
        raise WriteError(f"{kind} cannot store {has} edges; give kind {fit}")
    if kind == "sparse6":
        return f":{_number(structure.size)}{_characters(_list(structure))}\n"
    if parallel:
        raise WriteError("graph6 cannot store loops and parallel edges; give kind 'sparse6'")
    bits = _matrix_bits(structure) if kind == "digraph6" else _triangle_bits(structure)
    return f"{'&' if kind == 'digraph6' else ''}{_number(structure.size)}{_characters(bits)}\n"


def _kind(structure: Structure, parallel: bool) -> Kind:
    if structure.directed:
        return "digraph6"
    long = structure.size * (structure.size - 1) // 12 >= text_module.LIMIT
    return "sparse6" if long or parallel else "graph6"


def _loops_or_parallels(structure: Structure) -> bool:
    pairs = structure.edges.tolist()  # for small graphs a set is faster than sorting arrays
    kinds = {(low, high) if low < high else (high, low) for low, high in pairs if low != high}
    return len(kinds) < len(pairs)


def _triangle_bits(structure: Structure) -> Bits:
    low, high = np.sort(structure.edges, axis=1).T
    return _filled(structure.size * (structure.size - 1) // 2, high * (high - 1) // 2 + low, "graph6")


def _matrix_bits(structure: Structure) -> Bits:
    places = structure.edges @ np.array([structure.size, 1])
    if len(set(places.tolist())) < len(places):
        raise WriteError("digraph6 cannot store parallel edges; leave out all but one of each")
    return _filled(structure.size**2, places, "digraph6")


def _filled(count: int, places: NDArray[np.int64], kind: str) -> Bits:
    if count // 6 >= text_module.LIMIT:
        raise WriteError(f"the line of {kind} would be too long; write so large a graph in another format")
    bits: Bits = np.zeros(count, dtype=np.uint8)
    bits[places] = 1
    return _padded(bits, 0)


def _list(structure: Structure) -> Bits:
    """Steps of a bit and a number, in the order of the larger node of each edge; see :func:`_listed`."""
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
    length, marks = (1, 0) if size < LARGE - LOWEST else (3, 1) if size <= 258047 else (6, 2)
    digits = [size >> 6 * place & 63 for place in range(length)][::-1]
    return chr(LARGE) * marks + "".join(chr(LOWEST + digit) for digit in digits)


def _characters(bits: Bits) -> str:
    return (np.packbits(bits.reshape(-1, 6), axis=1)[:, 0] // 4 + LOWEST).tobytes().decode("ascii")

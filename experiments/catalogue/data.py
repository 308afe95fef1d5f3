"""The data of the tasks: real files below a folder of corpora, or made by a published rule."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from structpe.structure import Structure, path

__all__ = ["Example", "cogs", "csl", "listops", "scan", "shakespeare", "zinc"]

IGNORED = -1
"""What a model need not predict."""


@dataclass(frozen=True, eq=False)
class Example:
    """A structure, the id of each of its units, and what is asked of it.

    Attributes:
        structure: units are its nodes.
        units: (n,) ids.
        target: (n,) ids of what comes next, for language models; or one number.
    """

    structure: Structure
    units: np.ndarray
    target: np.ndarray | float


def shakespeare(folder: Path) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Ids of the characters, the first nine tenths and the last tenth; and the characters."""
    text = (folder / "tinyshakespeare" / "input.txt").read_text(encoding="utf-8")
    characters = tuple(sorted(set(text)))
    numbers = {character: i for i, character in enumerate(characters)}
    ids = np.array([numbers[character] for character in text])
    return ids[: len(ids) * 9 // 10], ids[len(ids) * 9 // 10 :], characters


def windows(ids: np.ndarray, characters: Sequence[str], length: int, starts: Sequence[int]) -> list[Example]:
    """Pieces of a text as paths, each asked for its next characters."""
    pieces = [ids[start : start + length + 1] for start in starts]
    return [Example(path([characters[i] for i in piece[:-1]]), piece[:-1], piece[1:]) for piece in pieces]


def scan(folder: Path, split: str) -> Iterator[tuple[list[str], list[str]]]:
    """Commands and actions of the length split: up to 22 actions in ``train``, 24 to 48 in ``test``."""
    file = folder / "scan" / "length_split" / f"tasks_{split}_length.txt"
    for line in file.read_text(encoding="utf-8").splitlines():
        command, _, actions = line.removeprefix("IN: ").partition(" OUT: ")
        yield command.split(), actions.split()


def cogs(folder: Path, split: str) -> Iterator[tuple[list[str], list[str], str]]:
    """Sentences, their meanings without variables, and the kind of each; kinds matter in ``gen``."""
    for line in (folder / "cogs" / "variable_free" / f"{split}.tsv").read_text(encoding="utf-8").splitlines():
        sentence, meaning, kind = line.split("\t")
        yield sentence.split(), meaning.split(), kind


def as_text(command: Sequence[str], actions: Sequence[str], numbers: dict[str, int]) -> Example:
    """Command, a mark, actions, a mark; only what comes after the first mark is asked for."""
    words = [*command, "=", *actions, "."]
    ids = np.array([numbers[word] for word in words])
    target = np.where(np.arange(1, len(ids)) > len(command), ids[1:], IGNORED)
    return Example(path(words[:-1]), ids[:-1], target)


OPERATORS: dict[str, Callable[[Sequence[int]], int]] = {
    "MIN": min,
    "MAX": max,
    "MED": lambda values: int(statistics.median(values)),
    "SM": lambda values: sum(values) % 10,
}
SYMBOLS = (*OPERATORS, *map(str, range(10)))
DEEPEST, MOST_ARGUMENTS, OPERATOR_SHARE = 20, 5, 0.25  # of ListOps (Nangia and Bowman 2018)


def listops(folder: Path, split: str, count: int, largest: int) -> list[Example]:
    """Trees of ListOps of up to ``largest`` nodes: ``train`` by the published grammar, ``test`` the official file."""
    if split == "test":
        lines = (folder / "listops" / "test_d20s.tsv").read_text(encoding="utf-8").splitlines()
        expressions = (parsed(line.partition("\t")[2]) for line in lines)
        kept = (e for e in expressions if len(e[0]) <= largest)
    else:
        kept = _drawn(random.Random(0), largest)
    return [_tree(*expression) for expression, _ in zip(kept, range(count), strict=False)]


def parsed(text: str) -> tuple[list[str], list[int]]:
    """Symbols of an expression in the order of reading, and the parent of each, -1 for the first."""
    symbols: list[str] = []
    parents: list[int] = []
    above = [-1]
    for token in text.replace("(", " ").replace(")", " ").split():
        if token == "]":
            above.pop()
            continue
        symbols.append(token.removeprefix("["))
        parents.append(above[-1])
        if token.startswith("["):
            above.append(len(symbols) - 1)
    return symbols, parents


def value(symbols: Sequence[str], parents: Sequence[int]) -> int:
    """What an expression comes to."""
    arguments: list[list[int]] = [[] for _ in symbols]
    for node in reversed(range(len(symbols))):
        mine = OPERATORS[symbols[node]](arguments[node]) if symbols[node] in OPERATORS else int(symbols[node])
        if parents[node] < 0:
            return mine
        arguments[parents[node]].append(mine)
    raise AssertionError("no root")


def _drawn(draw: random.Random, largest: int) -> Iterator[tuple[list[str], list[int]]]:
    """Different expressions, without end."""
    seen = set()
    while True:
        symbols: list[str] = []
        parents: list[int] = []
        _grow(draw, symbols, parents, -1, 1)
        key = (*symbols, *parents)
        if len(symbols) <= largest and key not in seen:
            seen.add(key)
            yield symbols, parents


def _grow(draw: random.Random, symbols: list[str], parents: list[int], parent: int, depth: int) -> None:
    node = len(symbols)
    parents.append(parent)
    if depth >= DEEPEST or draw.random() > OPERATOR_SHARE:
        symbols.append(str(draw.randrange(10)))
        return
    symbols.append(draw.choice(list(OPERATORS)))
    for _ in range(draw.randint(2, MOST_ARGUMENTS)):
        _grow(draw, symbols, parents, node, depth + 1)


def _tree(symbols: list[str], parents: list[int]) -> Example:
    edges = np.array([(parent, node) for node, parent in enumerate(parents) if parent >= 0], dtype=int).reshape(-1, 2)
    structure = Structure(tuple(symbols), edges, ("",) * len(edges), order=np.arange(len(symbols)), root=0)
    return Example(structure, np.array([SYMBOLS.index(s) for s in symbols]), value(symbols, parents))


SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)  # Murphy et al. 2019
NODES, COPIES = 41, 15


def csl() -> dict[str, list[Example]]:
    """Circular skip links (Murphy et al. 2019): ten graphs, each numbered in 15 ways; 9 to train, 3 and 3 to test."""
    draw = np.random.default_rng(0)
    splits: dict[str, list[Example]] = {"train": [], "valid": [], "test": []}
    for label, skip in enumerate(SKIPS):
        for copy in range(COPIES):
            number = draw.permutation(NODES)
            edges = [(number[i], number[(i + step) % NODES]) for i in range(NODES) for step in (1, skip)]
            graph = Structure(("x",) * NODES, np.array(edges), ("",) * len(edges), directed=False)
            split = "train" if copy < 9 else "valid" if copy < 12 else "test"
            splits[split].append(Example(graph, np.zeros(NODES, dtype=int), label))
    return splits


def zinc(folder: Path, split: str, count: int) -> list[Example]:
    """Molecules of ZINC: official ``val`` and ``test``; ``train`` is a stand-in of the same population."""
    name = "zinc_altpool23k" if split == "train" else f"zinc12k_{split}"
    arrays = np.load(folder / "zinc12k" / f"{name}.npz")
    nodes, edges = (np.cumsum([0, *arrays[key]]) for key in ("n_nodes", "n_edges"))
    x, index, bonds, y = (arrays[key] for key in ("x", "edge_index", "edge_attr", "y"))
    return [
        _molecule(x[a:b].reshape(-1), index[:, c:d].T, bonds[c:d].reshape(-1), float(y[i]))
        for i, (a, b, c, d) in enumerate(zip(nodes, nodes[1:], edges, edges[1:], strict=False))
        if i < count
    ]


def _molecule(atoms: np.ndarray, edges: np.ndarray, bonds: np.ndarray, y: float) -> Example:
    once = edges[:, 0] < edges[:, 1]  # each bond is stored in both directions
    relations = tuple(str(bond) for bond in bonds[once])
    return Example(Structure(tuple(map(str, atoms)), edges[once], relations, directed=False), atoms.astype(int), y)

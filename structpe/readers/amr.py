"""PENMAN: graphs of meaning (AMR), one node per variable and one per constant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from structpe.errors import ReadError
from structpe.readers._penman import Piece, graphs, parse, split
from structpe.readers.base import Item, Outcome, attempt, reader
from structpe.structure import Structure

__all__ = ["amr", "graph"]

ID = re.compile(r"^[ \t]*#.*::id[ \t]+(\S+)", re.MULTILINE)
ALIGNMENT = re.compile(r"~(?:[a-z]\.?)?([0-9]+)(?:,[0-9]+)*$")
VARIABLE = re.compile(r"[a-z][0-9]*")


@reader("amr", ".amr .penman .txt")
def amr(path: Path) -> Iterator[Outcome]:
    """PENMAN graphs with ``# ::id`` and ``# ::snt`` comments, apart by blank lines: AMR.

    See :func:`graph` for what becomes a node. ``# ::snt`` is the text; ``metadata`` has all comments.
    """
    for number, piece in enumerate(graphs(path), 1):
        id = (ID.findall(piece.text) or [""])[-1]
        yield attempt(partial(_item, piece, id or str(number), path.name), id, piece.line)


def graph(text: str, name: str = "") -> Structure:
    """The structure of one PENMAN graph.

    Each variable is a node, labelled by its concept. So is each constant, at each place where it stands (attributes),
    its quotes stripped. Nodes are numbered in the order in which the text introduces them. An edge is a role, with
    its colon; inverse roles (``:ARG0-of``) are turned round. A variable that stands again is one more edge of its one
    node (re-entrancy). Edges are in the order in which the text has introduced both their ends. The root is the top.

    Features: ``is_attribute`` marks the constants, ``edge_inverted`` the roles that the text has as inverse;
    ``alignment`` and ``edge_alignment`` have the first token that a node or role is aligned with (``~e.3``), or -1.

    Constants of AMR are strings, numbers, ``+`` and ``-``, or words such as ``imperative``. A bare letter with or
    without digits is therefore a variable, and must be introduced somewhere.

    Raises:
        ReadError: the text is not one PENMAN graph; a variable without or with two concepts; a role without a target.
    """
    pieces = list(split(text))
    if wrong := [piece.wrong for piece in pieces if piece.wrong is not None]:
        raise wrong[0]
    if len(pieces) != 1:
        raise ReadError(f"the text holds {len(pieces)} graphs; give one")
    return _structure(parse(text), name)


def _item(piece: Piece, id: str, file: str) -> Item:
    if piece.wrong is not None:
        raise piece.wrong
    tree = parse(piece.text, piece.line)
    texts = (tree.metadata["snt"],) if "snt" in tree.metadata else ()
    return Item(_structure(tree, f"{file}:{id}"), texts, id, dict(tree.metadata))


def _structure(tree: Any, name: str) -> Structure:
    times = Counter(variable for variable, _ in tree.nodes())
    if twice := [variable for variable, count in times.items() if count > 1]:
        message = f"variable {twice[0]!r} is introduced {times[twice[0]]} times; give each node a variable of its own"
        raise ReadError(message)
    built = _Graph(frozenset(times))
    built.visit(tree.node, built.introduce(tree.node))
    return built.structure(name)


class _Graph:
    """A graph in the making, filled in the order of the text."""

    def __init__(self, variables: frozenset[str]) -> None:
        from penman.models.amr import model

        self.model, self.variables = model, variables
        self.number: dict[str, int] = {}
        self.nodes: list[tuple[str, bool, int]] = []
        self.edges: list[tuple[int, int, str, int, bool]] = []
        self.waiting: dict[str, list[tuple[int, str]]] = {}

    def visit(self, branch: Any, here: int) -> None:
        """Add what stands within the brackets of a node."""
        for role, target in branch[1]:
            if role == "/":
                continue
            if target is None:
                raise ReadError(f"role {role} of {branch[0]!r} has no target; give a node or a constant, or remove it")
            if isinstance(target, str):
                self.mention(branch[0], here, role, target)
            else:
                there = self.introduce(target)
                self.edge(here, role, there)
                for site, early in self.waiting.pop(target[0], []):
                    self.edge(site, early, there)
                self.visit(target, there)

    def introduce(self, branch: Any) -> int:
        """A new node for a variable with its concept."""
        variable, content = branch
        concepts = [target for role, target in content if role == "/"]
        if variable is None:
            raise ReadError("a graph or node is empty, '()'; write (variable / concept)")
        if len(concepts) != 1 or concepts[0] is None:
            raise ReadError(
                f"variable {variable!r} has {len(concepts) if None not in concepts else 'no'} concepts; "
                f"write ({variable} / concept ...)"
            )
        self.number[variable] = self.node(concepts[0], attribute=False)
        return self.number[variable]

    def mention(self, variable: str, here: int, role: str, target: str) -> None:
        """An edge to a variable introduced elsewhere, or to a new node for a constant."""
        symbol, _ = _aligned(target)
        if symbol in self.number:
            self.edge(here, role, self.number[symbol])
        elif symbol in self.variables:
            self.waiting.setdefault(symbol, []).append((here, role))
        elif VARIABLE.fullmatch(symbol):
            raise ReadError(
                f"variable {symbol!r}, {role} of {variable!r}, is introduced nowhere; write ({symbol} / "
                "concept) once, or quote it if it is a constant"
            )
        else:
            self.edge(here, role, self.node(target, attribute=True))

    def node(self, text: str, attribute: bool) -> int:
        label, alignment = _aligned(text)
        if label.startswith('"'):
            label = re.sub(r"\\(.)", r"\1", label[1:-1])
        self.nodes.append((label, attribute, alignment))
        return len(self.nodes) - 1

    def edge(self, site: int, role: str, other: int) -> None:
        relation, alignment = _aligned(role)
        inverted = self.model.is_role_inverted(relation)
        if inverted:
            site, other, relation = other, site, self.model.invert_role(relation)
        self.edges.append((site, other, relation, alignment, inverted))

    def structure(self, name: str) -> Structure:
        labels, attributes, alignments = zip(*self.nodes, strict=True)
        return Structure(
            labels,
            np.array([edge[:2] for edge in self.edges], dtype=np.int64).reshape(-1, 2),
            tuple(edge[2] for edge in self.edges),
            order=np.arange(len(labels)),
            root=0,
            features={
                "is_attribute": np.array(attributes),
                "alignment": np.array(alignments),
                "edge_alignment": np.array([edge[3] for edge in self.edges], dtype=np.int64),
                "edge_inverted": np.array([edge[4] for edge in self.edges], dtype=bool),
            },
            name=name,
        )


def _aligned(text: str) -> tuple[str, int]:
    """A symbol without its alignment, and the first token it is aligned with; -1 where there is none."""
    found = ALIGNMENT.search(text) if "~" in text else None
    return (text[: found.start()], int(found[1])) if found else (text, -1)

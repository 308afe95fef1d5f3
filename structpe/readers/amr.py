"""PENMAN: graphs of meaning (AMR), one node per variable and one per constant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from structpe.errors import ReadError
from structpe.readers._penman import TOO_DEEP, comments, first_aligned, graphs, parse, split, unquoted
from structpe.readers._text import Piece
from structpe.readers.base import Item, Yielded, attempt, reader
from structpe.structure import Structure

__all__ = ["amr", "graph"]

ALIGNMENT = re.compile(r"~(?:[a-z]\.?)?[0-9]+(?:,[0-9]+)*$")
VARIABLE = re.compile(r"[a-z][0-9]*")


@reader("amr", ".amr .penman .txt", apart=True)
def amr(path: Path) -> Iterator[Yielded]:
    """PENMAN graphs with ``# ::id`` and ``# ::snt`` comments, separated by blank lines: AMR.

    See :func:`graph` for the nodes. ``# ::snt`` is the text, to the end of its line, even with ``::`` in it.
    ``metadata`` has all comments, and ``epigraph``, the rest of the notation, from which the writer ``amr`` restores
    the graph:

    - ``variables``: of each node, empty for constants; ``symbols``: each concept and constant as it is written;
    - ``alignments``: of each node, such as ``~e.3,4``, or empty; ``edge_alignments``: of each role;
      ``mention_alignments``: of a variable that a role mentions without introducing it;
    - ``edge_order``: the rank of each edge in the text; ``introduces``: whether a node is introduced there.
    """
    for number, piece in enumerate(graphs(path), 1):
        said = comments(piece.text)
        id = said.get("id", "")
        yield attempt(partial(_item, piece, said, id or str(number), path.name), id, piece.line)


def graph(text: str, name: str = "") -> Structure:
    """The structure of one PENMAN graph.

    Each variable is a node, labelled by its concept. So is each occurrence of a constant (attributes), without its
    quotes. Nodes are numbered in the order in which the text introduces them. An edge is a role, with its colon;
    inverse roles (``:ARG0-of``) are reversed. A repeated variable is another edge to the same node (re-entrancy). Edges
    are in the order in which the text has introduced both their ends. The root is the top.

    Features: ``is_attribute`` marks the constants, ``edge_inverted`` the roles that are inverse in the text;
    ``alignment`` and ``edge_alignment`` have the first token with which a node or role is aligned (``~e.3``), or -1.

    Constants of AMR are strings, numbers, ``+`` and ``-``, or words such as ``imperative``. So a letter with or without
    digits is a variable, and must be introduced.

    Raises:
        ReadError: the text is not one PENMAN graph; a variable has no concept or two; a role has no target.
    """
    pieces = list(split(text))
    if wrong := [piece.wrong for piece in pieces if piece.wrong is not None]:
        raise wrong[0]
    if len(pieces) != 1:
        raise ReadError(f"the text holds {len(pieces)} graphs; give one")
    return _built(parse(text)).structure(name)


def _item(piece: Piece, said: Mapping[str, str], id: str, file: str) -> Item:
    if piece.wrong is not None:
        raise piece.wrong
    built = _built(parse(piece.text, piece.line))
    texts = (said["snt"],) if "snt" in said else ()
    return Item(built.structure(f"{file}:{id}"), texts, id, {**said, "epigraph": built.epigraph()})


def _built(tree: Any) -> _Graph:
    try:
        return _filled(tree)
    except RecursionError:
        raise ReadError(TOO_DEEP) from None


def _filled(tree: Any) -> _Graph:
    times = Counter(variable for variable, _ in tree.nodes())
    if twice := [variable for variable, count in times.items() if count > 1]:
        message = f"variable {twice[0]!r} is introduced {times[twice[0]]} times; give each node a different variable"
        raise ReadError(message)
    built = _Graph(frozenset(times))
    built.visit(tree.node, built.introduce(tree.node))
    return built


class _Node(NamedTuple):
    """A node in the text: its label, symbol and alignment."""

    label: str
    variable: str
    symbol: str
    alignment: str


class _Edge(NamedTuple):
    """A role in the text, reversed if it is inverse."""

    source: int
    target: int
    relation: str
    inverted: bool
    alignment: str
    mention: str
    place: int
    introduces: bool


class _Role(NamedTuple):
    """A role whose other end is not known yet: its node, its place in the text, and its text."""

    site: int
    place: int
    text: str
    mention: str = ""
    introduces: bool = False


class _Graph:
    """A graph under construction, in the order of the text."""

    def __init__(self, variables: frozenset[str]) -> None:
        from penman.models.amr import model

        self.model, self.variables = model, variables
        self.number: dict[str, int] = {}
        self.nodes: list[_Node] = []
        self.edges: list[_Edge] = []
        self.waiting: dict[str, list[_Role]] = {}
        self.roles = 0

    def visit(self, branch: Any, here: int) -> None:
        """Add the roles within the brackets of a node."""
        for role, target in branch[1]:
            if role == "/":
                continue
            if target is None:
                raise ReadError(f"role {role} of {branch[0]!r} has no target; give a node or a constant, or remove it")
            place, self.roles = self.roles, self.roles + 1
            if isinstance(target, str):
                self.mention(branch[0], _Role(here, place, role), target)
            else:
                there = self.introduce(target)
                self.edge(_Role(here, place, role, introduces=True), there)
                for early in self.waiting.pop(target[0], []):
                    self.edge(early, there)
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
        self.number[variable] = self.node(concepts[0], variable)
        return self.number[variable]

    def mention(self, variable: str, role: _Role, target: str) -> None:
        """An edge to a variable introduced elsewhere, or to a new node for a constant."""
        symbol, alignment = _aligned(target)
        if symbol in self.number:
            self.edge(role._replace(mention=alignment), self.number[symbol])
        elif symbol in self.variables:
            self.waiting.setdefault(symbol, []).append(role._replace(mention=alignment))
        elif VARIABLE.fullmatch(symbol):
            raise ReadError(
                f"variable {symbol!r}, {role.text} of {variable!r}, is not introduced; write ({symbol} / "
                "concept) once, or quote it if it is a constant"
            )
        else:
            self.edge(role._replace(introduces=True), self.node(target, ""))

    def node(self, text: str, variable: str) -> int:
        symbol, alignment = _aligned(text)
        self.nodes.append(_Node(unquoted(symbol), variable, symbol, alignment))
        return len(self.nodes) - 1

    def edge(self, role: _Role, other: int) -> None:
        relation, alignment = _aligned(role.text)
        site, inverted = role.site, self.model.is_role_inverted(relation)
        if inverted:
            site, other, relation = other, site, self.model.invert_role(relation)
        edge = _Edge(site, other, relation, inverted, alignment, role.mention, role.place, role.introduces)
        self.edges.append(edge)

    def structure(self, name: str) -> Structure:
        return Structure(
            tuple(node.label for node in self.nodes),
            np.array([edge[:2] for edge in self.edges], dtype=np.int64).reshape(-1, 2),
            tuple(edge.relation for edge in self.edges),
            order=np.arange(len(self.nodes)),
            root=0,
            features={
                "is_attribute": np.array([not node.variable for node in self.nodes]),
                "alignment": np.array([first_aligned(node.alignment) for node in self.nodes]),
                "edge_alignment": np.array([first_aligned(edge.alignment) for edge in self.edges], dtype=np.int64),
                "edge_inverted": np.array([edge.inverted for edge in self.edges], dtype=bool),
            },
            name=name,
        )

    def epigraph(self) -> dict[str, tuple[Any, ...]]:
        return {
            "variables": tuple(node.variable for node in self.nodes),
            "symbols": tuple(node.symbol for node in self.nodes),
            "alignments": tuple(node.alignment for node in self.nodes),
            "edge_alignments": tuple(edge.alignment for edge in self.edges),
            "mention_alignments": tuple(edge.mention for edge in self.edges),
            "edge_order": tuple(edge.place for edge in self.edges),
            "introduces": tuple(edge.introduces for edge in self.edges),
        }


def _aligned(text: str) -> tuple[str, str]:
    """A symbol without its alignment, and the alignment, or an empty text."""
    found = ALIGNMENT.search(text) if "~" in text else None
    return (text[: found.start()], found[0]) if found else (text, "")

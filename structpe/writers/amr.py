"""PENMAN: a rooted, connected graph as a tree with variables, the notation of AMR."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from structpe.errors import needing
from structpe.readers._penman import comments, first_aligned, unquoted
from structpe.readers._text import shown
from structpe.readers.base import Item
from structpe.structure import Structure
from structpe.writers._walk import Branch, walked
from structpe.writers.base import WriteError, writer

__all__ = ["amr"]

DEEPEST = 300
"""The largest depth of a graph; the penman library is recursive and reads little more."""
INDENT = 4
ROLE = re.compile(r":[^\s\"()/:~]*")
SYMBOL = re.compile(r"[^\s\"()/:~#]+")
STRING = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"')
BARE = re.compile(r"[+-]|[+-]?[0-9]+(?:\.[0-9]+)?|imperative|expressive|interrogative")
"""Constants that AMR writes without quotes."""
PER_NODE = ("variables", "symbols", "alignments")
PER_EDGE = ("edge_alignments", "mention_alignments", "edge_order", "introduces")


@writer("amr", ".amr .penman", between="\n")
def amr(item: Item) -> str:
    """A graph in PENMAN notation, with its comments; graphs are separated by blank lines.

    The metadata from the reader ``amr`` is written again: variables, alignments, comments, and which role introduces a
    node. Any other structure is walked from its root, first along edges. An edge that is walked against its direction
    becomes an inverse role, and a node that is visited again is mentioned by its variable. Constants are the nodes that
    the feature ``is_attribute`` marks. Roles without a colon get one, and texts that PENMAN would misread get quotes. A
    relation that is already an inverse role, such as ``:ARG0-of``, is reversed when it is read again, which means the
    same. Without metadata, ``# ::id`` is the item's id and ``# ::snt`` its first text.

    Raises:
        WriteError: the edges are undirected; there is no root, or no path to a node; a constant has parts or several
            edges; PENMAN cannot store a label or relation; the graph is nested too deeply for readers.
        MissingExtra: penman, which knows the inverse roles, is not installed.
    """
    graph = _Graph(item)
    return "".join(f"{line}\n" for line in [*_comments(item), *graph.lines()])


class _Graph:
    """A structure that is converted to text."""

    def __init__(self, item: Item) -> None:
        with needing("penman", "amr"):
            from penman.models.amr import model
        self.model, self.structure = model, item.structure
        if not self.structure.directed:
            raise WriteError(
                "the edges are undirected; a role of PENMAN has a direction, give Structure(directed=True)"
            )
        if self.structure.root is None:
            raise WriteError("the graph has no root to start from; give Structure(root=...)")
        self.edges = self.structure.edges.tolist()
        self.said = _epigraph(item)
        self.attribute = _flags(self.structure, "is_attribute", self.structure.size)
        self.symbols = [self._symbol(node) for node in range(self.structure.size)]
        self.variables = self._variables()
        self.branches = self._as_read() or self._walked()

    def lines(self) -> Iterator[str]:
        """The lines of the text, without recursion."""
        root = int(self.structure.root or 0)
        line, depth = self._opening(root), 1
        waiting: list[Branch | None] = [None, *reversed(self.branches[root])]
        while waiting:
            branch = waiting.pop()
            if branch is None:
                line, depth = f"{line})", depth - 1
                continue
            yield line
            line = " " * (INDENT * depth) + self._role(branch)
            if branch.introduces and not self.attribute[branch.other]:
                depth += 1
                if depth > DEEPEST:
                    raise WriteError(f"the graph is nested more than {DEEPEST} deep; no reader of PENMAN takes it")
                line += self._opening(branch.other)
                waiting += [None, *reversed(self.branches[branch.other])]
            elif branch.introduces:
                line += self.symbols[branch.other] + self._node_alignment(branch.other)
            else:
                line += self.variables[branch.other] + self._of_edge("mention_alignments", branch.edge)
        yield line

    def _opening(self, node: int) -> str:
        return f"({self.variables[node]} / {self.symbols[node]}{self._node_alignment(node)}"

    def _role(self, branch: Branch) -> str:
        relation = self.structure.relation(branch.edge)
        role = relation if relation.startswith(":") else f":{relation}"
        if not ROLE.fullmatch(role):
            wrong = f"the relation {relation!r} cannot be a role of PENMAN"
            raise WriteError(f"{wrong}; take out blanks, quotes, brackets, and the signs : / ~")
        alignment = self._of_edge("edge_alignments", branch.edge)
        if "edge_alignment" in self.structure.features:
            alignment = _current(alignment, int(self.structure.features["edge_alignment"][branch.edge]))
        return f"{self.model.invert_role(role) if branch.inverted else role}{alignment} "

    def _of_edge(self, name: str, edge: int) -> str:
        return str(self.said[name][edge]) if name in self.said else ""

    def _node_alignment(self, node: int) -> str:
        alignment = str(self.said["alignments"][node]) if "alignments" in self.said else ""
        if "alignment" in self.structure.features:
            return _current(alignment, int(self.structure.features["alignment"][node]))
        return alignment

    def _symbol(self, node: int) -> str:
        """The symbol as it was read, if it is unchanged; with quotes if it would be misread without them."""
        label = self.structure.nodes[node]
        kept = str(self.said["symbols"][node]) if "symbols" in self.said else ""
        if (SYMBOL.fullmatch(kept) or STRING.fullmatch(kept)) and unquoted(kept) == label:
            return kept
        if "\n" in label or "\r" in label:
            raise WriteError(f"the label of node {node} is {shown(label)}; PENMAN needs labels of one line")
        bare = BARE if self.attribute[node] else SYMBOL
        return label if bare.fullmatch(label) else '"' + label.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def _variables(self) -> list[str]:
        if "variables" in self.said:
            kept = [str(name) for name in self.said["variables"]]
            named = [name for name in kept if name]
            if [not name for name in kept] == self.attribute and len(set(named)) == len(named):
                return kept
        counts: dict[str, int] = {}
        made = []
        for node, label in enumerate(self.structure.nodes):
            letter = next((each for each in label.lower() if "a" <= each <= "z"), "x")
            number = counts[letter] = counts.get(letter, 0) + (not self.attribute[node])
            made.append("" if self.attribute[node] else letter if number == 1 else f"{letter}{number}")
        return made

    def _as_read(self) -> list[list[Branch]] | None:
        """The roles of each node as they were read; None if unknown, or if they do not give this graph."""
        if not {"edge_order", "introduces"} <= set(self.said):
            return None
        inverted = _flags(self.structure, "edge_inverted", len(self.edges))
        branches: list[list[Branch]] = [[] for _ in self.structure.nodes]
        for edge in sorted(range(len(self.edges)), key=lambda edge: int(self.said["edge_order"][edge])):
            source, target = self.edges[edge]
            site, other = (target, source) if inverted[edge] else (source, target)
            branches[site].append(Branch(edge, other, inverted[edge], bool(self.said["introduces"][edge])))
        seen, waiting = {self.structure.root}, [int(self.structure.root or 0)]
        while waiting:
            for branch in branches[waiting.pop()]:
                if branch.introduces and branch.other in seen:
                    return None
                if branch.introduces:
                    seen.add(branch.other)
                    waiting.append(branch.other)
        alone = any(not branch.introduces and self.attribute[branch.other] for own in branches for branch in own)
        return None if alone or len(seen) < self.structure.size else branches

    def _walked(self) -> list[list[Branch]]:
        self._check_constants()
        turned = _flags(self.structure, "edge_inverted", len(self.edges))
        turned = [flag or self.attribute[source] for flag, (source, _) in zip(turned, self.edges, strict=True)]
        root = int(self.structure.root or 0)
        branches = walked(self.edges, turned, root, self.structure.size)
        reached = {root, *(branch.other for own in branches for branch in own if branch.introduces)}
        if missed := [node for node in range(self.structure.size) if node not in reached]:
            named = f"{missed[0]} ({self.structure.nodes[missed[0]]!r})"
            raise WriteError(f"no path leads from the root to node {named}; PENMAN needs a connected graph")
        return branches

    def _check_constants(self) -> None:
        counts = Counter(node for edge in self.edges for node in edge)
        for node, constant in enumerate(self.attribute):
            if constant and (counts[node] != 1 or node == self.structure.root):
                wrong = f"node {node} ({self.structure.nodes[node]!r}) is a constant by 'is_attribute'"
                raise WriteError(f"{wrong}, which has one edge and is not the root; it has {counts[node]}")


def _epigraph(item: Item) -> Mapping[str, Sequence[Any]]:
    """The epigraph from the reader, if the numbers of nodes and edges are unchanged."""
    kept = item.metadata.get("epigraph")
    if not isinstance(kept, Mapping):
        return {}
    sizes = {**dict.fromkeys(PER_NODE, item.structure.size), **dict.fromkeys(PER_EDGE, len(item.structure.edges))}
    return {name: kept[name] for name, size in sizes.items() if name in kept and len(kept[name]) == size}


def _flags(structure: Structure, feature: str, size: int) -> list[bool]:
    return [bool(flag) for flag in structure.features.get(feature, np.zeros(size, dtype=bool))]


def _current(alignment: str, first: int) -> str:
    """The alignment as it was read, if the feature is unchanged."""
    return alignment if first_aligned(alignment) == first else f"~e.{first}" if first >= 0 else ""


def _comments(item: Item) -> Iterator[str]:
    said = {key: value for key, value in item.metadata.items() if isinstance(value, str)}
    if "epigraph" not in item.metadata:
        said = {**({"id": item.id} if item.id else {}), **({"snt": item.texts[0]} if item.texts else {}), **said}
    for key, value in said.items():
        line = f"# ::{key} {value}".rstrip()
        if "\n" in line or "\r" in line or comments(line) != {key: value.rstrip()}:
            raise WriteError(
                f"{key!r}: {shown(str(value))} cannot be written in a comment of PENMAN; take it out of the metadata"
            )
        yield line

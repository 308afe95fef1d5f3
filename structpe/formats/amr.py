"""PENMAN: graphs of meaning (AMR), one node per variable and one per constant; files, and objects of penman.

A ``penman.Graph`` made from a structure has its name as ``id``, and a colon before each relation. Units, the order
(nodes are in the order of the text), and features other than those of the reader are lost.
"""

from __future__ import annotations

import heapq
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from structpe.errors import ReadError
from structpe.formats import text as text_module
from structpe.formats.converting import ConversionError, add_converter
from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.formats.text import Piece, blocks, shown
from structpe.formats.writing import WriteError, as_text, writer
from structpe.structure import Structure

__all__ = [
    "TOO_DEEP",
    "Branch",
    "amr",
    "amr_text",
    "comments",
    "first_aligned",
    "from_penman",
    "graph",
    "graphs",
    "parse",
    "split",
    "to_penman",
    "unquoted",
    "walked",
]

TOKEN = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|#[^\n]*|[()]|[^\s()"#][^\s()"]*|"')
"""Tokens for finding the end of a graph; brackets in strings and comments do not count."""

ANNOUNCED = re.compile(r"\s*#\s*(?::|\Z)")
"""A comment with ``::``, which belongs to a graph, or a truncated one."""
COMMENT = re.compile(r"\s*#([^\n]*)")
TEXT = r"(?:snt|sent|sentence|text|tok|tokens|lem|lemma|lemmas|pos|pos_tags|ner_tags|ner_iob|zh)(?:[-_][a-z]{2})?"
"""Keys of comments whose value is a text, also with a language (``snt_de``): it is the rest of the line."""
FIELD = re.compile(rf"(?<!\S)::(?:(?P<text>{TEXT}(?!\S))|(?P<key>id(?!\S)|[^\s](?:(?!\s::)[^ ])*))\s?")
DIGITS = 9
"""The largest number of digits of the number of a token."""

TOO_DEEP = "the graph is nested too deeply to be parsed; it is unlikely to be an AMR, remove it"

SILENT = logging.NullHandler()
"""Missing concepts and targets raise errors here; without this, the library would also log them."""


def graphs(path: Path) -> Iterator[Piece]:
    """Each graph of a file with the comments before it.

    A graph ends when its brackets close, or at a blank line. So a broken graph does not affect others.
    """
    pending: list[str] = []
    start, size = 1, 0
    for first, block, _ in blocks(path):
        # Comments before a blank line still belong to the next graph; the gap keeps the numbers of lines right.
        start = start if pending else first
        size += first - start - len(pending) + sum(map(len, block))
        if size > text_module.LIMIT:
            raise text_module.too_long("the text before the next graph").at(f"line {start}")
        pending += [""] * (first - start - len(pending))
        pending += block
        if not all(line.lstrip().startswith("#") for line in block):
            yield from split("\n".join(pending), start)
            pending, size = [], 0
    if any(ANNOUNCED.match(line) for line in pending):
        wrong = "the comments of a graph end the file, and no graph follows; the file is truncated, restore it"
        yield Piece(start, "\n".join(pending), ReadError(wrong))


def split(text: str, first: int = 1) -> Iterator[Piece]:
    """The graphs of a text whose first line has the number ``first``; an error ends it."""
    start, depth, line = 0, 0, first
    for token in TOKEN.finditer(text):
        if token[0] == "(":
            depth += 1
        elif token[0] == ")" and depth:
            depth -= 1
            if not depth:
                yield Piece(line, text[start : token.end()])
                behind = token.end() + 1 if text[token.end() : token.end() + 1] == "\n" else token.end()
                line += text.count("\n", start, behind)
                start = behind
        elif not depth and not token[0].startswith("#"):
            here = first + text.count("\n", 0, token.start())
            wrong = f"{shown(token[0])} is outside of every graph; a graph is (variable / concept :role ...)"
            remedy = "Plain text is read with reader='tokens'"
            yield Piece(here, text[start:], ReadError(f"{wrong}. {remedy}").at(f"line {here}"))
            return
    if depth:
        last = first + text.count("\n")
        wrong = f"the graph is not closed: {depth} '(' still open after line {last}; close each, or remove the graph"
        yield Piece(line, text[start:], ReadError(wrong).at(f"line {line}"))


def comments(text: str) -> dict[str, str]:
    """The ``::key value`` pairs of the comments before a graph.

    A line has one pair or several, such as ``# ::id one ::date today``. If a key is repeated, the first in a line and
    the last line count. A ``::`` within a word does not begin a pair. The value of ``::snt``, ``::tok`` and other texts
    is the whole rest of the line; penman would cut it at the next ``::``.
    """
    found: dict[str, str] = {}
    place = 0
    while (comment := COMMENT.match(text, place)) is not None:
        place = comment.end()
        found |= dict(reversed(list(_pairs(comment[1]))))
    return found


def _pairs(comment: str) -> Iterator[tuple[str, str]]:
    fields = list(FIELD.finditer(comment))
    for field, end in zip(fields, [*(field.start() for field in fields[1:]), len(comment)], strict=False):
        if field["text"]:
            yield field["text"], comment[field.end() :].rstrip()
            return
        yield field["key"], comment[field.end() : end].rstrip()


def parse(text: str, first: int = 1) -> Any:
    """The :class:`penman.Tree` of the text of one graph."""
    import penman

    logging.getLogger("penman").addHandler(SILENT)
    try:
        # By lines, since penman would also end a line at characters such as U+2028, which sentences may contain.
        found = next(penman.iterparse(text.split("\n")), None)
    except penman.DecodeError as error:
        line = first + (error.lineno or 1) - 1
        wrong = f"not PENMAN: {error.message} in {shown((error.text or '').strip())}"
        raise ReadError(f"{wrong}; a graph is (variable / concept :role ...)").at(f"line {line}") from None
    except RecursionError:
        raise ReadError(TOO_DEEP) from None
    if found is None:
        raise ReadError(f"there is no graph in {shown(text.strip())}; a graph is (variable / concept :role ...)")
    return found


def unquoted(symbol: str) -> str:
    """A symbol without quotes and escapes."""
    return re.sub(r"\\(.)", r"\1", symbol[1:-1]) if symbol.startswith('"') else symbol


def first_aligned(alignment: str) -> int:
    """The first token of an alignment such as ``~e.3,4``; -1 without an alignment."""
    found = re.search("[0-9]+", alignment)
    if found and len(found[0]) > DIGITS:
        raise ReadError(f"the alignment {shown(alignment)} names a token that no sentence has; correct or remove it")
    return int(found[0]) if found else -1


ALIGNMENT = re.compile(r"~(?:[a-z]\.?)?[0-9]+(?:,[0-9]+)*$")
VARIABLE = re.compile(r"[a-z][0-9]*")


@reader("amr", ".amr .penman .txt", parallel=True)
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
        times = Counter(variable for variable, _ in tree.nodes())
        if twice := [variable for variable, count in times.items() if count > 1]:
            wrong = f"variable {twice[0]!r} is introduced {times[twice[0]]} times"
            raise ReadError(f"{wrong}; give each node a different variable")
        built = _Graph(frozenset(times))
        built.visit(tree.node, built.introduce(tree.node))
    except RecursionError:
        raise ReadError(TOO_DEEP) from None
    return built


class _Node(NamedTuple):
    """A node in the text: its label, symbol and alignment."""

    label: str
    variable: str
    symbol: str
    alignment: str


class _Edge(NamedTuple):
    """A role in the text, reversed if it is inverse; ``mention`` is the alignment of a variable that it mentions."""

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
        self.edges.append(_Edge(site, other, relation, inverted, alignment, role.mention, role.place, role.introduces))

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


class Branch(NamedTuple):
    """An edge, written at one of its ends.

    Attributes:
        edge: its number.
        other: its other end.
        inverted: whether it is written at its target.
        introduces: whether the other end is visited for the first time.
    """

    edge: int
    other: int
    inverted: bool
    introduces: bool


def walked(edges: Sequence[Sequence[int]], inverted: Sequence[bool], root: int, size: int) -> list[list[Branch]]:
    """The edges of each node on the walk; a node without a path is never introduced.

    Args:
        edges: source and target of each.
        inverted: whether to write each edge at its target instead of its source; it is written at the other end if the
            walk does not visit this one.
        root: the first node of the walk.
        size: number of nodes.
    """
    walk = _Walk(edges, inverted, size)
    walk.go(root)
    while walk.turn():  # each time the rest of the graph is reached against one more edge
        pass
    return walk.branches


class _Walk:
    def __init__(self, edges: Sequence[Sequence[int]], inverted: Sequence[bool], size: int) -> None:
        self.ends = [(t, s) if turned else (s, t) for (s, t), turned in zip(edges, inverted, strict=True)]
        self.inverted = list(inverted)
        self.branches: list[list[Branch]] = [[] for _ in range(size)]
        self.seen = [False] * size
        self.here: list[list[int]] = [[] for _ in range(size)]
        self.there: list[list[int]] = [[] for _ in range(size)]
        for edge, (site, other) in enumerate(self.ends):
            self.here[site].append(edge)
            self.there[other].append(edge)
        self.waiting: list[int] = []
        """Edges from other nodes to nodes already seen, the first on top."""

    def go(self, node: int) -> None:
        """Write everything that can be reached from a node."""
        self._see(node)
        stack = [(node, iter(self.here[node]))]
        while stack:
            site, edges = stack[-1]
            for edge in edges:
                other = self.ends[edge][1]
                new = not self.seen[other]
                self.branches[site].append(Branch(edge, other, self.inverted[edge], new))
                if new:
                    self._see(other)
                    stack.append((other, iter(self.here[other])))
                    break
            else:
                stack.pop()

    def turn(self) -> bool:
        """Walk against the first edge that leads to an unseen node. Returns whether there was one."""
        while self.waiting:
            edge = heapq.heappop(self.waiting)
            site, other = self.ends[edge]
            if not self.seen[site]:
                self.branches[other].append(Branch(edge, site, not self.inverted[edge], True))
                self.here[site].remove(edge)
                self.go(site)
                return True
        return False

    def _see(self, node: int) -> None:
        self.seen[node] = True
        for edge in self.there[node]:
            heapq.heappush(self.waiting, edge)


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
def amr_text(item: Item) -> str:
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
    """
    graph = _Writing(item)
    return "".join(f"{line}\n" for line in [*_comments(item), *graph.lines()])


class _Writing:
    """A structure that is converted to text."""

    def __init__(self, item: Item) -> None:
        from penman.models.amr import model

        self.model, self.structure = model, item.structure
        if not self.structure.directed:
            raise WriteError("the edges are undirected, but roles have a direction; give Structure(directed=True)")
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
        """The roles of each node as they were read; None if unknown, or if these no longer give the whole graph."""
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
            wrong = f"{key!r}: {shown(str(value))} cannot be written in a comment of PENMAN"
            raise WriteError(f"{wrong}; take it out of the metadata")
        yield line


def from_penman(thing: Any) -> Structure:
    """The structure of a ``penman.Graph`` or ``penman.Tree``, named by its ``id``.

    Raises:
        ConversionError: the graph cannot be written as a tree, as it is not connected or has no top.
        ReadError: a node has no concept, or another error of the reader ``amr``.
    """
    import penman

    name = str(thing.metadata.get("id") or "")
    try:
        text = penman.format(thing) if isinstance(thing, penman.Tree) else penman.encode(thing)
    except (penman.PenmanError, TypeError) as error:
        raise ConversionError(f"penman cannot write the {type(thing).__name__}: {error}; correct it first") from None
    return graph(text, name)


def to_penman(structure: Structure) -> Any:
    """The structure as a ``penman.Graph``.

    Raises:
        WriteError: it cannot be written as PENMAN: see the writer ``amr``.
    """
    text = as_text(Item(structure, id=structure.name), "amr")
    import penman

    return penman.decode(text)


add_converter("penman", "penman.Graph penman.Tree", "graphs of meaning, and back", from_penman, to_penman)

"""A structure: a labelled graph whose nodes own the units that a Transformer reads.

A sequence is a path graph, a dependency parse a rooted tree, AMR and a knowledge graph labelled digraphs, a molecule
an undirected labelled graph. All of them are this one frozen class; readers create it, encodings read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from structpe.errors import EncodingError, StructureError

__all__ = ["Structure", "check_structures", "of_structures", "path"]

P = ParamSpec("P")
T = TypeVar("T")

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Structure:
    """A labelled graph, and the units (words, subwords) of its nodes.

    Args:
        nodes: label of each node, n of them; at least one.
        edges: (e, 2) integers, each row ``source, target``.
        relations: label of each edge, e of them; empty means that no edge has a label.
        directed: whether edges have a direction. An undirected edge is stored once.
        order: (n,) rank of each node in reading order, a permutation of 0..n-1; None without an order.
        root: the root of a tree, a sentence or an AMR; None without a root.
        units: text of each unit, u of them; None means one unit per node, with the node's label as text.
        owner: (u,) the node that owns each unit, never decreasing; required if and only if ``units`` is given.
        features: further arrays by name, whose first axis is n (nodes) or e (edges, names starting with ``edge_``).
        name: where the structure comes from (``file:item``), for error messages.

    Raises:
        StructureError: there is no node, a label is not a text, edges have a wrong shape, an edge or owner is out of
            range, labels or features have a wrong length, a feature is not finite, or the order is not a permutation.
    """

    nodes: tuple[str, ...]
    edges: Ids
    relations: tuple[str, ...] = ()
    directed: bool = True
    order: Ids | None = None
    root: int | None = None
    units: tuple[str, ...] | None = None
    owner: Ids | None = None
    features: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        """Convert arrays to one form, and check all fields."""
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "relations", tuple(self.relations))
        object.__setattr__(self, "edges", self._pairs(self.edges))
        for name in ("order", "owner"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, self._integers(value, name))
        self._check_graph()
        if self.units is not None or self.owner is not None:
            self._check_units()
        if self.features:
            self._check_features()

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return f"Structure({self.size} nodes, {len(self.edges)} {kind} edges, {self.unit_count} units, {self.name!r})"

    @property
    def size(self) -> int:
        """Number of nodes, n."""
        return len(self.nodes)

    @property
    def unit_count(self) -> int:
        """Number of units, u."""
        return len(self.nodes if self.units is None else self.units)

    @property
    def unit_texts(self) -> tuple[str, ...]:
        """Text of each unit."""
        return self.nodes if self.units is None else self.units

    @property
    def unit_owner(self) -> Ids:
        """(u,) the node that owns each unit."""
        return np.arange(self.size) if self.owner is None else self.owner

    @property
    def reading(self) -> Ids:
        """(n,) the nodes in reading order; by number without an order."""
        return np.arange(self.size) if self.order is None else np.argsort(self.order)

    def relation(self, edge: int) -> str:
        """Label of an edge; empty if edges have no labels."""
        return self.relations[edge] if self.relations else ""

    def adjacency(self) -> NDArray[np.float64]:
        """(n, n) number of edges from each node to each other; symmetric if the structure is undirected.

        Each of several parallel edges counts; a self-loop counts once.
        """
        counts = np.zeros((self.size, self.size))
        np.add.at(counts, (self.edges[:, 0], self.edges[:, 1]), 1.0)
        if not self.directed:
            counts = counts + counts.T - np.diag(np.diag(counts))
        return counts

    def with_units(self, units: Sequence[str], owner: Sequence[int] | Ids) -> Structure:
        """The same graph with other units."""
        return replace(self, units=tuple(units), owner=np.asarray(owner))

    def parents(self) -> Ids:
        """(n,) parent of each node of a rooted tree, -1 for the root.

        Raises:
            StructureError: the structure is not a tree whose edges lead away from its root.
        """
        parent = np.full(self.size, -1)
        for source, target in self.edges:
            if parent[target] >= 0:
                named = f"node {target} ({self.nodes[target]!r})"
                raise self.error(f"{named} has two parents, {parent[target]} and {source}")
            parent[target] = source
        roots = np.flatnonzero(parent < 0)
        if len(roots) != 1:
            raise self.error(f"a tree has one root, this graph has {len(roots)}: {self._named(roots)}")
        self._check_acyclic(parent)
        return parent

    def is_tree(self) -> bool:
        """Whether :meth:`parents` would succeed."""
        try:
            self.parents()
        except StructureError:
            return False
        return True

    def error(self, message: str) -> StructureError:
        """A :class:`StructureError` with the name of this structure."""
        error = StructureError(message)
        return error.at(self.name) if self.name else error

    def _pairs(self, value: Any) -> Ids:
        edges = self._integers(value, "edges")
        if edges.size and (edges.ndim != 2 or edges.shape[1] != 2):
            raise self.error(
                f"edges have shape {edges.shape}; give a row (source, target) per edge, shape (e, 2)"
                + ("; of an edge_index, its transpose" if edges.ndim == 2 and len(edges) == 2 else "")
            )
        return edges.reshape(-1, 2)

    def _integers(self, value: Any, what: str) -> Ids:
        try:
            array = np.asarray(value)
        except ValueError:
            raise self.error(f"{what} are not an array, as their rows differ in length: {value!r}") from None
        if array.size and array.dtype.kind not in "iu":
            raise self.error(f"{what} have dtype {array.dtype}; they number nodes, so give integers")
        array = array.astype(np.int64, order="C")  # a copy, since the caller may change the original
        array.setflags(write=False)
        return array

    def _check_graph(self) -> None:
        size = len(self.nodes)
        if not size:
            raise self.error("the graph has no node; a structure needs at least one")
        self._check_texts("the label of node", self.nodes)
        if self.relations:
            self._check_texts("the relation of edge", self.relations)
        if self.edges.size and self.edges.view(np.uint64).max() >= size:  # a negative number is a large one, unsigned
            wrong = int(np.flatnonzero(((self.edges < 0) | (self.edges >= size)).any(axis=1))[0])
            source, target = self.edges[wrong]
            raise self.error(f"edge {wrong} is {source} -> {target}, but the {size} nodes are 0..{size - 1}")
        if self.relations and len(self.relations) != len(self.edges):
            raise self.error(f"{len(self.relations)} relations for {len(self.edges)} edges; give one per edge, or none")
        if self.root is not None and not isinstance(self.root, (int, np.integer)):
            raise self.error(f"the root is {self.root!r}; give the number of a node, or None")
        if self.root is not None and not 0 <= self.root < size:
            raise self.error(f"the root is {self.root}, but the {size} nodes are 0..{size - 1}")
        if self.order is not None and sorted(self.order.tolist()) != list(range(size)):
            raise self.error(f"the order must be a permutation of 0..{size - 1}, it is {self.order.tolist()}")

    def _check_texts(self, what: str, texts: Sequence[str]) -> None:
        if set(map(type, texts)) <= {str}:
            return
        for place, text in enumerate(texts):
            if not issubclass(type(text), str):
                raise self.error(f"{what} {place} is {text!r}; labels are texts, so give a str")

    def _check_units(self) -> None:
        if self.units is None or self.owner is None:
            raise self.error("units and owner come together: give the owner node of each unit, or neither")
        self._check_texts("unit", self.units)
        if len(self.units) != len(self.owner) or not len(self.units):
            counts = f"{len(self.units)} units and {len(self.owner)} owners"
            raise self.error(f"{counts}; give one owner per unit, at least one")
        if self.owner.min() < 0 or self.owner.max() >= self.size or (np.diff(self.owner) < 0).any():
            wanted = f"nodes 0..{self.size - 1}, never decreasing"
            raise self.error(f"the owners must be {wanted}; they are {self.owner.tolist()}")

    def _check_features(self) -> None:
        for name, value in self.features.items():
            rows = len(self.edges) if name.startswith("edge_") else self.size
            array = np.asarray(value)
            if not len(array.shape) or array.shape[0] != rows:
                raise self.error(f"feature {name!r} has shape {array.shape}; its first axis must have length {rows}")
            if array.dtype.kind not in "biuf":
                raise self.error(f"feature {name!r} has dtype {array.dtype}; give booleans, integers or floats")
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                row = int(np.argwhere(~np.isfinite(array))[0][0])
                raise self.error(f"feature {name!r} is not finite in row {row}; remove or fill NaN and infinity first")

    def _check_acyclic(self, parent: Ids) -> None:
        # After n steps to the parent a node is past the root (-1), unless it is on or below a cycle. Each round doubles
        # the step.
        at = parent
        for _ in range(self.size.bit_length()):
            at = np.where(at >= 0, at[at], -1)
        if (caught := np.flatnonzero(at >= 0)).size:
            raise self.error(f"these nodes lie on or below a cycle, a tree has none: {self._named(caught)}")

    def _named(self, nodes: Ids) -> str:
        shown = ", ".join(f"{i} ({self.nodes[i]!r})" for i in nodes[:5])
        return shown + (", ..." if len(nodes) > 5 else "") if len(nodes) else "none"


def check_structures(given: Any, whose: str) -> None:
    """Check that the argument of a function is a list of one structure or more.

    Args:
        given: the argument.
        whose: the function, in errors.

    Raises:
        EncodingError: it is not a list, is empty, or contains anything else.
    """
    if not isinstance(given, Sequence) or isinstance(given, str) or not len(given):
        raise EncodingError(f"{whose} takes a list of structures, one at least: {whose}([structure], ...)")
    if set(map(type, given)) == {Structure}:
        return
    if odd := [each for each in given if not isinstance(each, Structure)]:
        raise EncodingError(f"{whose} takes a list of structures, and {type(odd[0]).__name__} is not one; {_REMEDY}")


_REMEDY = (
    "structpe.as_structure makes structures of objects of other libraries, and an item that was read has item.structure"
)


def of_structures(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to check its parameters with the hint ``Structure``.

    Raises:
        StructureError: such an argument is not a structure; raised by the function.
    """
    own = signature(function)
    names = [each.name for each in own.parameters.values() if each.annotation in (Structure, "Structure")]

    @wraps(function)
    def checked(*given: P.args, **named: P.kwargs) -> T:
        arguments = own.bind_partial(*given, **named).arguments
        odd = [value for name, value in arguments.items() if name in names and not isinstance(value, Structure)]
        if odd:
            raise StructureError(f"{function.__name__} takes a structure, not {type(odd[0]).__name__}; {_REMEDY}")
        return function(*given, **named)

    return checked


def path(tokens: Sequence[str], name: str = "") -> Structure:
    """A sequence as a structure: the path graph 0 -> 1 -> ... in reading order, rooted at its first token.

    Raises:
        StructureError: there is no token.
    """
    places = np.arange(len(tokens))
    edges = np.stack([places[:-1], places[1:]], axis=1) if len(tokens) > 1 else np.zeros((0, 2), dtype=np.int64)
    return Structure(tuple(tokens), edges, order=places, root=0, name=name)

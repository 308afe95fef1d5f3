"""Files of networkx: node-link JSON and GraphML, with texts as attributes of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from structpe.errors import ConversionError, ReadError, reason_of
from structpe.formats.facts import USUAL, as_texts
from structpe.formats.networkx import from_networkx
from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.formats.rows import from_node_link
from structpe.formats.text import HEAD, check_text, lines
from structpe.formats.xml import elements
from structpe.plain import from_json
from structpe.plain.json import LARGEST
from structpe.structure import Structure

__all__ = ["graphml", "node_link", "node_link_item"]

IDS = ("id", "name")
"""Attributes of a graph that may be its id."""


@reader("node-link", ".json", also=".jsonl .ndjson")
def node_link(
    path: Path,
    label: str = "label",
    relation: str = "relation",
    features: Sequence[str] | None = None,
    text: str | None = None,
) -> Iterator[Yielded]:
    """Graphs in the node-link JSON of networkx and D3: one, a list of them, or one in each line.

    ``text`` or ``texts``, and ``id`` or ``name``, are attributes of a graph, in its ``graph`` or beside its ``nodes``.
    ``root`` is the id of the root node. Others are metadata.

    Args:
        path: the file, of at most 64 MiB unless it is ``.jsonl`` or ``.ndjson``, which have a graph in each line.
        label: attribute of nodes with their label; the id of a node without it is its label.
        relation: attribute of edges with their relation.
        features: names of the attributes of nodes and edges that are features; None: all that are numbers.
        text: attribute of a graph with its text, or a list of texts; None for a usual name.

    Raises:
        ReadError: the file is not JSON, or too large.
    """
    one = partial(node_link_item, label=label, relation=relation, features=features, text=text)
    if path.suffix in (".jsonl", ".ndjson"):
        found = ((line, one, string) for line, string in lines(path) if string.strip())
    else:
        found = ((0, one, each) for each in _whole(path))
    for number, (line, make, each) in enumerate(found, 1):
        yield attempt(partial(make, each, number, path.name), line=line)


def _whole(path: Path) -> Sequence[Any]:
    with path.open("rb") as file:
        check_text(file.peek(HEAD)[:HEAD])
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ReadError(f"the file has more than {LARGEST >> 20} MiB; write a graph in each line, and name it .jsonl")
    data = _parsed(content)
    return data if isinstance(data, list) else [data]


def _parsed(content: str | bytes) -> Any:
    try:
        return from_json(content)
    except ValueError as error:
        raise ReadError(f"it is not JSON ({reason_of(error)}); correct or restore it") from None


def node_link_item(
    given: Any,
    number: int | str = 1,
    file: str = "",
    *,
    label: str = "label",
    relation: str = "relation",
    features: Sequence[str] | None = None,
    text: str | None = None,
) -> Item:
    """The item of a graph in node-link form.

    Args:
        given: the graph, or JSON of it.
        number: its id, if it has none.
        file: name of its file, for errors.
        label, relation, features, text: as of :func:`node_link`.

    Raises:
        ReadError: it is not in this form.
        StructureError: the graph is invalid.
    """
    data = _parsed(given) if isinstance(given, str) else given
    if not isinstance(data, Mapping) or "nodes" not in data:
        raise ReadError(f"it is {repr(data)[:80]}; a graph in node-link form has the lists 'nodes' and 'edges'")
    inner = data.get("graph") or {}
    if not isinstance(inner, Mapping):
        raise ReadError(f"'graph' is {repr(inner)[:80]}; give a mapping, the attributes of the graph")
    own = ("nodes", "edges", "links", "graph", "directed", "multigraph")
    attributes = {**inner, **{key: value for key, value in data.items() if key not in own}}
    bare = {key: data[key] for key in own if key in data and key != "graph"}

    def named(name: str) -> Structure:
        root = attributes.get("root")
        nodes = data["nodes"] if isinstance(data["nodes"], (list, tuple)) else ()
        known = [each.get("id") for each in nodes if isinstance(each, Mapping)]
        graph = {"name": name, "root": _root(root, known)}
        return from_node_link({**bare, "graph": graph}, features, label, relation)

    return _item(named, attributes, number, file, text)


@reader("graphml", ".graphml")
def graphml(
    path: Path,
    label: str = "label",
    relation: str = "relation",
    features: Sequence[str] | None = None,
    text: str | None = None,
) -> Iterator[Yielded]:
    """GraphML, as networkx and yEd write it, read by networkx: one graph, or several.

    ``text``, ``id`` or ``name``, and ``root``, the id of the root node, are attributes of a graph. Others are metadata.

    Args:
        path: the file.
        label, relation, features, text: as of ``node-link``.

    Raises:
        ReadError: the file is not XML or not GraphML, or has something that networkx does not read.
    """
    for _ in elements(path, ""):  # refuses what XML may declare, and what is not well-formed
        pass
    from networkx.readwrite.graphml import GraphMLReader

    graphs: list[Any] = []
    reader = GraphMLReader(node_type=str)
    try:
        with path.open("rb") as file:
            graphs += reader(path=file)
    except OSError:
        raise
    except Exception as error:  # networkx raises many kinds
        wrong = f"{type(error).__name__}: {reason_of(error)}"
        raise ReadError(f"networkx cannot read it as GraphML ({wrong}); correct or restore it") from None
    # networkx leaves ids out, and graphs of other namespaces.
    ids = [each.get("id") for each in reader.xml.getroot() if each.tag.rpartition("}")[2] == "graph"]
    for number, graph in enumerate(graphs, 1):
        graph.graph.setdefault("id", ids[number - 1] if len(ids) == len(graphs) else None)
        yield attempt(partial(_of_graph, graph, number, path.name, label, relation, features, text))


def _of_graph(
    graph: Any, number: int, file: str, label: str, relation: str, features: Sequence[str] | None, text: str | None
) -> Item:
    def named(name: str) -> Structure:
        graph.graph = {"name": name, "root": _root(attributes.get("root"), list(graph))}
        return from_networkx(graph, label, relation, features)

    own = ("node_default", "edge_default")
    attributes = {key: value for key, value in graph.graph.items() if key not in own and value is not None}
    return _item(named, attributes, number, file, text)


def _root(given: Any, nodes: Sequence[Any]) -> Any:
    """The id of the root: of a node that is equal, or has the same text, as GraphML may give a number for it."""
    same = [node for node in nodes if node == given] or [node for node in nodes if str(node) == str(given)]
    if given is not None and not same:
        raise ReadError(f"the root of the graph is {repr(given)[:80]}, but no node has this id; give the id of a node")
    if given is None:
        return None
    return tuple(same[0]) if isinstance(same[0], list) else same[0]


def _item(
    make: Callable[[str], Structure], attributes: Mapping[str, Any], number: int | str, file: str, text: str | None
) -> Item:
    """The item of a graph: ``make`` is given its name, and ``attributes`` are those of the graph itself."""
    if text is not None and text not in attributes:
        there = ", ".join(map(repr, attributes)) or "none"
        raise ReadError(f"the graph has no attribute {text!r} with its text; it has {there}")
    named = text or next((name for name in USUAL["text"] if name in attributes), None)
    own = next((name for name in IDS if attributes.get(name)), None)
    id = str(number if own is None else attributes[own])
    other = {name: value for name, value in attributes.items() if name not in (named, own, "root")}
    try:
        structure = make(f"{file}:{id}" if file else "")
    except ConversionError as error:
        raise ReadError(error.message) from None
    return Item(structure, as_texts(attributes[named]) if named is not None else (), id, other)

"""Items from what one has in Python: structures, mappings, objects of other libraries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from structpe.errors import ConversionError, ReadError, located
from structpe.formats.converting import as_structure, each_structure
from structpe.formats.facts import as_texts, columns_of, item_of_facts
from structpe.formats.graph_files import node_link_item
from structpe.formats.reading import Item
from structpe.formats.text import shown
from structpe.formats.trees import tree
from structpe.structure import Structure

__all__ = ["as_item", "as_items"]


def as_items(given: Any) -> list[Item]:
    """Items from one or several objects; see :func:`as_item`.

    Args:
        given: an object, a sequence or an iterator of objects, or a data set of another library.

    Raises:
        ReadError: there is none, or one is no item; the error names it by its number from 1, and its id.
        StructureError: a graph is invalid.
    """
    if isinstance(given, (Sequence, Iterator)) and not isinstance(given, (str, bytes)):
        several: Iterable[Any] = given
    elif isinstance(given, (Item, Structure, Mapping)):
        several = [given]
    else:  # such as a data set of PyG; a graph of networkx can be iterated over, too
        several = _structures(given)
    items = []
    for number, each in enumerate(several, 1):
        id = str(each["id"]) if isinstance(each, Mapping) and "id" in each else ""
        with located(f"item {number}", *([shown(id)] if id else [])):
            items.append(as_item(each, str(number)))
    if not items:
        raise ReadError("there is no item; give one or more")
    return items


def _structures(given: Any) -> Iterator[Structure]:
    try:
        yield from each_structure(given)
    except ConversionError as error:
        raise ReadError(error.message).at(*error.places) from None


def as_item(given: Any, id: str = "1") -> Item:
    """An item from one object.

    Args:
        given: an item; a structure; a mapping; or an object that :func:`~structpe.formats.converting.as_structure`
            takes, such as a graph of networkx. A mapping has ``facts``, a list of triples, or ``tokens``, ``heads`` and
            maybe ``labels``, as :func:`structpe.tree`, or ``structure``, a structure or such an object, or is a graph
            in node-link form or with an ``edge_index``; also ``text`` or ``texts``, and ``id``. Its other keys are
            metadata.
        id: its id, if it has none.

    Raises:
        ReadError: it is none of these.
        StructureError: the graph is invalid.
    """
    if isinstance(given, Item):
        return given
    try:
        if not isinstance(given, Mapping):
            return Item(as_structure(given), id=id)
        own, texts = str(given.get("id", id)), as_texts(given.get("texts", given.get("text")))
        if "structure" in given:
            other = {key: value for key, value in given.items() if key not in ("structure", "id", "text", "texts")}
            return Item(as_structure(given["structure"]), texts, own, other)
        if "tokens" in given and "heads" in given:
            named = ("tokens", "heads", "labels")
            other = {key: value for key, value in given.items() if key not in (*named, "id", "text", "texts")}
            return Item(_tree(*(given.get(name) for name in named)), texts, own, other)
        if "nodes" in given:
            return node_link_item(given, id)
        if "edge_index" in given:
            graph = {key: value for key, value in given.items() if key not in ("id", "text", "texts")}
            other = {key: value for key, value in graph.items() if key == "y" or isinstance(value, (str, int, float))}
            return Item(as_structure(graph), texts, own, other)
        return item_of_facts([(given, columns_of(list(given), {}, header=False))], own, "")
    except ConversionError as error:
        raise ReadError(error.message).at(*error.places) from None


def _tree(*columns: Any) -> Structure:
    for name, column in zip(("tokens", "heads", "labels"), columns, strict=True):
        if not isinstance(column, (list, tuple)) and not (name == "labels" and column is None):
            raise ReadError(f"{name} is {repr(column)[:80]}; give a list with one for each word")
    return tree(*columns)

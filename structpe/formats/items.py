"""Items from what one has in Python: structures, mappings, objects of other libraries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from structpe.errors import ConversionError, ReadError, located
from structpe.formats.converting import as_structure, each_structure
from structpe.formats.facts import (
    USUAL,
    Line,
    as_texts,
    columns_of,
    coming_back,
    grouped,
    item_of_facts,
    refuse_near,
)
from structpe.formats.graph_files import node_link_item
from structpe.formats.reading import Item
from structpe.formats.text import shown
from structpe.formats.trees import tree
from structpe.structure import Structure

__all__ = ["as_item", "as_items"]


def as_items(given: Any) -> list[Item]:
    """Items from one or several objects; see :func:`as_item`.

    Mappings with facts, as ``csv.DictReader`` makes of a table, are grouped as the reader ``facts`` groups rows: those
    of one fact that follow each other with the same id are one item, or, without ids, those with the same text.

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
    rows = [_row(number, each) for number, each in enumerate(several, 1)]
    items = []
    for number, (own, group) in enumerate(grouped(rows, coming_back(rows)), 1):
        with located(f"item {number}", *_places(group[0])):
            if isinstance(group[0], ReadError):
                raise group[0]
            items.append(_of_rows(group, own) if isinstance(group[0], Line) else as_item(group[0], own))
    if not items:
        raise ReadError("there is no item; give one or more")
    return items


def _structures(given: Any) -> Iterator[Structure]:
    try:
        yield from each_structure(given)
    except ConversionError as error:
        raise ReadError(error.message).at(*error.places) from None


def _is_graph(given: Mapping[str, Any]) -> bool:
    """Whether a mapping has a graph in another form than facts."""
    return any(key in given for key in ("structure", "nodes", "edge_index")) or {"tokens", "heads"} <= given.keys()


def _row(number: int, given: Any) -> Any:
    """A mapping with facts as a row of a table, with its number; anything else is itself."""
    if not isinstance(given, Mapping) or _is_graph(given):
        return given
    try:
        return _line(given, number)
    except ReadError:
        return given  # it is raised again where the item is made


def _line(given: Mapping[Any, Any], number: int = 1) -> Line:
    if odd := [key for key in given if not isinstance(key, str)]:
        more = "; a row has more cells than the header" if odd[0] is None else ""
        raise ReadError(f"the key {repr(odd[0])[:80]} is not a text{more}; give columns by their names")
    return Line(number, given, columns_of(list(given), {}, header=False), unit="row")


def _places(given: Any) -> list[str]:
    """The id and the row of what is given, for errors."""
    if isinstance(given, Line):
        id, row = given.cell("id"), [] if given.columns.facts is not None else [given.place]
    else:
        id, row = given.get("id") if isinstance(given, Mapping) else None, []
    return [*([] if id is None else [shown(str(id))]), *row]


def _of_rows(rows: Sequence[Line], id: str) -> Item:
    """The item of the rows of one graph."""
    for row in rows:
        if row.columns.text is None:
            refuse_near([key for key in row.cells if key not in row.columns], USUAL["text"])
    return item_of_facts([(row.cells, row.columns) for row in rows], id, "")


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
            _check_no_pair(given)
            return Item(as_structure(given), id=id)
        if not _is_graph(given):
            row = _line(given)
            return _of_rows([row], id if row.cell("id") is None else str(row.cell("id")))
        own, texts = str(given.get("id", id)), _texts(given)
        if "structure" in given:
            other = {key: value for key, value in given.items() if key not in ("structure", "id", "text", "texts")}
            return Item(as_structure(given["structure"]), texts, own, other)
        if "tokens" in given and "heads" in given:
            named = ("tokens", "heads", "labels")
            other = {key: value for key, value in given.items() if key not in (*named, "id", "text", "texts")}
            return Item(_tree(*(given.get(name) for name in named)), texts, own, other)
        if "nodes" in given:
            return node_link_item(given, id)
        graph = {key: value for key, value in given.items() if key not in ("id", "text", "texts")}
        other = {key: value for key, value in graph.items() if key == "y" or isinstance(value, (str, int, float))}
        return Item(as_structure(graph), texts, own, other)
    except ConversionError as error:
        raise ReadError(error.message).at(*error.places) from None


def _texts(given: Mapping[str, Any]) -> tuple[str, ...]:
    """The texts of a mapping, whose key is ``text`` or ``texts``."""
    there = [key for key in ("text", "texts") if key in given]
    if len(there) > 1:
        raise ReadError("'text' and 'texts' could each be the texts; leave all but one out")
    if not there:
        refuse_near(given, ("text", "texts"))
    return as_texts(given[there[0]]) if there else ()


def _check_no_pair(given: Any) -> None:
    """Check that an object is not a graph with its text, which is a mapping."""
    if isinstance(given, (tuple, list)) and len(given) == 2 and isinstance(given[1], str):
        graph, text = (repr(each)[:60] for each in given)
        key = "facts" if isinstance(given[0], (list, tuple)) else "structure"
        raise ReadError(f'it is a pair of a graph and a text; give a mapping: {{"{key}": {graph}, "text": {text}}}')


def _tree(*columns: Any) -> Structure:
    for name, column in zip(("tokens", "heads", "labels"), columns, strict=True):
        if not isinstance(column, (list, tuple)) and not (name == "labels" and column is None):
            raise ReadError(f"{name} is {repr(column)[:80]}; give a list with one for each word")
    return tree(*columns)

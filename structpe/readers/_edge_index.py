"""Graphs as arrays: ``edge_index`` (2, m), and others with a row per node or edge, as in PyG and in data sets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.errors import ConversionError, StructureError, listed
from structpe.readers._both_ways import one_way
from structpe.readers._missing import warn_left_out
from structpe.readers._tensors import is_array, to_array
from structpe.structure import Structure

__all__ = [
    "NO_FEATURES",
    "PLACE",
    "Names",
    "ends_of",
    "extras_of",
    "features_of",
    "of_arrays",
    "of_edges_only",
    "way_of",
]

NO_FEATURES = (
    "edge_index",
    "num_nodes",
    "batch",
    "ptr",
    "y",
    "adj",
    "adj_t",
    "n_id",
    "e_id",
    "order",
    "owner",
    "root",
    "directed",
)
"""Tensors that are features only if they are named."""
TEXTS = ("labels", "relations", "units")
"""Lists of texts that are parts of a structure."""
ALWAYS = ("x", "edge_attr")
"""Features of nodes and edges by their names, whatever their shapes."""
Names: TypeAlias = "Sequence[str] | None"
PLACE = "structure_place"
"""The column with the index of a node or edge in a structure."""


def of_arrays(
    given: dict[str, Any], size: int, directed: bool | None, wanted: Names, name: str | None, what: str
) -> Structure:
    """The structure of arrays by name.

    Args:
        given: ``edge_index``, features, and the fields of a structure that :func:`extras_of` knows.
        size: number of nodes.
        directed: whether the graph is directed; None: the item ``directed``; without it, it is undirected if every edge
            has its reverse with the same attributes.
        wanted: names of the features; None: all that fit, except ``y``.
        name: name of the structure; None: the item ``name``.
        what: the graph, in errors.

    Raises:
        ConversionError: there is no ``edge_index``, or it has a wrong shape; ``directed`` is False and an edge has no
            reverse; a feature is missing or does not fit.
        StructureError: there is no node, an edge out of range, or NaN or infinity in a feature.
    """
    pairs = ends_of(given, what)
    found = features_of(given, size, len(pairs), wanted)
    labels, relations = _texts(given, "labels", size), _texts(given, "relations", len(pairs))
    columns = [value for key, value in found.items() if key.startswith("edge_")]
    columns += [np.array(relations)] if relations else []
    _check_range(pairs, size)
    rows, directed = one_way(pairs, columns, way_of(given) if directed is None else directed)
    relations = [relations[row] for row in rows.tolist()] if relations else []
    found = {key: value[rows] if key.startswith("edge_") else value for key, value in found.items()}
    return Structure(
        tuple(labels or [""] * size), pairs[rows], tuple(relations), directed, features=found, **extras_of(given, name)
    )


def ends_of(given: dict[str, Any], what: str) -> NDArray[Any]:
    """(m, 2) the transpose of ``edge_index``."""
    if given.get("edge_index") is None:
        hint = "it has 'adj_t', make it before T.ToSparseTensor" if "adj_t" in given else "T.KNNGraph makes one of pos"
        raise ConversionError(f"the {what} has no 'edge_index'; give one of shape (2, edges), empty for none ({hint})")
    index = to_array(given["edge_index"], "'edge_index'")
    if index.ndim != 2 or index.shape[0] != 2:
        raise ConversionError(f"the 'edge_index' of the {what} has shape {index.shape}; give (2, edges)")
    if index.size and index.dtype.kind not in "iu":
        raise ConversionError(f"the 'edge_index' of the {what} has dtype {index.dtype}; it numbers nodes: integers")
    return index.T.astype(np.int64)


def _check_range(ends: NDArray[Any], size: int) -> None:
    wrong = np.flatnonzero(((ends < 0) | (ends >= size)).any(axis=1))
    if len(wrong):
        source, target = ends[wrong[0]]
        raise StructureError(f"edge {wrong[0]} is {source} -> {target}, but the {size} nodes are 0..{size - 1}")


def of_edges_only(name: object) -> str:
    """The message for a feature of nodes with the name of one of edges."""
    return (
        f"the attribute {name!r} of nodes would be one of edges, as names that begin with 'edge_' are in a structure; "
        "rename it, or leave it out by features="
    )


def features_of(given: dict[str, Any], nodes: int, edges: int, wanted: Names) -> dict[str, NDArray[Any]]:
    """Arrays of a store with a row per node, or per edge; -1 if the store has no nodes or edges."""
    known = {key: value for key, value in given.items() if is_array(value)}
    if wanted is not None and nodes >= 0 and edges >= 0 and (lacking := [key for key in wanted if key not in known]):
        has = listed(known)
        raise ConversionError(f"features names {lacking[0]!r}; attributes of this graph that are tensors: {has}")
    found: dict[str, NDArray[Any]] = {}
    for key, value in known.items():
        rows = edges if key.startswith("edge_") or nodes < 0 else nodes
        fits = len(value) == rows
        chosen = key in wanted if wanted is not None else key not in NO_FEATURES
        if chosen and not fits and (wanted is not None or (key in ALWAYS and rows >= 0)):
            raise ConversionError(f"{key!r} is a feature, and has shape {tuple(value.shape)}; it needs {rows} rows")
        if fits and (chosen or key == PLACE):
            if {"edge_x", "edge_attr"} <= {key, *found}:
                raise ConversionError("'edge_attr' and 'edge_x' are two names for one feature; rename one of them")
            found[key] = to_array(value, repr(key))
    if wanted is None:
        warn_left_out(_left_out(given, nodes, edges, found), "name others 'edge_...', texts 'labels' or 'relations'")
    return {"edge_x" if key == "edge_attr" else key: value for key, value in found.items()}


def _left_out(given: dict[str, Any], nodes: int, edges: int, found: Collection[str]) -> Iterator[str]:
    """Attributes with a row per node or edge that are no features: lists, and arrays whose name is of the other."""
    texts = TEXTS if nodes >= 0 and edges >= 0 else ()
    for key, value in given.items():
        rows = len(value) if isinstance(value, (list, tuple)) or is_array(value) else 0
        if rows > 1 and rows in (nodes, edges) and key not in (*found, *NO_FEATURES):
            yield from () if key in texts and isinstance(value[0], str) else (repr(key),)


def way_of(given: dict[str, Any]) -> bool | None:
    """The attribute ``directed``, which is a tensor in a batch."""
    return None if given.get("directed") is None else bool(given["directed"])


def _texts(given: dict[str, Any], key: str, rows: int) -> list[str]:
    """An attribute that is a list of texts; empty if it is anything else."""
    value = given.get(key)
    if not isinstance(value, (list, tuple)) or not any(isinstance(text, str) for text in value):
        return []
    if wrong := [place for place, text in enumerate(value) if not isinstance(text, str)]:
        odd = repr(value[wrong[0]])[:80]
        raise ConversionError(f"number {wrong[0]} of the texts {key!r} is {odd}, which is no text; give one for each")
    if len(value) != rows:
        raise ConversionError(
            f"the attribute {key!r} has {len(value)} texts where {rows} are needed; nodes or edges have been added or "
            "left out since, so delete or correct it"
        )
    return list(value)


def extras_of(given: dict[str, Any], name: str | None) -> dict[str, Any]:
    """The fields of a structure besides nodes, edges and features."""
    arrays = {key: to_array(given[key], key) for key in ("order", "owner") if is_array(given.get(key))}
    units = {} if given.get("units") is None else {"units": tuple(given["units"])}
    root = {} if given.get("root") is None else {"root": int(given["root"])}
    return {**arrays, **units, **root, "name": str(given.get("name") or "") if name is None else name}

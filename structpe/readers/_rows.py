"""Mappings: rows of data sets with an ``edge_index``, and the fields of a structure by name.

| row of a data set | structure |
|---|---|
| ``edge_index`` (2, m), ``num_nodes`` | edges, nodes without labels |
| ``node_feat`` or ``x`` | feature ``x`` |
| ``edge_attr`` or ``edge_feat`` | feature ``edge_x`` |
| ``labels``, ``relations``: texts | labels of nodes and edges |
| other arrays with a row per node, or, named ``edge_...``, per edge | features of the same name |

``y`` is the target, and no part of a structure unless ``features`` names it. Values are lists, arrays or tensors, as a
data set of Hugging Face's ``datasets``, a table of pandas or of Parquet gives them; None is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from structpe.errors import ConversionError
from structpe.plain.typed import Builder
from structpe.readers._edge_index import Names, of_arrays
from structpe.readers._missing import present
from structpe.readers._tensors import is_array
from structpe.structure import Structure

__all__ = ["from_mapping"]

NAMES = {"node_feat": "x", "edge_feat": "edge_attr"}
"""Names that data sets have for features, and PyG's."""


def from_mapping(
    row: Mapping[str, Any], directed: bool | None = None, features: Names = None, name: str | None = None
) -> Structure:
    """The structure of a row of a data set, or of a mapping with ``nodes`` and ``edges``.

    Args:
        row: see the module; or the arguments of :class:`~structpe.structure.Structure` by name.
        directed: for a row: whether the graph is directed; None: unless every edge has its reverse with the same
            features. Both are one edge then.
        features: for a row: names of the features to use, as in the row; None: all that fit, except ``y``.
        name: of the structure.

    Raises:
        ConversionError: there is neither ``edge_index`` nor ``nodes``; or a shape is wrong.
        StructureError: there is no node, an edge out of range, or NaN or infinity in a feature.
    """
    if row.get("edge_index") is not None:
        return _from_arrays(row, directed, features, name)
    if "nodes" in row:
        return _from_fields(row, directed, features, name)
    has = ", ".join(map(repr, list(row)[:20])) or "nothing"
    raise ConversionError(
        f"a mapping is taken as a row of a data set with 'edge_index', or as a structure with 'nodes' and 'edges'; "
        f"this one has {has}"
    )


def _from_arrays(row: Mapping[str, Any], directed: bool | None, features: Names, name: str | None) -> Structure:
    row = present(row)
    given = {NAMES.get(key, key): _array(key, value) for key, value in row.items()}
    if len(given) < len(row):
        both = [f"{theirs!r} and {ours!r}" for theirs, ours in NAMES.items() if theirs in row and ours in row]
        raise ConversionError(f"the row has {both[0]}, which are two names for one thing; leave one out")
    index = given["edge_index"]
    if (is_array(index) and index.size == 0 and index.ndim < 2) or index.shape == (2, 0):
        given["edge_index"] = np.zeros((2, 0), dtype=np.int64)
    wanted = None if features is None else [NAMES.get(each, each) for each in features]
    return of_arrays(given, _size(given), directed, wanted, name, "row")


def _array(key: str, value: Any) -> Any:
    """A list as an array; anything else unchanged."""
    if isinstance(value, np.ndarray) and value.dtype == object:  # of arrays, as pandas reads nested lists of Parquet
        value = [each.tolist() if isinstance(each, np.ndarray) else each for each in value]
    if not isinstance(value, (list, tuple)):
        return value
    try:
        array = np.asarray(value)
    except ValueError:
        array = None
    if array is None or array.dtype == object:
        raise ConversionError(
            f"{key!r} of the row is a list whose parts have different lengths, or lacks a value; give a matrix"
        )
    return array if array.dtype.kind in "biuf" else value


def _size(given: Mapping[str, Any]) -> int:
    if (said := given.get("num_nodes")) is not None:
        return int(np.asarray(said).reshape(-1)[0])
    for key in ("x", "labels"):
        if given.get(key) is not None:
            return len(given[key])
    raise ConversionError(
        "the row says neither 'num_nodes' nor has it features of nodes, 'node_feat' or 'x', to count them by; add one"
    )


def _from_fields(row: Mapping[str, Any], directed: bool | None, features: Names, name: str | None) -> Structure:
    if directed is not None or features is not None:
        raise ConversionError("'directed' and 'features' are keys of a mapping with 'nodes', and not options")
    known = [field.name for field in fields(Structure)]
    Builder(ConversionError).check_names(known, row, "a structure")
    given = {"edges": np.zeros((0, 2), dtype=np.int64), **row}
    edges = np.asarray(given["edges"])
    given["edges"] = edges.reshape(-1, 2) if not edges.size else edges
    for key in ("order", "owner"):
        if given.get(key) is not None:
            given[key] = np.asarray(given[key])
    given["features"] = {key: np.asarray(value) for key, value in (given.get("features") or {}).items()}
    return Structure(**{**given, **({} if name is None else {"name": name})})

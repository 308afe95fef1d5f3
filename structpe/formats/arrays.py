"""Graphs as arrays: ``edge_index``, features by row, adjacency matrices; and graphs as rows of data sets.

| row of a data set | structure |
|---|---|
| ``edge_index`` (2, m), ``num_nodes`` | edges, nodes without labels |
| ``node_feat`` or ``x`` | feature ``x`` |
| ``edge_attr`` or ``edge_feat`` | feature ``edge_x`` |
| ``labels``, ``relations``: texts | labels of nodes and edges |
| other arrays with a row per node, or, named ``edge_...``, per edge | features of the same name |

``y`` is the target; it becomes a feature only if ``features`` names it. Values are lists, arrays or tensors, as in data
sets of Hugging Face and in tables of pandas and Parquet; None is left out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.errors import ConversionError, StructureError, listed
from structpe.formats.text import present, warn_left_out
from structpe.plain.options import Builder
from structpe.structure import Ids, Structure

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "NO_FEATURES",
    "PLACE",
    "Names",
    "both_ways",
    "ends_of",
    "entries",
    "extras_of",
    "features_of",
    "from_entries",
    "from_mapping",
    "is_array",
    "of_arrays",
    "of_edges_only",
    "one_way",
    "to_array",
    "to_tensor",
    "way_of",
]


def both_ways(structure: Structure) -> tuple[Ids, Ids]:
    """Rows for a library whose edges have a direction.

    Returns:
        (m, 2) source and target, and (m,) the edge of each row. An undirected edge u - v has two consecutive rows,
        u -> v and v -> u; a self-loop has one.
    """
    number = np.arange(len(structure.edges))
    if structure.directed:
        return structure.edges.copy(), number
    rows = np.stack([structure.edges, structure.edges[:, ::-1]], axis=1)
    kept = np.ones((len(rows), 2), dtype=bool)
    kept[:, 1] = rows[:, 0, 0] != rows[:, 0, 1]
    return rows[kept], np.repeat(number, 2)[kept.reshape(-1)]


_FEW = 256
"""The largest number of edges that are paired by a dict in less time than by sorting arrays."""


def one_way(ends: Ids, columns: Sequence[NDArray[Any]], directed: bool | None) -> tuple[Ids, bool]:
    """The rows to keep, and whether the graph is directed.

    A row v -> u is the reverse of an earlier row u -> v that is equal in all columns and not yet paired.

    Args:
        ends: (m, 2) source and target of each row.
        columns: attributes of the rows, of length m.
        directed: whether the graph is directed; None: unless every row that is not a self-loop has its reverse.

    Raises:
        ConversionError: ``directed`` is False, but a row has no reverse.
    """
    if directed:
        return np.arange(len(ends)), True
    if (rows := _of_simple(ends, columns)) is not None:
        return rows, False
    # Rows u -> v and v -> u with equal columns are one group. A row counts +1 or -1 by its direction; where the running
    # sum of its group moves towards 0, the row is the reverse of an earlier one. Sorting does all groups at once.
    way = np.sign(ends[:, 1] - ends[:, 0])
    groups = _groups(np.sort(ends, axis=1), columns)
    rows = np.argsort(groups, kind="stable")
    first = np.flatnonzero(np.diff(groups[rows], prepend=-1))
    total = np.cumsum(way[rows])
    before = np.repeat(total[first] - way[rows][first], np.diff(first, append=len(rows)))
    unpaired = total - before
    kept = (np.abs(unpaired) > np.abs(unpaired - way[rows])) | (way[rows] == 0)
    last = np.append(first[1:], len(rows)) - 1
    alone = rows[first[unpaired[last] != 0]] if len(rows) else rows
    if not len(alone):
        return np.sort(rows[kept]), False
    if directed is None:
        return np.arange(len(ends)), True
    source, target = ends[alone.min()]
    raise ConversionError(
        f"the graph is said to be undirected, but edge {alone.min()}, {source} -> {target}, has no counterpart "
        f"{target} -> {source} with the same attributes; add it, or give directed=True"
    )


def _of_simple(ends: Ids, columns: Sequence[NDArray[Any]]) -> Ids | None:
    """The same rows if each row is there once, and so is its reverse, in a small graph; None for any other graph."""
    if len(ends) > _FEW:
        return None
    source, target = ends.T.tolist()
    place = {pair: number for number, pair in enumerate(zip(source, target, strict=True))}
    found = [*map(place.get, zip(target, source, strict=True))]
    if len(place) < len(found) or None in found:
        return None
    reverse = np.array(found, dtype=np.int64)
    if any(not np.array_equal(column, column[reverse]) for column in columns):
        return None
    return (np.arange(len(ends)) <= reverse).nonzero()[0]


def _groups(pairs: Ids, columns: Sequence[NDArray[Any]]) -> Ids:
    """(m,) a number for each row, the same for equal rows."""
    ends = pairs[:, 0] * (int(pairs.max(initial=0)) + 1) + pairs[:, 1]
    groups: Ids = np.unique(ends, return_inverse=True)[1].reshape(-1)
    for column in columns:
        flat = np.ascontiguousarray(column).reshape(len(pairs), int(np.prod(column.shape[1:], dtype=np.int64)))
        if not flat.size:
            continue
        flat = flat + 0 if flat.dtype.kind == "f" else flat  # -0.0 is 0.0
        # Comparing rows of several numbers as bytes is many times faster.
        whole = flat[:, 0] if flat.shape[1] == 1 else flat.view(np.dtype((np.void, flat.strides[0])))[:, 0]
        codes = np.unique(whole, return_inverse=True)[1].reshape(-1)
        groups = np.unique(groups * (int(codes.max()) + 1) + codes, return_inverse=True)[1].reshape(-1)
    return groups


def is_array(value: object) -> bool:
    """Whether it is a tensor or an array with at least one axis."""
    from torch import Tensor

    return isinstance(value, (Tensor, np.ndarray)) and value.ndim > 0


def to_array(value: Any, what: str) -> NDArray[Any]:
    """A copy as an array, from any device; bfloat16 becomes float32, since NumPy does not have it.

    Raises:
        ConversionError: the tensor is sparse or quantized.
    """
    import torch

    if isinstance(value, np.ndarray):
        return value.copy()
    if value.layout is not torch.strided or value.is_quantized:
        kind = "quantized" if value.is_quantized else str(value.layout).removeprefix("torch.")
        raise ConversionError(f"{what} is a {kind} tensor; convert it first, for example with to_dense()")
    found: NDArray[Any] = (value.float() if value.dtype == torch.bfloat16 else value).numpy(force=True)
    return found.copy()


def to_tensor(value: Any, what: str) -> Tensor:
    """A copy as a tensor.

    Raises:
        ConversionError: PyTorch does not have this dtype.
    """
    import torch

    array = np.array(value)
    try:
        return torch.from_numpy(array.astype(array.dtype.newbyteorder("=")))
    except TypeError:
        raise ConversionError(f"{what} has dtype {array.dtype}, which PyTorch lacks; convert it first") from None


FIELDS = ("order", "owner", "root", "directed")
MOST = 1 << 27
"""Nodes of a graph: a number of them that comes from outside must not take all memory, as 10^10 did."""
NO_FEATURES = ("edge_index", "num_nodes", "batch", "ptr", "y", "adj", "adj_t", "n_id", "e_id", *FIELDS)
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
        ConversionError: there are too many nodes; there is no ``edge_index``, or it has a wrong shape; ``directed`` is
            False and an edge has no reverse; a feature is missing or does not fit.
        StructureError: there is no node, an edge out of range, or NaN or infinity in a feature.
    """
    if size > MOST:
        raise ConversionError(f"the {what} has {size:,} nodes, and {MOST:,} are allowed; encode parts of the graph")
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
    if not ends.size or ends.view(np.uint64).max() < size:  # a negative number is a large one, unsigned
        return
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
        warn_left_out(
            _left_out(given, known, nodes, edges, found), "name others 'edge_...', texts 'labels' or 'relations'"
        )
    return {"edge_x" if key == "edge_attr" else key: value for key, value in found.items()}


def _left_out(
    given: dict[str, Any], known: Collection[str], nodes: int, edges: int, found: Collection[str]
) -> Iterator[str]:
    """Attributes with a row per node or edge that are not features: lists, and arrays with the other's name."""
    texts = TEXTS if nodes >= 0 and edges >= 0 else ()
    for key, value in given.items():
        rows = len(value) if key in known or isinstance(value, (list, tuple)) else 0
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
        raise ConversionError(
            f"number {wrong[0]} of the texts {key!r} is {odd}, which is not a text; give one for each"
        )
    if len(value) != rows:
        found = f"the attribute {key!r} has {len(value)} texts for {rows} nodes or edges"
        raise ConversionError(f"{found}; some were added or left out since, so delete or correct it")
    return list(value)


def _whole(key: str, given: Any) -> int:
    """A whole number, also as an array or a list of one; nothing is rounded, and no text is read."""
    one = given
    while isinstance(one, (list, tuple)) and len(one) == 1:
        one = one[0]
    if is_array(one) and math.prod(one.shape) == 1:
        one = one.item()
    if isinstance(one, bool) or not isinstance(one, (int, np.integer)) or one < 0:
        raise ConversionError(f"{key} is {repr(given)[:80]}; give a whole number, 0 or more")
    return int(one)


def extras_of(given: dict[str, Any], name: str | None) -> dict[str, Any]:
    """The fields of a structure besides nodes, edges and features."""
    arrays = {key: to_array(given[key], key) for key in ("order", "owner") if is_array(given.get(key))}
    units = {} if given.get("units") is None else {"units": tuple(given["units"])}
    root = {} if given.get("root") is None else {"root": _whole("root", given["root"])}
    return {**arrays, **units, **root, "name": str(given.get("name") or "") if name is None else name}


NAMES = {"node_feat": "x", "edge_feat": "edge_attr"}
"""The names of features in data sets, and those in PyG."""


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
    known = "a row of a data set, with 'edge_index', or a structure, with 'nodes' and 'edges'"
    raise ConversionError(f"a mapping is {known}; this one has {has}")


def _from_arrays(row: Mapping[str, Any], directed: bool | None, features: Names, name: str | None) -> Structure:
    row = present(row)
    given = {NAMES.get(key, key): _array(key, value) for key, value in row.items()}
    if len(given) < len(row):
        both = [f"{theirs!r} and {ours!r}" for theirs, ours in NAMES.items() if theirs in row and ours in row]
        raise ConversionError(f"the row has {both[0]}, which are two names for one thing; leave one out")
    index = given["edge_index"]
    if getattr(index, "shape", None) is None:
        kind = type(index).__name__
        raise ConversionError(f"'edge_index' of the row is a {kind}; give a list of sources and one of targets")
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
        raise ConversionError(f"{key!r} of the row has parts of different lengths, or lacks a value; give a matrix")
    return array if array.dtype.kind in "biuf" else value


def _size(given: Mapping[str, Any]) -> int:
    if (said := given.get("num_nodes")) is not None:
        return _whole("num_nodes", said)
    for key in ("x", "labels"):
        if given.get(key) is not None:
            return len(given[key])
    raise ConversionError("the row has no 'num_nodes', 'node_feat' or 'x' to count nodes by; add one")


def _from_fields(row: Mapping[str, Any], directed: bool | None, features: Names, name: str | None) -> Structure:
    if directed is not None or features is not None:
        raise ConversionError("'directed' and 'features' are keys of a mapping with 'nodes', not options")
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


def from_entries(ends: Ids, values: NDArray[Any], shape: tuple[int, ...], directed: bool | None) -> Structure:
    """The structure of a matrix, from its entries that are not zero.

    Args:
        ends: (m, 2) row and column of each entry.
        values: (m,) the entries; booleans, or numbers, which are also the feature ``edge_weight``.
        shape: shape of the matrix.
        directed: whether the graph is directed; None: unless the matrix is symmetric. The two entries of an undirected
            edge are one edge.

    Raises:
        ConversionError: the matrix is not square or not of numbers, or ``directed`` is False and it is not symmetric.
    """
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ConversionError(f"the matrix has shape {shape}; an adjacency matrix is square, a row and column per node")
    if values.dtype.kind not in "biuf":
        raise ConversionError(f"the matrix has dtype {values.dtype}; give truth values, or real numbers as weights")
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    ends, values = ends[order], values[order]
    rows, way = one_way(ends, [values], directed)
    features = {} if values.dtype.kind == "b" else {"edge_weight": values[rows]}
    return Structure(("",) * shape[0], ends[rows], directed=way, features=features)


def entries(structure: Structure) -> tuple[Ids, NDArray[Any]]:
    """(m, 2) row and column, and (m,) value of the entries that are not zero: weights, or True without weights.

    Raises:
        ConversionError: there are parallel edges, a weight is zero, or weights are not one number per edge.
    """
    ends, edge = both_ways(structure)
    values = np.asarray(structure.features.get("edge_weight", np.ones(len(structure.edges), dtype=bool)))
    if values.ndim != 1:
        raise ConversionError(f"the feature 'edge_weight' has shape {values.shape}; give one number per edge")
    if len(wrong := np.flatnonzero(values == 0)):
        raise ConversionError(f"edge {wrong[0]} has the weight 0, which means no edge in a matrix; remove it")
    different, times = np.unique(ends, axis=0, return_counts=True)
    if (times > 1).any():
        source, target = different[int(times.argmax())]
        raise ConversionError(f"there are {times.max()} edges {source} -> {target}; a matrix holds one, join them")
    return ends, values[edge]

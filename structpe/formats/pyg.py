"""PyTorch Geometric: ``Data``, ``HeteroData``, batches of them, and data sets.

| structure | ``Data`` |
|---|---|
| edges | ``edge_index`` (2, m); both directions of an undirected edge, consecutive |
| features ``x``, ``edge_x``, others | ``x``, ``edge_attr``, the same name; tensors of the same type |
| nodes, relations, units | ``labels``, ``relations``, ``units``: lists of texts; none if all labels are empty |
| order, owner, root, directed, name | attributes of these names |

The inverse restores every field of a structure, also through a ``Batch``. Tensors of other graphs become features if
they have a row per node, or a row per edge and a name that begins with ``edge_``. ``y``, the target, is a feature only
if ``features`` includes it. Everything else is left out.

``convert(structure, "pyg", hetero=True)`` makes ``HeteroData``: types of nodes are labels, types of edges relations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import listed, needing
from structpe.formats.arrays import (
    NO_FEATURES,
    Names,
    both_ways,
    ends_of,
    extras_of,
    features_of,
    of_arrays,
    of_edges_only,
    to_array,
    to_tensor,
    way_of,
)
from structpe.formats.converting import ConversionError, add_converter
from structpe.formats.typed import PLACE, EdgeTable, NodeTable, Widths, joined, placed, tables
from structpe.structure import Structure

if TYPE_CHECKING:
    from torch_geometric.data import Data, HeteroData

__all__ = ["from_pyg", "to_pyg"]

BLANK = "to"
"""PyG's relation of edges without one."""
OWN = ("labels", "relations", "units", "owner", "order", "root", "directed", "name")


def from_pyg(
    data: Any, directed: bool | None = None, features: Names = None, widths: Widths = "error", name: str | None = None
) -> Structure:
    """The structure of a ``Data`` or ``HeteroData``.

    In ``HeteroData`` each node is labelled by its type, type by type, and each edge by its relation; there are no
    relations if all are ``to``. Edges are read unchanged, including reverses.

    Args:
        data: the graph, on any device.
        directed: whether the graph is directed; None: the attribute ``directed``; without it, a ``Data`` is undirected
            if every edge has its reverse with the same attributes, as in ``Data.is_undirected``. Both are one edge.
        features: names of the attributes to use (``edge_attr``, not ``edge_x``); None: all that fit, except ``y``.
        widths: how to join features with different shapes in different types of ``HeteroData``: raise an ``error``,
            ``pad`` with zeros up to the widest, or ``blocks``: separate columns for each type, zero in other rows.
        name: name of the structure; None: the attribute ``name``.

    Raises:
        ConversionError: there is no ``edge_index``, or it has a wrong shape; ``directed`` is False and an edge has no
            reverse; a feature is missing or does not fit; a tensor is sparse.
        StructureError: there is no node, an edge out of range, or NaN or infinity in a feature.
    """
    if widths not in ("error", "pad", "blocks"):
        raise ConversionError(f"widths is {widths!r}; give 'error', 'pad' or 'blocks'")
    given = data.to_dict()
    if "_global_store" in given:
        return _from_hetero(data, directed, features, widths, name)
    if (batch := given.get("batch")) is not None and len(batch) and len(np.unique(to_array(batch, "batch"))) > 1:
        wrong = "the Data has several graphs, by its 'batch', but not their boundaries"
        raise ConversionError(f"{wrong}; give the graphs one by one, or a Batch made by Batch.from_data_list")
    return of_arrays(given, data.num_nodes, directed, features, name, "Data")


def to_pyg(structure: Structure, hetero: bool = False) -> Data | HeteroData:
    """The structure as ``Data``, or as ``HeteroData`` with a store for each label and for each relation of two labels.

    ``HeteroData`` has the features of each type, and the index of nodes and edges as ``structure_place``, by which the
    inverse restores the structure. The relation of a reverse of an undirected edge has the prefix ``rev_``; if both
    ends have the same type, it is in the same store.

    Raises:
        ConversionError: PyG uses the name of a feature for something else, or PyTorch does not have its dtype; with
            ``hetero``, a label is empty, or only some relations are empty.
    """
    with needing("torch_geometric", "pyg"):
        from torch_geometric.data import Data, HeteroData
    for key in structure.features:
        if key in (*NO_FEATURES, *OWN, "edge_attr"):
            raise ConversionError(f"the feature {key!r} means something else in PyG; rename it")
    data: Any = HeteroData() if hetero else Data()
    for key, value in _extras(structure).items():
        data[key] = value
    if hetero:
        nodes, edges = tables(structure, BLANK)
        for node in nodes:
            data[node.type].num_nodes = node.count
            _fill(data[node.type], node.features)
        for edge in edges:
            data[edge.type].edge_index = to_tensor(edge.ends.T, "edge_index")
            _fill(data[edge.type], edge.features)
        if not edges:  # no store can hold them
            _fill(data, {key: value for key, value in structure.features.items() if key.startswith("edge_")})
        return data
    ends, edge_ = both_ways(structure)
    data["edge_index"] = to_tensor(ends.T, "edge_index").contiguous()
    if any(structure.nodes):
        data["labels"] = list(structure.nodes)
    if structure.relations:
        data["relations"] = [structure.relations[i] for i in edge_.tolist()]
    data["num_nodes"] = structure.size
    rows = {key: np.asarray(value) for key, value in structure.features.items()}
    _fill(data, {key: value[edge_] if key.startswith("edge_") else value for key, value in rows.items()})
    return data


def _read(
    data: Any, directed: bool | None = None, features: Names = None, widths: Widths = "error"
) -> Structure | Iterator[Structure]:
    from torch_geometric.data import Batch, Dataset

    if not isinstance(data, (Batch, Dataset)):
        return from_pyg(data, directed, features, widths)
    return _each(data, data if isinstance(data, Dataset) else _parts(data), directed, features, widths)


def _each(
    data: Any, graphs: Iterable[Any], directed: bool | None, features: Names, widths: Widths
) -> Iterator[Structure]:
    for number, each in enumerate(graphs):
        said, where = each.to_dict(), f"{type(data).__name__}:{number}"
        own = "name" in said.get("_global_store", said)
        try:
            yield from_pyg(each, directed, features, widths, None if own else where)
        except ConversionError as error:
            raise error.at(where) from None


def _parts(batch: Any) -> list[Any]:
    try:
        graphs: list[Any] = batch.to_data_list()
    except RuntimeError:
        wrong = "the Batch lacks the boundaries of its graphs"
        raise ConversionError(f"{wrong}; make it by Batch.from_data_list, or give the graphs") from None
    return graphs


def _from_hetero(data: Any, directed: bool | None, features: Names, widths: Widths, name: str | None) -> Structure:
    own = data.to_dict()["_global_store"]
    known = {key for each in data.node_types for key in data[each]}
    known |= {name for each in data.edge_types for key in data[each] for name in (key, _edge_name(key))}
    if lacking := [each for each in features or () if each not in {*known, *own}]:
        raise ConversionError(f"features names {lacking[0]!r}; attributes of this graph are: {listed(sorted(known))}")
    nodes, edges = [], []
    for kind in data.node_types:
        given = dict(data[kind].items())
        size = data[kind].num_nodes
        if size is None:
            raise ConversionError(f"nodes {kind!r} have no feature to be counted by; give data[{kind!r}].num_nodes")
        if wrong := [key for key in given if key.startswith("edge_") and (features is None or key in features)]:
            raise ConversionError(of_edges_only(wrong[0]))
        nodes.append(NodeTable(kind, size, features_of(given, size, -1, features)))
    for key in data.edge_types:
        given = {_edge_name(each): value for each, value in data[key].items()}
        if len(given) < len(data[key]):
            raise ConversionError(f"edges {key} have an attribute with 'edge_' before its name and without; rename one")
        ends = ends_of(given, f"edge type {key}")
        edges.append(EdgeTable(key, ends, features_of(given, -1, len(ends), features)))
    if "directed" in own and not placed(nodes):
        raise ConversionError(
            "nodes of this HeteroData have been left out or added since structpe made it; delete its attributes "
            f"{', '.join(key for key in OWN if key in own)}, and {PLACE!r} of each type"
        )
    way = way_of(own)
    if directed is False and way is not False:
        raise ConversionError("HeteroData is read as a directed graph, reverse edges included; leave directed= out")
    fields = joined(nodes, edges, BLANK, widths)
    fields["features"] |= features_of(own, -1, 0, features) if not edges else {}
    return Structure(directed=way is not False, **fields, **extras_of(own, name))


def _edge_name(key: str) -> str:
    return key if key.startswith("edge_") or key == PLACE else f"edge_{key}"


def _extras(structure: Structure) -> dict[str, Any]:
    """The fields of a structure besides nodes, edges and features."""
    said: dict[str, Any] = {"directed": structure.directed, "name": structure.name}
    if structure.root is not None:
        said["root"] = int(structure.root)
    if structure.order is not None:
        said["order"] = to_tensor(structure.order, "order")
    if structure.units is not None and structure.owner is not None:
        said |= {"units": list(structure.units), "owner": to_tensor(structure.owner, "owner")}
    return said


def _fill(store: Any, features: dict[str, NDArray[Any]] | Any) -> None:
    for key, value in features.items():
        store["edge_attr" if key == "edge_x" else key] = to_tensor(value, f"feature {key!r}")


add_converter(
    "pyg",
    "torch_geometric.Data torch_geometric.HeteroData torch_geometric.Batch torch_geometric.Dataset",
    "Data and HeteroData of PyTorch Geometric, batches and data sets of them, and back",
    _read,
    to_pyg,
)

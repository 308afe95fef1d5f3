"""DGL: graphs with one or several types.

| structure | ``DGLGraph`` |
|---|---|
| edges | edges; both directions of an undirected edge, consecutive |
| features ``x``, ``edge_x`` | ``ndata["x"]``, ``edata["x"]``: tensors of the same type |
| nodes, relations | ``ndata["text"]``, ``edata["text"]``: UTF-8 bytes padded with zeros; DGL stores numbers only |
| order, root | ``ndata["order"]``; ``ndata["root"]``, true for one node |

With ``labels=`` or ``relations=``, lists of texts, ``text`` is the index in that list, for an embedding; the inverse
needs the same list. A graph of DGL cannot store some parts of a structure: ``name`` is lost; so is ``directed`` if each
edge has its reverse with the same attributes (give ``directed=``); units raise an error, so split nodes later.
Everything else is restored by the inverse.

``convert(structure, "dgl", hetero=True)`` makes labels and relations into types.

The released DGL cannot be imported with a new PyTorch. Its loader for graphs on disk, ``dgl.graphbolt``, needs
``torchdata.datapipes``, which torchdata 0.10 removed, and a library compiled for a few old versions of PyTorch.
Everything else works without it. So :func:`import_dgl` replaces it, if it cannot work, by a module that raises an error
when it is used; ``import dgl`` works afterwards.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import wraps
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import MissingExtra, StructPEError, listed
from structpe.formats.arrays import both_ways, of_edges_only, one_way, to_array, to_tensor
from structpe.formats.converting import ConversionError, add_converter
from structpe.formats.typed import PLACE, EdgeTable, NodeTable, Widths, as_numbers, as_texts, joined, placed, tables
from structpe.structure import Structure

__all__ = ["from_dgl", "import_dgl", "to_dgl"]

BROKEN = "dgl.graphbolt"


class _StandIn(ModuleType):
    """An empty module. It raises AttributeError for dunder names, since ``inspect`` looks them up in all modules."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        wrong = f"{self.__name__}.{name} is not available: it does not work with the installed PyTorch and torchdata"
        raise AttributeError(f"{wrong}; everything else of DGL does")


def import_dgl() -> Any:
    """Import the module ``dgl`` with a newer PyTorch, and return it.

    ``import dgl`` fails there, but works after this call. Without a chosen backend DGL would write a file into the
    user's home folder, so this function chooses PyTorch.

    Raises:
        MissingExtra: DGL, or one of its requirements, is not installed.
        StructPEError: it cannot be imported for another reason.
    """
    if "dgl" in sys.modules:
        return sys.modules["dgl"]
    spec = importlib.util.find_spec("dgl")
    if spec is None or spec.origin is None:
        raise MissingExtra("dgl", "dgl")
    _forget()
    chosen = os.environ.get("DGLBACKEND")
    os.environ.setdefault("DGLBACKEND", "pytorch")
    if not _works(Path(spec.origin).parent):
        stand_in = _StandIn(BROKEN)
        stand_in.__spec__ = ModuleSpec(BROKEN, None)
        sys.modules[BROKEN] = stand_in
    try:
        import dgl
    except Exception as error:
        _forget()
        if isinstance(error, ModuleNotFoundError) and error.name in ("packaging", "pandas"):
            raise MissingExtra(error.name, "dgl") from None
        raise StructPEError(f"the installed DGL cannot be imported ({type(error).__name__}: {error})") from error
    finally:
        if chosen is None:
            del os.environ["DGLBACKEND"]
    return dgl


def _works(folder: Path) -> bool:
    """Whether the requirements of ``dgl.graphbolt`` are installed."""
    import torch

    try:
        pipes = importlib.util.find_spec("torchdata.datapipes")
    except ModuleNotFoundError:
        pipes = None
    version = torch.__version__.partition("+")[0]
    return pipes is not None and any(folder.glob(f"graphbolt/*graphbolt_pytorch_{version}.*"))


def _forget() -> None:
    """Remove partly imported modules after a failed import."""
    for name in [name for name in sys.modules if name == "dgl" or name.startswith("dgl.")]:
        del sys.modules[name]


BLANK = "_E"
"""The name of the only type of edges in DGL."""
LEFT_OUT = ("_ID", "_TYPE")
"""The attributes that DGL adds to nodes and edges: their origin."""
OWN = ("text", "order", "root", PLACE)
Names = Sequence[str] | None


def from_dgl(
    graph: Any,
    directed: bool | None = None,
    features: Names = None,
    widths: Widths = "error",
    labels: Names = None,
    relations: Names = None,
) -> Structure:
    """The structure of a graph of DGL, not a batch of several.

    With several types, each node is labelled by its type, type by type, and each edge by its relation. Otherwise labels
    are from ``text``, or empty without it.

    Args:
        graph: on any device.
        directed: whether the graph is directed; None: with several types it is; otherwise it is unless each edge has
            its reverse with the same attributes. Both are one edge then.
        features: names in ``ndata`` and ``edata`` to use; None: all except ``label``, the target.
        widths: how to join features with different shapes in different types, as in PyG.
        labels: texts that ``ndata["text"]`` indexes.
        relations: texts that ``edata["text"]`` indexes.

    Raises:
        ConversionError: the graph is a block; a feature is missing; a list of texts is missing; ``directed`` is False
            and an edge has no reverse.
        StructureError: there is no node, or NaN or infinity in a feature.
    """
    if widths not in ("error", "pad", "blocks"):
        raise ConversionError(f"widths is {widths!r}; give 'error', 'pad' or 'blocks'")
    if graph.is_block:
        raise ConversionError("this is a block of DGL, sources and targets of one layer; give a graph")
    if list(graph.ntypes) != ["_N"] or list(graph.etypes) != [BLANK]:
        return _from_types(graph, directed, features, widths)
    ends = np.stack([to_array(side, "edges") for side in graph.edges(order="eid")], axis=1).astype(np.int64)
    nodes, edges = _arrays(graph.ndata, "ndata"), _arrays(graph.edata, "edata")
    _check(features, [*nodes, *edges])
    said = as_texts(edges["text"], relations, "edata['text']") if "text" in edges else ()
    found = {f"edge_{key}": value for key, value in _chosen(edges, features).items()}
    columns = [*found.values(), *([edges["text"]] if "text" in edges else [])]
    rows, way = one_way(ends, columns, directed)
    return Structure(
        as_texts(nodes["text"], labels, "ndata['text']") if "text" in nodes else ("",) * graph.num_nodes(),
        ends[rows],
        tuple(said[row] for row in rows.tolist()) if said else (),
        way,
        features={**_of_nodes(nodes, features), **{key: value[rows] for key, value in found.items()}},
        **_extras_of(nodes),
    )


def to_dgl(structure: Structure, hetero: bool = False, labels: Names = None, relations: Names = None) -> Any:
    """The structure as a graph of DGL; with ``hetero`` with a type for each label, and for each relation of two labels.

    Args:
        structure: the graph.
        hetero: whether labels are types. Then ``structure_place`` in ``ndata`` and ``edata`` has the index of nodes and
            edges, and the relation of a reverse of an undirected edge has the prefix ``rev_`` if types differ.
        labels: texts that index labels; None stores labels as bytes.
        relations: texts that index relations; None stores relations as bytes.

    Raises:
        ConversionError: the nodes are split into units; a text is not in its list; DGL uses the name of a feature for
            something else; PyTorch does not have its dtype; with ``hetero``, a label or relation is empty.
    """
    import torch

    dgl = import_dgl()
    if structure.units is not None:
        raise ConversionError("DGL has no place for units; convert the graph first, then split its nodes")
    for key in structure.features:
        if (short := key.removeprefix("edge_")) in (*OWN, *LEFT_OUT, "label"):
            raise ConversionError(
                f"the feature {key!r} would be {short!r} in DGL, which means something else; rename it"
            )
    if hetero:
        return _to_types(structure, dgl)
    ends, edge = both_ways(structure)
    graph = dgl.graph(tuple(torch.from_numpy(side.copy()) for side in ends.T), num_nodes=structure.size)
    nodes = {"text": as_numbers(structure.nodes, labels, "the label")} if any(structure.nodes) else {}
    _fill(graph.ndata, {**nodes, **_extras(structure)})
    if structure.relations:
        _fill(graph.edata, {"text": as_numbers(structure.relations, relations, "the relation")[edge]})
    for key, value in structure.features.items():
        of_edge = key.startswith("edge_")
        _fill(graph.edata if of_edge else graph.ndata, {key: np.asarray(value)[edge] if of_edge else value})
    return graph


@wraps(from_dgl)  # its options are those of all graphs of a batch
def _read(graph: Any, **options: Any) -> Iterator[Structure]:
    for each in import_dgl().unbatch(graph) if graph.batch_size > 1 else [graph]:
        yield from_dgl(each, **options)


def _from_types(graph: Any, directed: bool | None, features: Names, widths: Widths) -> Structure:
    nodes, edges, own = [], [], []
    _check(
        features,
        sorted(
            {key for kind in graph.ntypes for key in graph.nodes[kind].data}
            | {key for kind in graph.canonical_etypes for key in graph.edges[kind].data}
        ),
    )
    for kind in graph.ntypes:
        arrays = _arrays(graph.nodes[kind].data, f"nodes[{kind!r}].data")
        own.append(arrays)
        nodes.append(NodeTable(kind, graph.num_nodes(kind), _of_nodes(arrays, features, PLACE)))
    for key in graph.canonical_etypes:
        arrays = _arrays(graph.edges[key].data, f"edges[{key}].data")
        ends = np.stack([to_array(side, "edges") for side in graph.edges(etype=key, order="eid")], axis=1)
        renamed = {
            name if name == PLACE else f"edge_{name}": value for name, value in _chosen(arrays, features, PLACE).items()
        }
        edges.append(EdgeTable(key, ends.astype(np.int64), renamed))
    if directed is False and not placed(nodes):
        raise ConversionError("a graph of several types is read as directed, reverse edges too; leave directed= out")
    fields = joined(nodes, edges, BLANK, widths)
    said = {key: np.concatenate([each[key] for each in own]) for key in ("order", "root") if all(key in e for e in own)}
    if said and placed(nodes):
        number = np.argsort(np.concatenate([table.features[PLACE] for table in nodes]))
        said = {key: value[number] for key, value in said.items()}
    return Structure(directed=directed is not False, **fields, **_extras_of(said))


def _to_types(structure: Structure, dgl: Any) -> Any:
    import torch

    nodes, edges = tables(structure, BLANK)
    if not edges:  # DGL needs a type of edges, even without edges
        none = {key: np.asarray(value) for key, value in structure.features.items() if key.startswith("edge_")}
        edges = [EdgeTable((nodes[0].type, BLANK, nodes[0].type), np.zeros((0, 2), dtype=np.int64), none)]
    ends = {each.type: tuple(torch.from_numpy(side.copy()) for side in each.ends.T) for each in edges}
    graph = dgl.heterograph(ends, num_nodes_dict={each.type: each.count for each in nodes})
    said = _extras(structure)
    for node in nodes:
        members = node.features[PLACE]
        own = {key: value[members] for key, value in said.items()}
        _fill(graph.nodes[node.type].data, {**node.features, **own})
    for edge in edges:
        _fill(graph.edges[edge.type].data, edge.features)
    return graph


def _arrays(data: Mapping[str, Any], what: str) -> dict[str, NDArray[Any]]:
    return {key: to_array(value, f"{what}[{key!r}]") for key, value in data.items() if key not in LEFT_OUT}


def _chosen(arrays: Mapping[str, NDArray[Any]], wanted: Names, *more: str) -> dict[str, NDArray[Any]]:
    """The arrays that are features."""
    if wanted is None:
        names = [key for key in arrays if key not in (*OWN, "label") or key in more]
    else:
        names = [key for key in arrays if key in wanted or key in more]
    return {key: arrays[key] for key in names}


def _of_nodes(arrays: Mapping[str, NDArray[Any]], wanted: Names, *more: str) -> dict[str, NDArray[Any]]:
    found = _chosen(arrays, wanted, *more)
    if wrong := [key for key in found if key.startswith("edge_")]:
        raise ConversionError(of_edges_only(wrong[0]))
    return found


def _check(wanted: Names, known: Sequence[str]) -> None:
    if lacking := [key for key in wanted or () if key not in known]:
        raise ConversionError(f"features names {lacking[0]!r}; the graph has: {listed(known)}")


def _extras(structure: Structure) -> dict[str, NDArray[Any]]:
    """Order and root as columns."""
    order = {} if structure.order is None else {"order": structure.order}
    return order if structure.root is None else {**order, "root": np.arange(structure.size) == structure.root}


def _extras_of(nodes: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Order and root from columns, the inverse of :func:`_extras`."""
    found: dict[str, Any] = {"order": nodes["order"]} if "order" in nodes else {}
    if "root" in nodes:
        roots = np.flatnonzero(nodes["root"])
        if nodes["root"].ndim != 1 or len(roots) != 1:
            raise ConversionError("ndata['root'] marks the node that a structure starts from; mark one, or delete it")
        found["root"] = int(roots[0])
    return found


def _fill(data: Any, arrays: Mapping[str, Any]) -> None:
    for key, value in arrays.items():
        data[key.removeprefix("edge_")] = to_tensor(value, f"feature {key!r}")


add_converter("dgl", "dgl.DGLGraph", "graphs of DGL, of one type or several, batches too, and back", _read, to_dgl)

"""Encodings in graphs of DGL, and the positions of a batch.

::

    transform = AddEncoding("random-walk", "undirected-distance")
    graph = transform(graph)                                # ndata["pe_random_walk"], and a type of edges for pairs
    handle = structpe.inject(model, position)               # in its BiasedMHA or GraphormerLayer modules
    model(x, structpe=dgl.batch(graphs))

DGL can store values of pairs only at edges. They are stored at edges of a separate type, which :func:`dgl.batch` joins;
``graph["_E"]`` is the graph without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from structpe.adapters._attentions import AttentionHost, Biased, OfLayer
from structpe.adapters._graph_tensors import Transform, attribute, encoded, listed, restored, values
from structpe.adapters._injection import Injected, Layers, Seat
from structpe.encodings.base import Asked, Encoded, Encoding, as_encodings
from structpe.errors import EncodingError
from structpe.formats import as_structure, import_dgl
from structpe.positions import Positions
from structpe.positions.batch import join

__all__ = ["AddEncoding", "DglHost", "positions"]


class AddEncoding(Transform):
    """A transform that adds encodings to a ``DGLGraph``, as data that ``dgl.batch`` joins.

    | encoding | where |
    |---|---|
    | of units | ``ndata["pe_NAME"]`` (n, ...) |
    | of all pairs | edges of type ``pe_NAME``, key to query, whose data are ``pe_NAME`` (n n, ...) |
    | of listed pairs | the same, with e edges |

    It composes with the transforms of ``dgl.transforms``. ``many`` encodes a list at once, which is faster.
    """

    def many(self, graphs: Sequence[Any], store: str | Path | None = None, jobs: int = 1) -> list[Any]:
        """As :meth:`Transform.many`; graphs have one type of nodes and one of edges.

        Raises:
            EncodingError: a graph has several types, or lacks what an encoding needs.
            StructureError: nodes of a graph have several units.
            StoreError: the folder holds something else.
        """
        if any(len(graph.ntypes) > 1 or len(graph.etypes) > 1 for graph in graphs):
            raise EncodingError(
                "a graph has several types of nodes or edges, as AddEncoding makes them for pairs; apply one "
                "AddEncoding with all encodings to graphs of one type"
            )
        found = encoded([as_structure(graph) for graph in graphs], self.encodings, store, jobs)
        return [
            _added(graph, {encoding: each[row] for encoding, each in found.items()}) for row, graph in enumerate(graphs)
        ]


def positions(batch: Any, encodings: Sequence[Asked]) -> Positions:
    """The positions of a graph, or a batch of graphs, with encodings, padded to the largest.

    Args:
        batch: from ``dgl.batch``, of graphs with :class:`AddEncoding`.
        encodings: encodings of a position model, in any form.

    Raises:
        EncodingError: the batch lacks an encoding.
    """
    sizes = batch.batch_num_nodes().tolist()
    whole = {}
    for encoding in as_encodings(encodings, "positions"):
        name = attribute(encoding)
        if name not in (batch.ndata if encoding.arity == 1 else batch.etypes):
            raise EncodingError(
                f"the batch has no {name}, the encoding {encoding!r}; apply AddEncoding({encoding!r}) to its graphs"
            )
        data, index = batch.ndata if encoding.arity == 1 else batch.edges[name].data, None
        if encoding.arity == 2:
            keys, queries = batch.edges(etype=name, order="eid")
            index = torch.stack([queries, keys])
        whole[encoding] = restored(encoding, data[name], index, sizes)
    return join(whole)


class DglHost(AttentionHost):
    """A model with modules ``BiasedMHA``, as in ``GraphormerLayer``, or such a module."""

    forward = Biased

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        of_layers = {id(each.attn): each for each in model.modules() if type(each).__name__ == "GraphormerLayer"}
        found = [each for each in model.modules() if type(each).__name__ == "BiasedMHA"]
        self.found: Layers = [(of_layers.get(id(each), each), each) for each in found]
        if any(layer is attention for layer, attention in self.found):
            self.takes = self.takes - {"inputs", "layer"}

    def layers(self, where: Any) -> Layers:
        """The layers, each with its attention, in the order of ``model.modules()``."""
        return self.found

    def size(self, attention: Any) -> tuple[int, int]:
        """Width and heads."""
        return int(attention.feat_size), int(attention.num_heads)

    def given(self, structpe: Any, injected: Injected) -> Any:
        """A batch with the encodings of :class:`AddEncoding` as positions; else as it is."""
        own = type(structpe).__module__.startswith("dgl")
        return positions(structpe, injected.position.encodings) if own else structpe

    def hook(self, seat: Seat, layer: Any, attention: Any) -> OfLayer | None:
        """The hook of a ``GraphormerLayer``."""
        acts = seat.injected.position.sites & {"inputs", "layer"}
        return OfLayer(self, seat) if acts and layer is not attention else None


def _added(graph: Any, found: dict[Encoding, Encoded]) -> Any:
    """A copy with the values of nodes, and with edges for the values of pairs."""
    of_pairs = {attribute(each): value for each, value in found.items() if each.arity == 2}
    copy = _with_edges(graph, {name: _ends(value) for name, value in of_pairs.items()}) if of_pairs else graph.clone()
    for encoding, value in found.items():
        name = attribute(encoding)
        (copy.ndata if encoding.arity == 1 else copy.edges[name].data)[name] = values(value).to(graph.device)
    return copy


def _ends(found: Encoded) -> tuple[Tensor, Tensor]:
    """Key and query of each pair."""
    pairs = listed(found)
    if pairs is None:
        pairs = torch.cartesian_prod(*[torch.arange(found.count)] * 2).T
    return pairs[1], pairs[0]


def _with_edges(graph: Any, ends: dict[str, tuple[Tensor, Tensor]]) -> Any:
    """A copy with further types of edges."""
    (kind,), (own,) = graph.ntypes, graph.canonical_etypes
    more = {
        (kind, name, kind): tuple(side.to(graph.device, graph.idtype) for side in each) for name, each in ends.items()
    }
    copy = import_dgl().heterograph(
        {own: graph.edges(order="eid"), **more}, {kind: graph.num_nodes()}, idtype=graph.idtype, device=graph.device
    )
    copy.ndata.update(graph.ndata)
    copy.edges[own].data.update(graph.edata)
    return copy

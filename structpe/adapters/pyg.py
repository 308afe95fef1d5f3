"""Encodings and position models in PyTorch Geometric.

::

    transform = AddEncoding("random-walk", Distance(max_distance=8))        # pe_random_walk (n, k), pe_distance (n n,)
    batch = next(iter(DataLoader(transform.many(graphs, store="encoded", jobs=4), batch_size=32)))
    handle = structpe.inject(model, position)                        # in its GPSConv or TransformerConv layers
    out = model(batch.x, batch.edge_index, batch.batch, structpe=batch)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from structpe.adapters._attentions import AttentionHost
from structpe.adapters._graph_tensors import (
    EdgeHashes,
    Origin,
    Transform,
    attribute,
    beyond,
    encoded,
    is_of,
    listed,
    marked,
    origin,
    restored,
    values,
)
from structpe.adapters._injection import Begin, Host, Injected, Layers, Seat, running
from structpe.adapters._passes import Altered, Passes
from structpe.attention import additive
from structpe.encodings.base import Asked, as_encodings
from structpe.errors import EncodingError, PositionError, needing
from structpe.formats import as_structure
from structpe.positions import Positions
from structpe.positions.batch import join

__all__ = ["AddEncoding", "Message", "PygHost", "of_edges", "positions"]


class Message:
    """m_ij = a_ij (v_j + e_ij),  a_ij = softmax_j(q_i . (k_j + e_ij) / sqrt(d) + b_ij) over the edges j -> i.

    Shi et al. 2021, equation 3, as in ``TransformerConv``, with the bias b.

    Args:
        conv: the layer, whose weights are used.
    """

    def __init__(self, conv: Any) -> None:
        self.conv = conv
        self.biases: Passes[Tensor | None] = Passes()

    def __call__(
        self,
        query_i: Tensor,
        key_j: Tensor,
        value_j: Tensor,
        edge_attr: Tensor | None,
        index: Tensor,
        ptr: Tensor | None,
        size_i: int | None,
    ) -> Tensor:
        """(E, h, d) messages; the bias of a pass is (E, h), or None."""
        from torch_geometric.utils import softmax

        conv = self.conv
        if conv.lin_edge is not None:
            edge_attr = conv.lin_edge(edge_attr).view(-1, conv.heads, conv.out_channels)
            key_j, value_j = key_j + edge_attr, value_j + edge_attr
        scores = (query_i * key_j).sum(-1) / math.sqrt(conv.out_channels)
        if (bias := self.biases.known()) is not None:
            scores = scores + _somewhere(bias, index, int(index.max()) + 1 if size_i is None else size_i)
        conv._alpha = softmax(scores, index, ptr, size_i)
        weights: Tensor = dropout(conv._alpha, conv.dropout, conv.training)
        return value_j * weights[..., None]


def _somewhere(bias: Tensor, index: Tensor, nodes: int) -> Tensor:
    """The bias, with zeros for nodes that may not attend along any of their edges."""
    best = bias.new_full((nodes, bias.shape[1]), -math.inf)
    best = best.scatter_reduce(0, index[:, None].expand_as(bias), bias.detach(), "amax")
    return torch.where(best[index] == -math.inf, 0.0, bias)


def of_edges(mask: Tensor, sizes: Tensor, edge_index: Any, to_target: bool) -> Tensor:
    """(E, h) the entries (b, h, n, n) of the edges of a batch.

    Args:
        mask: the mask of the padded graphs of the batch.
        sizes: (b,) sizes of the graphs.
        edge_index: (2, E) with the numbers of nodes in the batch.
        to_target: whether messages go from the first row to the second.

    Raises:
        PositionError: the edges are not such a tensor, or belong to other graphs.
    """
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
        raise PositionError(
            f"edges are {type(edge_index).__name__}; a position model needs edge_index, a tensor (2, E)"
        )
    j, i = edge_index if to_target else edge_index.flip(0)
    ends = sizes.cumsum(0).to(i.device)
    graph, other = torch.searchsorted(ends, i, right=True), torch.searchsorted(ends, j, right=True)
    if bool(((graph != other) | (graph == len(ends))).any()):
        raise PositionError("an edge leads out of the graphs that the pass is bound to; read the batch of these edges")
    first = (ends - sizes.to(i.device))[graph]
    return mask[graph, :, i - first, j - first]


class AddEncoding(Transform):
    """A ``transform`` or ``pre_transform`` that adds encodings to a ``Data``, as attributes that PyG can batch.

    | encoding | attribute |
    |---|---|
    | of units | ``pe_NAME`` (n, ...) |
    | of all pairs | ``pe_NAME`` (n n, ...), row by row; of a batch, those of one graph after the other |
    | of listed pairs | ``pe_NAME`` (e, ...), and ``pe_NAME_index`` (2, e) with the numbers of nodes in the batch |
    | its origin | ``pe_NAME_of`` (n, 6), for :func:`positions`, which makes the input of position models |

    A pair without a path, elsewhere UNREACHABLE, has one more than the largest possible distance: max_distance + 1, or
    without max_distance the number of nodes; real numbers are infinite. ``many`` encodes a list at once, which is
    faster. The result is a copy of the graph that shares its tensors, as those of PyG's transforms.

    If a transform renumbers or removes nodes, PyG keeps their values, which are those of the encoded graph. It does not
    do so for pairs: add encodings of pairs after all transforms that change nodes or edges, as the last of a
    ``Compose``. :func:`positions` refuses values of another graph.

    Args:
        encodings: encodings, their names, or mappings with ``name`` and options.

    Raises:
        EncodingError: no encoding is given, two have one name, one has sequences, which cannot be batched, or a graph
            has the values of another encoding of the name.
        PositionError: an encoding or an option does not exist.
    """

    def many(self, graphs: Sequence[Any], store: str | Path | None = None, jobs: int = 1) -> list[Any]:
        copies = [copy(data) for data in graphs]  # as the transforms of PyG do
        structures, edges = [as_structure(data) for data in copies], list(map(EdgeHashes, copies))
        for encoding, each in encoded(structures, self.encodings, store, jobs).items():
            name = attribute(encoding)
            for data, found, ends in zip(copies, each, edges, strict=True):
                if (before := data.to_dict().get(f"{name}_of")) is not None and not is_of(encoding, before):
                    raise EncodingError(
                        f"the graph has {name} already, of another encoding or other options than {encoding!r}, which "
                        f"would be replaced; give one encoding of a name, or remove the other: del data.{name}_of"
                    )
                made, number = values(found), 0
                if "unreachable" in encoding.codes:
                    number = beyond(encoding, made, data.num_nodes)
                    made = marked(made, number)
                data[name], data[f"{name}_of"] = made, origin(encoding, ends, made, number)
                # PyG adds the number of earlier nodes to attributes whose names contain "index".
                if (pairs := listed(found)) is not None:
                    data[f"{name}_index"] = pairs
        return copies


def positions(batch: Any, encodings: Sequence[Asked], any_edges: bool = False) -> Positions:
    """The positions of a ``Data`` or ``Batch`` with encodings, padded as PyG's ``to_dense_batch`` pads.

    Args:
        batch: from a ``DataLoader`` of graphs with :class:`AddEncoding`.
        encodings: encodings of a position model, in any form.
        any_edges: whether to accept values of pairs although edges have changed since, such as by a transform that
            drops some; the values are those of the graph before.

    Raises:
        EncodingError: the batch lacks an encoding, has the values of another encoding of the name, or a graph has
            changed since: nodes were added or, for values of pairs, nodes or edges have changed.
    """
    ends = getattr(batch, "ptr", None)
    sizes = [int(batch.num_nodes)] if ends is None else ends.diff().tolist()
    whole = {}
    for encoding in as_encodings(encodings, "positions"):
        name = attribute(encoding)
        of_pairs = encoding.arity == 2
        if name not in batch or (of_pairs and f"{name}_of" not in batch):
            raise EncodingError(
                f"the batch has no {name}, the encoding {encoding!r}, as AddEncoding makes it; apply "
                f"AddEncoding({encoding!r}) to its graphs"
            )
        found = batch[name]
        if f"{name}_of" in batch:
            made_from = Origin(encoding, name, batch, sizes)
            if of_pairs:
                made_from.check_pairs(any_edges)
            if "unreachable" in encoding.codes:
                found = made_from.unmarked(found)
        index = batch[f"{name}_index"] if encoding.sparse else None
        whole[encoding] = restored(encoding, found, index, sizes)
    return join(whole)


class PygHost(AttentionHost):
    """A model with ``GPSConv`` layers or, without these, with ``TransformerConv`` layers, or a layer.

    With a bias of zero ``TransformerConv`` computes the same to the last bit.
    """

    takes = frozenset({"vectors", "sources", "attention", "linear"})
    hint = ". Encodings of nodes can be features x, see structpe.adapters.pyg.AddEncoding"

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        with needing("torch_geometric", "pyg"):
            from torch_geometric.nn import GPSConv, TransformerConv
        gps = [each for each in model.modules() if isinstance(each, GPSConv)]
        if any(not isinstance(each.attn, nn.MultiheadAttention) for each in gps):
            raise PositionError("GPSConv computes attention otherwise; a position model needs attn_type='multihead'")
        self.found: list[Any] = [each.attn for each in gps]
        if not gps:
            self.found, self.takes = (
                [each for each in model.modules() if isinstance(each, TransformerConv)],
                frozenset(),
            )

    def layers(self, where: Any) -> Layers:
        """The attention of each layer, in the order of ``model.modules()``: all that is known of the layer."""
        return [(each, each) for each in self.found]

    def size(self, attention: Any) -> tuple[int, int]:
        """Width, of all heads together, and heads."""
        if isinstance(attention, nn.MultiheadAttention):
            return super().size(attention)
        return attention.heads * attention.out_channels, attention.heads

    def given(self, structpe: Any, injected: Injected) -> Any:
        """A batch with the encodings of :class:`AddEncoding` as positions; else as it is."""
        # The class of a batch is made when it is needed, and belongs to another module.
        own = any(kind.__module__.startswith("torch_geometric") for kind in type(structpe).__mro__)
        return positions(structpe, injected.position.encodings) if own else structpe

    def enter(self, injected: Injected, found: Layers) -> list[Any]:
        """Let layers ask an injected model; return what was changed."""
        if self.takes:
            return super().enter(injected, found)
        begin = Begin(self, injected)
        made: list[Any] = [self.model.register_forward_pre_hook(begin, with_kwargs=True)]
        made.append(self.model.register_forward_hook(begin.end, always_call=True))
        for number, (conv, _) in enumerate(found):
            of_edges = _OfEdges(self, Seat(injected, number), conv)
            made.append(Altered(conv, "message", of_edges.message))
            made.append(conv.register_forward_pre_hook(of_edges, with_kwargs=True))
            made.append(conv.register_forward_hook(of_edges.end, always_call=True))
        return made


class _OfEdges:
    """A hook that gives the message of a ``TransformerConv`` the bias of its edges.

    Args:
        host: the model.
        seat: the place of the position model.
        conv: the layer.
    """

    def __init__(self, host: Host, seat: Seat, conv: Any) -> None:
        self.host, self.seat, self.message = host, seat, Message(conv)

    def __call__(self, conv: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        passing, seat = running(self.host, self.seat.injected), self.seat
        if passing.without(seat.injected):
            self.message.biases.begin(None)
            return
        x = given[0] if given else named["x"]
        edges = given[1] if len(given) > 1 else named["edge_index"]
        x = x[0] if isinstance(x, tuple) else x
        read = passing.graphs(seat.injected, x)
        heads = seat.injected.position.dims
        q = x.new_empty(len(read.units), heads.heads, read.units.shape[1], heads.head)
        mask = additive(seat.terms(passing, q, q.shape[2], bool(conv.training)), q, q.shape[2])
        sizes = read.units.new_full((len(q),), q.shape[2]) if read.present is None else read.present.sum(1)
        self.message.biases.begin(of_edges(mask, sizes, edges, conv.flow == "source_to_target"))

    def end(self, *_: Any) -> None:
        """Forget the bias, after each call."""
        self.message.biases.end()

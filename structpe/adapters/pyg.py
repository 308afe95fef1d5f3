"""Encodings and position models in PyTorch Geometric.

::

    transform = AddEncoding("random-walk", Distance(max_distance=8))        # pe_random_walk (n, k), pe_distance (n n,)
    batch = next(iter(DataLoader(transform.many(graphs, store="encoded", jobs=4), batch_size=32)))
    handle = inject(model, position)                                 # in its GPSConv or TransformerConv layers
    with handle.reading(batch):
        out = model(batch.x, batch.edge_index, batch.batch)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

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
from structpe.adapters._passes import HOOKS, NAME, Passes, added, check_additive, enter, leave, size_of, written
from structpe.encodings.base import Asked, as_encodings
from structpe.errors import EncodingError, PositionError, needing
from structpe.formats import as_structure
from structpe.positions import Dims, PositionModel, Positions, Site
from structpe.positions.batch import join
from structpe.positions.build import Config, as_model

__all__ = ["AddEncoding", "GraphHandle", "Message", "eject", "inject", "of_edges", "positions"]


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
                if f"{name}_of" in data and not is_of(encoding, data[f"{name}_of"]):
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


def inject(model: nn.Module, position: PositionModel | Config) -> GraphHandle:
    """Add a position model to the attention of a model of PyG, as its submodule ``structpe``.

    It acts in all ``GPSConv`` layers or, if there are none, on the scores of edges in all ``TransformerConv`` layers.
    With a bias of zero the results are the same to the last bit, except in a ``GPSConv`` if the bias has a gradient,
    for which PyTorch uses another kernel. ``reading`` of the handle binds a pass to its graphs.

    Args:
        model: a model with such layers, or a layer; ``GPSConv`` with ``attn_type="multihead"``.
        position: a position model built for their width (of all heads together), heads and number, in the order of
            ``model.modules()``; or plain data for :func:`structpe.build`.

    Raises:
        PositionError: the model has no such layer, or already a position model; sizes differ, or the position model
            acts on something else than scores.
        UnsupportedTerm: the position model has terms that do not add to scores.
        MissingExtra: ``torch_geometric`` is not installed.
    """
    sites = _sites(model)
    needed = {_sizes(each) for each in sites}
    position = as_model(position, Dims(*min(needed), len(sites)))
    if needed != {(position.dims.width, position.dims.heads)} or position.dims.layers != len(sites):
        raise PositionError(
            f"position model {position.name!r} was built for {position.dims}; the {len(sites)} layers have "
            f"(width, heads) {', '.join(map(str, sorted(needed)))}"
        )
    if position.sites - {"terms"} or position.own_attention:
        raise PositionError(
            f"position model {position.name!r} acts on something else than the scores of attention; add encodings of "
            f"nodes to the features x, see AddEncoding"
        )
    if NAME in model._modules:
        raise PositionError("there is a position model already; give both as one, first + second, or eject it")
    check_additive(position)
    enter(model, position)
    handle = GraphHandle(position)
    hooks: list[Any] = []
    for number, site in enumerate(sites):
        if isinstance(site, nn.MultiheadAttention):
            hooks.append(site.register_forward_pre_hook(_OfAll(handle, number), with_kwargs=True))
        else:
            of_edges = _OfEdges(handle, number, site)
            hooks.append(site.register_forward_pre_hook(of_edges, with_kwargs=True))
            hooks.append(site.register_forward_hook(of_edges.end, always_call=True))
    model.__dict__[HOOKS] = hooks
    return handle


def eject(model: nn.Module) -> None:
    """Remove the position model from a model."""
    leave(model)
    for module in model.modules():
        if isinstance(module.__dict__.get("message"), Message):
            del module.__dict__["message"]


class GraphHandle:
    """A position model in the layers of a model.

    Args:
        position: the position model.
    """

    def __init__(self, position: PositionModel) -> None:
        self.position = position
        self._passes: Passes[_Pass] = Passes()

    @contextmanager
    def reading(self, batch: Any) -> Iterator[None]:
        """A context for passes over a batch of PyG, over :class:`Positions`, or, with None, without positions."""
        found = batch
        if batch is not None and not isinstance(batch, Positions):
            found = positions(batch, self.position.encodings)
        self._passes.begin(_Pass([], torch.empty(0)) if found is None else _Pass.of(self.position, found))
        try:
            yield
        finally:
            self._passes.end()

    def current(self) -> _Pass | None:
        """The state of the current pass; None without positions.

        Raises:
            PositionError: the pass is not bound to graphs.
        """
        current = self._passes.known()
        if current is None:
            raise PositionError(
                "this model has a position model, and the pass is bound to no graphs; write with "
                "handle.reading(batch): around it, or reading(None) for a pass without"
            )
        return current if current.masks else None


@dataclass(frozen=True)
class _Pass:
    """The state of a pass.

    Attributes:
        masks: (b, h, n, n) the mask of each layer; empty for a pass without positions.
        sizes: (b,) sizes of the graphs.
    """

    masks: list[Tensor]
    sizes: Tensor

    @classmethod
    def of(cls, position: PositionModel, given: Positions) -> _Pass:
        """The state for given positions."""
        like = next((each.detach() for each in position.parameters()), torch.zeros(()))
        prepared = position.prepare(given.to(like.device, like.dtype))
        terms = [position.terms(prepared, Site(i, position.training)) for i in range(position.dims.layers)]
        masks = written(terms, like, position.dims.heads, given, None)
        sizes = torch.full(size_of(given)[:1], size_of(given)[1]) if given.present is None else given.present.sum(1)
        return cls(masks, sizes)


class _OfAll:
    """A hook that adds the mask of a layer to the attention of a ``GPSConv``.

    Args:
        handle: the handle of the position model.
        number: number of the layer.
    """

    def __init__(self, handle: GraphHandle, number: int) -> None:
        self.handle, self.number = handle, number

    def __call__(self, _: Any, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        current = self.handle.current()
        if current is None:
            return given, named
        return given, added(named, current.masks[self.number], "attn_mask", "key_padding_mask")


class _OfEdges:
    """A hook that gives the message of a ``TransformerConv`` the bias of its edges.

    Args:
        handle: the handle of the position model.
        number: number of the layer.
        conv: the layer.
    """

    def __init__(self, handle: GraphHandle, number: int, conv: Any) -> None:
        self.handle, self.number = handle, number
        conv.message = Message(conv)

    def __call__(self, conv: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        current = self.handle.current()
        if current is None:
            conv.message.biases.begin(None)
            return
        edges = given[1] if len(given) > 1 else named["edge_index"]
        to_target = conv.flow == "source_to_target"
        conv.message.biases.begin(of_edges(current.masks[self.number], current.sizes, edges, to_target))

    def end(self, conv: Any, *_: Any) -> None:
        """Forget the bias, after each call."""
        conv.message.biases.end()


def _sites(model: nn.Module) -> list[Any]:
    """The attention of each layer: an ``nn.MultiheadAttention``, or a ``TransformerConv``.

    Raises:
        PositionError: there is no suitable layer.
    """
    with needing("torch_geometric", "pyg"):
        from torch_geometric.nn import GPSConv, TransformerConv
    layers = [each for each in model.modules() if isinstance(each, GPSConv)]
    if any(not isinstance(each.attn, nn.MultiheadAttention) for each in layers):
        raise PositionError("GPSConv computes attention otherwise; a position model needs attn_type='multihead'")
    found = [each.attn for each in layers] or [each for each in model.modules() if isinstance(each, TransformerConv)]
    if not found:
        raise PositionError(f"{type(model).__name__} has no GPSConv and no TransformerConv layer; it needs one or more")
    return found


def _sizes(site: Any) -> tuple[int, int]:
    """Width and heads."""
    if isinstance(site, nn.MultiheadAttention):
        return site.embed_dim, site.num_heads
    return site.heads * site.out_channels, site.heads

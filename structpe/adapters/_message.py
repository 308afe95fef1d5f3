"""The message of PyG's ``TransformerConv``, with what a position model adds to the scores of its edges."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import dropout

from structpe.adapters._passes import Passes
from structpe.errors import PositionError

__all__ = ["Message", "of_edges"]


class Message:
    """m_ij = a_ij (v_j + e_ij),  a_ij = softmax_j(q_i . (k_j + e_ij) / sqrt(d) + b_ij) over the edges j -> i.

    Shi et al. 2021, equation 3, as ``TransformerConv`` computes it, and the bias b.

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
        """(E, h, d) messages; the bias of a pass is (E, h), None for one without."""
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
    """The bias, with zeros where a node may attend along none of its edges."""
    best = bias.new_full((nodes, bias.shape[1]), -math.inf)
    best = best.scatter_reduce(0, index[:, None].expand_as(bias), bias.detach(), "amax")
    return torch.where(best[index] == -math.inf, 0.0, bias)


def of_edges(mask: Tensor, sizes: Tensor, edge_index: Any, to_target: bool) -> Tensor:
    """(E, h) the entries (b, h, n, n) of the edges of a batch.

    Args:
        mask: of the graphs of the batch, padded.
        sizes: (b,) of the graphs.
        edge_index: (2, E) with the numbers of nodes in the batch.
        to_target: whether messages go from the first row to the second.

    Raises:
        PositionError: the edges are no such tensor, or are not those of these graphs.
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

"""Message passing along the edges of a structure, beside attention, on padded batches."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from structpe.data.edges import Edges
from structpe.nn.convolutions import CONVOLUTIONS

__all__ = ["MessagePassing"]


class MessagePassing(nn.Module):
    """x_i' = conv(x_i, {(x_j, e_ji)}): a convolution over all graphs of the batch at once (GPS, Rampasek et al. 2022).

    What a convolution makes of the vectors of edges is not handed on: each layer embeds the labels anew.

    Args:
        convolution: name of one.
        width: d.
        types: number of edge labels, each with an embedding of width d; unused where labels are not read.

    Raises:
        ConfigError: there is no convolution of that name.
    """

    def __init__(self, convolution: str, width: int, types: int) -> None:
        super().__init__()
        self.convolution = CONVOLUTIONS[convolution](width)
        self.labels = nn.Embedding(types, width) if self.convolution.reads_edges else None

    def forward(self, x: Float[Tensor, "b n d"], edges: Edges) -> Float[Tensor, "b n d"]:
        """Messages to each unit; padded units have no edge and get what the convolution gives a lone node."""
        labels = None if self.labels is None else self.labels(edges.types)
        passed: Tensor = self.convolution(x.flatten(0, 1), labels, edges.near)[0]
        return passed.view_as(x)

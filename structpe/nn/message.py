"""Message passing along the edges of a structure, beside attention: PyG's convolutions on padded batches."""

from __future__ import annotations

from typing import Literal, TypeAlias

from jaxtyping import Float
from torch import Tensor, nn

from structpe.data.edges import Edges
from structpe.errors import ConfigError

__all__ = ["Convolution", "MessagePassing"]

Convolution: TypeAlias = Literal["gcn", "gine", "gatv2", "gatedgcn"]
"""GCNConv (no edge labels), GINEConv, GATv2Conv and ResGatedGraphConv of PyTorch Geometric."""


class MessagePassing(nn.Module):
    """x_i' = conv(x_i, {(x_j, e_ji)}): a convolution over all graphs of the batch at once (GPS, Rampasek et al. 2022).

    Args:
        convolution: which one.
        width: d.
        types: number of edge labels, each with an embedding of width d; unused by ``gcn``.
    """

    def __init__(self, convolution: Convolution, width: int, types: int) -> None:
        super().__init__()
        self.labels = nn.Embedding(types, width) if convolution != "gcn" else None
        self.convolution = _convolution(convolution, width)

    def forward(self, x: Float[Tensor, "b n d"], edges: Edges) -> Float[Tensor, "b n d"]:
        """Messages to each unit; padded units have no edge and get what the convolution gives a lone node."""
        labels = {} if self.labels is None else {"edge_attr": self.labels(edges.types)}
        passed: Tensor = self.convolution(x.flatten(0, 1), edges.index, **labels)
        return passed.view_as(x)


def _convolution(name: Convolution, width: int) -> nn.Module:
    from torch_geometric.nn import GATv2Conv, GCNConv, GINEConv, ResGatedGraphConv  # slow to import

    made: nn.Module
    if name == "gcn":
        made = GCNConv(width, width)
    elif name == "gine":
        made = GINEConv(nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)))
    elif name == "gatv2":
        made = GATv2Conv(width, width, edge_dim=width)
    elif name == "gatedgcn":
        made = ResGatedGraphConv(width, width, edge_dim=width)
    else:
        raise ConfigError(f"there is no convolution {name!r}; known are gcn, gine, gatv2, gatedgcn, or null for none")
    return made

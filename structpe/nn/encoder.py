"""A stack of encoder layers whose position model is asked at every site."""

from __future__ import annotations

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from structpe.data.edges import Edges
from structpe.nn.layers import Asked, EncoderLayer, LayerConfig
from structpe.positions.base import PositionModel, Positions, Site
from structpe.terms import Terms

__all__ = ["Encoder"]


class Encoder(nn.Module):
    """Units (b, n, d) to hidden vectors (b, n, d).

    Args:
        config: what the layers have in common; ``config.dims.layers`` of them are made.
        position: the position model, or a sum of them.
    """

    def __init__(self, config: LayerConfig, position: PositionModel) -> None:
        super().__init__()
        self.position = position
        self.layers = nn.ModuleList(EncoderLayer(config, position.own_attention) for _ in range(config.dims.layers))
        self.norm = nn.LayerNorm(config.dims.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Float[Tensor, "b n d"],
        present: Bool[Tensor, "b n"],
        positions: Positions,
        edges: Edges | None = None,
        graphs: Int[Tensor, "b n"] | None = None,
    ) -> Float[Tensor, "b n d"]:
        """Encode a batch.

        Args:
            x: embedded units.
            present: which units are real; the others are padding, attended by nobody.
            positions: what the encodings of the position model say.
            edges: for message passing.
            graphs: where several structures share a row, the number within it that each unit belongs to.
        """
        prepared = self.position.prepare(positions)
        apart = () if graphs is None else (graphs[:, None, :, None] == graphs[:, None, None, :],)
        padding = Terms(mask=(present[:, None, None, :], *apart))
        x = self.dropout(self.position.inputs(x, prepared))
        for number, layer in enumerate(self.layers):
            site = Site(number, self.training)
            x = self.position.layer(x, prepared, site)
            x, prepared = layer(x, Asked(self.position, prepared, site, padding), edges)
        out: Tensor = self.norm(x)
        return out

"""A stack of encoder layers whose position model is asked at every site."""

from __future__ import annotations

from collections.abc import Sequence

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
        causal: whether a unit sees only itself and those before it, as in a language model.
    """

    def __init__(self, config: LayerConfig, position: PositionModel, causal: bool = False) -> None:
        super().__init__()
        self.position, self.causal = position, causal
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
        apart = () if graphs is None else (graphs[:, None, :, None] == graphs[:, None, None, :],)
        positions = positions.of(present.long() - 1 if graphs is None else graphs)
        return self._run(x, positions, Terms(mask=(present[:, None, None, :], *apart), causal=self.causal), edges)[0]

    def segment(
        self, x: Float[Tensor, "b n d"], positions: Positions, memory: Sequence[Float[Tensor, "b c d"]] = ()
    ) -> tuple[Float[Tensor, "b n d"], list[Float[Tensor, "b n d"]]]:
        """Encode a segment that also sees the one before it (Dai et al. 2019, section 3.2).

        Args:
            x: embedded units, all of them real.
            positions: of the c + n units of both segments; only the last n are queries (:meth:`Positions.step`).
            memory: what this method gave for the segment before; empty for the first.

        Returns:
            The hidden vectors, and the memory for the next segment: what each layer was given, without gradient.
        """
        return self._run(x, positions, Terms(causal=self.causal), None, memory)

    def _run(
        self, x: Tensor, positions: Positions, terms: Terms, edges: Edges | None, memory: Sequence[Tensor] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        prepared = self.position.prepare(positions)
        x = self.dropout(self.position.inputs(x, prepared))
        seen = []
        for number, layer in enumerate(self.layers):
            site = Site(number, self.training)
            x = self.position.layer(x, prepared, site)
            seen.append(x.detach())
            before = memory[number] if memory else None
            x, prepared = layer(x, Asked(self.position, prepared, site, terms), edges, before)
        out: Tensor = self.norm(x)
        return out, seen

"""The base of position models that have their own attention."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor

from structpe.positions._sites import Site
from structpe.positions.base import PositionModel
from structpe.terms import Terms

__all__ = ["Block"]


class Block(PositionModel, ABC):
    """A position model that has its own attention, because it is not the one equation.

    It replaces the attention of the layers. Everything else is as for any position model: sites, encodings, spec,
    registry. The formula of parameters includes the projections, which other models leave to the layer.

    Attributes:
        drops: whether its attention drops weights with the probability ``site.dropout``; if not, a layer refuses to
            have ``attention_dropout``.
        heads: whether the number of heads changes anything; if not, a stack refuses one.
    """

    drops: ClassVar[bool] = False
    heads: ClassVar[bool] = True

    def replaces(self, layer: int) -> bool:
        return True

    @property
    def causal(self) -> bool:
        """No: a block has no KV cache, which generation needs."""
        return False

    @abstractmethod
    def attend(self, x: Tensor, prepared: Any, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        """What the attention of a layer adds to the hidden vectors.

        Args:
            x: (b, n, d) the normalised hidden vectors of all units.
            prepared: the result of :meth:`prepare`, or of the attention of the layer before.
            site: the layer.
            terms: of everything else that acts on attention; at least the mask of padding.

        Returns:
            (b, n, d), and what the next layer is given as ``prepared``, such as updated vectors of pairs.

        Raises:
            UnsupportedTerm: one of the terms is not supported.
        """

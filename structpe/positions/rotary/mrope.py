"""Rotary positions of several axes, each turning its own pairs of channels (Wang P. et al. 2024)."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.depth import Depth
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Dims, Positions, Spec
from structpe.positions._checks import numbers
from structpe.positions.rotary._turns import CELLS, RotaryModel, Turns

__all__ = ["MRoPE"]


class MRoPE(RotaryModel, name="mrope"):
    """Rotary positions of several axes, each turning its own pairs of channels (Wang P. et al. 2024).

    ``rotary-half`` whose pairs i of channels are shared out to several numbers per unit: angle t_a(i) b^(-2i/d_h).

    Multimodal rotary positions: a(i) is the axis of pair i. The first ``sections[0]`` pairs turn with the first
    encoding, the next ``sections[1]`` with the second, and so on; the inverse frequencies go on from section to section
    as in one axis. (Wang P. et al. 2024, section 2.1, where the axes are time, height and width; Hugging Face's
    "mrope_section".) Any numbers of a unit can be axes: here, by default, place in the sentence and depth in the tree.

    If all axes are equal, this is ``rotary-half``: so a text is unchanged, whose units have one place on all axes.
    q.k depends only on the differences on all axes.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encodings: the axes, one number per unit each.
        sections: pairs of each axis, d_h/2 in total; None for equal parts, of which the first are one larger where
            that does not divide.
        base: b.

    Raises:
        PositionError: the width of a head is odd, there is no axis, sections do not fit, or an encoding gives a vector
            per unit.
    """

    spec = Spec("wang2024", "tree", CELLS)

    def __init__(
        self,
        dims: Dims,
        encodings: tuple[Encoding, ...] = (Order(), Depth()),
        sections: tuple[int, ...] | None = None,
        base: float = 10000.0,
    ) -> None:
        self._begin(dims, encodings)
        pairs, axes = dims.head // 2, len(encodings)
        if not axes:
            raise PositionError(f"position model {self.name!r} needs an axis; give an encoding or several")
        if sections is None:
            sections = tuple(pairs // axes + (a < pairs % axes) for a in range(axes))
        if len(sections) != axes or sum(sections) != pairs or min(sections) < 0:
            raise PositionError(
                f"position model {self.name!r} has {pairs} pairs of channels in a head and {axes} axes; sections are "
                f"{list(sections)}, give {axes} whole numbers whose sum is {pairs}"
            )
        self.base, self.sections = base, sections

    def prepare(self, positions: Positions) -> Turns:
        """The angles, once for all layers."""
        keys = [numbers(self.name, encoding, positions[encoding]) for encoding in self.encodings]
        queries = [positions.queries(encoding) for encoding in self.encodings]
        return Turns(self._angles(queries), self._angles(keys))

    def _angles(self, axes: list[Tensor]) -> Tensor:
        """(b, 1, n, d_h/2) of (b, n) numbers per axis."""
        parts = torch.split(self.inverse_frequencies().to(axes[0].device), list(self.sections))
        each = [places[..., None].double() * part for places, part in zip(axes, parts, strict=True)]
        return torch.cat(each, dim=-1)[:, None]

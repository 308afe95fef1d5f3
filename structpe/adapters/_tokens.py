"""Positions of the tokens of a batch of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Integer
from numpy.typing import NDArray
from torch import Tensor

from structpe.adapters._places import NONE
from structpe.data.encode import encode
from structpe.data.whole import as_one
from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions import Positions
from structpe.structure import Structure

__all__ = ["TokenPositions"]


@dataclass(frozen=True, eq=False)
class TokenPositions:
    """Positions of the units of b structures, and which of them each token is. A batch holds it as ``structpe``.

    It is no tensor and no mapping, so that trainers hand it on as it is.

    Attributes:
        positions: of the units, from :func:`structpe.encode`.
        size: number of units of the largest structure.
        units: (b, n) unit of each token; -1 for none, as of special tokens, a prompt or padding.
        root: (b,) unit that stands for the structure: that of all tokens of a decoder that reads it by
            cross-attention, unless ``targets`` says more.
        targets: (b, t) unit of each token of the decoder, for cross-attention; None for the root.
        repeats: the most tokens that are one unit, such as the pieces of a word; None for counting them.
    """

    positions: Positions
    size: int
    units: Integer[Tensor, "b n"]
    root: Integer[Tensor, " b"]
    targets: Integer[Tensor, "b t"] | None = None
    repeats: int | None = None

    def __post_init__(self) -> None:
        for name in ("units", "targets"):
            given: Any = getattr(self, name)
            if given is not None and (not isinstance(given, Tensor) or given.ndim != 2 or given.is_floating_point()):
                raise PositionError(f"{name} of TokenPositions are (b, n) whole numbers, a unit for each token, or -1")
        if self.repeats is None:
            object.__setattr__(self, "repeats", _most(self.units))

    @classmethod
    def of(
        cls,
        structures: Sequence[Structure],
        units: Sequence[Sequence[int] | NDArray[Any]],
        encodings: Sequence[Encoding],
        length: int | None = None,
        left: bool = False,
    ) -> TokenPositions:
        """Encode structures, and pad the units of their tokens.

        Args:
            structures: b structures.
            units: of each, the unit of each token, -1 for none.
            encodings: of the position models.
            length: n; None for the longest.
            left: whether padding is on the left.
        """
        return cls.joined(structures, units, encode(structures, encodings), length, left)

    @classmethod
    def joined(
        cls,
        structures: Sequence[Structure],
        units: Sequence[Sequence[int] | NDArray[Any]],
        positions: Positions,
        length: int | None = None,
        left: bool = False,
    ) -> TokenPositions:
        """Pad the units of the tokens of structures that are encoded; arguments as of :meth:`of`."""
        most = max(len(each) for each in units) if length is None else length
        padded = np.full((len(units), most), NONE, dtype=np.int64)
        for row, each in zip(padded, units, strict=True):
            row[slice(most - len(each), None) if left else slice(len(each))] = each
        owners = [(s.root or 0, s.unit_owner) for s in structures]
        root = [int(np.flatnonzero(owner == node)[0]) if (owner == node).any() else 0 for node, owner in owners]
        size = max(each.unit_count for each in structures)
        return cls(positions, size, torch.from_numpy(padded), torch.tensor(root))

    def __len__(self) -> int:
        return len(self.units)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> TokenPositions:
        """The same on another device; itself if it is there already."""
        where = torch.empty(0, device=device).device  # with the number of the GPU
        if self.units.device == where:
            return self
        targets = None if self.targets is None else self.targets.to(where, non_blocking=non_blocking)
        units, root = (x.to(where, non_blocking=non_blocking) for x in (self.units, self.root))
        return TokenPositions(self.positions.to(where), self.size, units, root, targets, self.repeats)


def _most(units: Tensor) -> int:
    """The most tokens (b, n) of one unit; 1 if there are none."""
    if units.numel() == 0 or int(units.max()) == NONE:
        return 1
    counts = units.new_zeros(len(units), int(units.max()) + 1)
    return int(counts.scatter_add_(1, units.clamp(min=0), (units != NONE).to(units.dtype)).max())


as_one(TokenPositions)

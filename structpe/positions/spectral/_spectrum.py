"""Eigenvectors and eigenvalues of a batch, as position models need them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from structpe.encodings.eigenpairs import Eigenpairs
from structpe.positions import Cells, Positions

__all__ = ["Spectrum", "flipped", "learned_cells"]


@dataclass(frozen=True)
class Spectrum:
    """The values of :class:`Eigenpairs`, for n units and k eigenvectors.

    Attributes:
        vectors: (b, n, k) entries; 0 for a missing vector.
        values: (b, n, k) eigenvalues; -1 for a missing vector.
        spaces: (b, n, k) number of the eigenspace, -1 for a missing vector.
    """

    vectors: Tensor
    values: Tensor
    spaces: Tensor

    @classmethod
    def of(cls, positions: Positions, encoding: Eigenpairs, dtype: torch.dtype) -> Spectrum:
        """That of a batch, in some precision."""
        vectors, values, spaces = positions.queries(encoding).to(dtype).unbind(-1)
        return cls(vectors, values, spaces.long())

    @property
    def there(self) -> Tensor:
        """(b, n, k) which vectors exist."""
        return self.spaces >= 0

    def of_structures(self, present: Tensor) -> tuple[Tensor, Tensor]:
        """(b, k) eigenvalues and numbers of eigenspaces, which are the same for all units; -1 for a missing vector.

        Args:
            present: (b, n) which units are real.
        """
        each = (torch.where(present[..., None], of_units, -1) for of_units in (self.values, self.spaces))
        values, spaces = (of_units.amax(1) for of_units in each)
        return values, spaces

    def flipped(self) -> Spectrum:
        """The same with random signs, see :func:`flipped`."""
        return Spectrum(flipped(self.vectors), self.values, self.spaces)

    def pairs(self) -> Tensor:
        """(b, n, k, 2) entry and eigenvalue, both 0 for a missing vector."""
        return torch.stack([self.vectors, torch.where(self.there, self.values, 0)], dim=-1)


def flipped(vectors: Tensor) -> Tensor:
    """Eigenvectors (b, n, k), each of the k with a random sign for the whole batch: v and -v are equally good."""
    return vectors * (torch.randint(0, 2, (vectors.shape[-1],), device=vectors.device) * 2 - 1)


def learned_cells(params: str) -> Cells:
    """The row of Table 1 of what is learned from a spectrum and added to the input, on graphs of any size."""
    return Cells("A", "APE", learnable=True, recurring=False, unbound=True, params=params)

"""Eigenvectors and eigenvalues of a batch, and networks that read a whole graph before attention does."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from structpe.encodings.distance import Adjacency
from structpe.encodings.laplacian import Eigenpairs
from structpe.encodings.order import UnitCount
from structpe.errors import PositionError
from structpe.positions import Cells, Positions
from structpe.terms import Lookup

__all__ = [
    "Nodes",
    "SpectralTransformer",
    "Spectrum",
    "flipped",
    "learned_cells",
    "transformer_width",
]


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


_EDGE_TO, _BOTH_WAYS = 1, 3


@dataclass(frozen=True)
class Nodes:
    """The nodes of each structure of a batch, in the shape of its units.

    Attributes:
        present: (b, n) which units are real.
        shares: (b, n) the weight of a unit in a sum over nodes: its share of its node; 0 for padding.
    """

    present: Tensor
    shares: Tensor

    @classmethod
    def of(cls, positions: Positions, unit_count: UnitCount, dtype: torch.dtype) -> Nodes:
        """Those of a batch that was encoded by ``unit_count``."""
        counts: Tensor = positions[unit_count]
        present = torch.ones_like(counts, dtype=torch.bool) if positions.present is None else positions.present
        return cls(present, torch.where(present, 1 / counts.clamp(min=1).to(dtype), 0))

    @property
    def weights(self) -> Tensor:
        """(b, n, n) the weights of units in a sum over nodes, for each unit; 0 for padding."""
        return self.present[:, :, None] * self.shares[:, None]

    def total(self, x: Tensor) -> Tensor:
        """(b, 1, ...) the sum of x (b, n, ...) over the nodes of each structure."""
        summed: Tensor = (self.shares[:, None] @ x.flatten(2)).view(len(x), 1, *x.shape[2:])
        return summed

    def sums(self, x: Tensor) -> Tensor:
        """(b, n, ...) for each unit the sum of x (b, n, ...) over the nodes of its structure; 0 for padding."""
        return self.total(x) * _like(self.present, x)

    def means(self, x: Tensor) -> Tensor:
        """(b, n, ...) the mean over nodes; 0 for padding."""
        return self.sums(x) / _like(self.count, x)

    @property
    def count(self) -> Tensor:
        """(b, 1) number of nodes, at least 1."""
        return self.shares.sum(-1, keepdim=True).clamp(min=1)

    def neighbours(self, positions: Positions, adjacency: Adjacency) -> Tensor:
        """(b, n, n) weights of a sum over those nodes that an edge joins with a unit's node, either way."""
        codes: Lookup = positions[adjacency]
        joined = codes.map(lambda code: (code >= _EDGE_TO) & (code <= _BOTH_WAYS)).dense()
        return torch.where(joined, self.weights, 0)


def _like(of_units: Tensor, x: Tensor) -> Tensor:
    """(b, n, 1, ...) with as many dimensions as x (b, n, ...)."""
    return of_units.view(*of_units.shape, *[1] * (x.ndim - 2))


class SpectralTransformer(nn.Module):
    """sum_j T(A [v_uj, lambda_j] + a)_j, over the existing eigenvectors j: (b, n, p).

    T is a Transformer over the k eigenvectors of one node, with post-normalisation, as PyTorch's default.

    Args:
        width: p.
        heads: of T; they must divide p.
        layers: of T.
        feedforward: hidden width of T.
        dropout: inside T.
    """

    def __init__(self, width: int, heads: int, layers: int, feedforward: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.embed = nn.Linear(2, width)
        layer = nn.TransformerEncoderLayer(width, heads, feedforward, dropout, batch_first=True)
        self.mix = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, spectrum: Spectrum) -> Tensor:
        """Of the units of a batch."""
        missing = ~spectrum.there.flatten(0, 1)
        unseen = missing & ~missing.all(-1, keepdim=True)  # of units without any, so that no row is masked whole
        mixed = self.mix(self.embed(spectrum.pairs().flatten(0, 1)), src_key_padding_mask=unseen)
        summed: Tensor = mixed.masked_fill(missing[..., None], 0).sum(1)
        return summed.view(*spectrum.vectors.shape[:2], -1)

    @staticmethod
    def count(width: str, layers: str, feedforward: str) -> str:
        """Formula of its number of parameters."""
        p, f = width, feedforward
        return f"3*{p} + {layers}*(4*{p}*{p} + 9*{p} + 2*{p}*{f} + {f})"


def transformer_width(model: str, width: int | None, heads: int, of_all: int) -> int:
    """p: as given, or a quarter of the model's width, 4 at least, rounded up to what the heads divide.

    Raises:
        PositionError: the heads do not divide it.
    """
    if width is None:
        return -(-max(of_all // 4, 4) // heads) * heads
    if heads < 1 or width % heads:
        raise PositionError(f"position model {model!r}: {heads} heads do not divide {width} channels; give others")
    return width

"""Eigenvectors and eigenvalues of a batch, and networks that read a whole graph before attention does."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.distance import Adjacency
from structpe.encodings.order import UnitCount
from structpe.errors import PositionError
from structpe.positions import Cells, Positions
from structpe.positions.block import NONE, SELF
from structpe.positions.by_rows import Ranges, by_rows, cut
from structpe.positions.networks import position_width
from structpe.terms import Lookup

__all__ = [
    "ADJACENCY",
    "UNIT_COUNT",
    "Nodes",
    "SpectralTransformer",
    "Spectrum",
    "flipped",
    "learned_cells",
    "of_structures",
    "transformer_width",
]

ADJACENCY, UNIT_COUNT = Adjacency(), UnitCount()
"""The encodings that :class:`Nodes` reads."""


@dataclass(frozen=True)
class Spectrum:
    """The values of the encoding ``eigenpairs``, for n units and k eigenvectors.

    Attributes:
        vectors: (b, n, k) entries; 0 for a missing vector.
        values: (b, n, k) eigenvalues; -1 for a missing vector.
        spaces: (b, n, k) number of the eigenspace, -1 for a missing vector.
    """

    vectors: Tensor
    values: Tensor
    spaces: Tensor

    @classmethod
    def of(cls, positions: Positions, encoding: Encoding, dtype: torch.dtype, drawn: bool = False) -> Spectrum:
        """That of a batch, in some precision; ``drawn`` with random signs, see :func:`flipped`."""
        vectors, values, spaces = positions.queries(encoding).to(dtype).unbind(-1)
        return cls(flipped(vectors) if drawn else vectors, values, spaces.long())

    @property
    def there(self) -> Tensor:
        """(b, n, k) which vectors exist."""
        return self.spaces >= 0

    def pairs(self) -> Tensor:
        """(b, n, k, 2) entry and eigenvalue, both 0 for a missing vector."""
        return torch.stack([self.vectors, torch.where(self.there, self.values, 0)], dim=-1)


def of_structures(of_units: Tensor, present: Tensor) -> Tensor:
    """(b, k) eigenvalues, or numbers of eigenspaces, which all units of a structure share; -1 for a missing vector.

    Args:
        of_units: (b, n, k) those of a :class:`Spectrum`.
        present: (b, n) which units are real; padding has other numbers.
    """
    return torch.where(present[..., None], of_units, -1).amax(1)


def flipped(vectors: Tensor) -> Tensor:
    """Eigenvectors (b, n, k), each of the k with a random sign for the whole batch: v and -v are equally good."""
    return vectors * (torch.randint(0, 2, (vectors.shape[-1],), device=vectors.device) * 2 - 1)


def learned_cells(params: str) -> Cells:
    """The row of Table 1 of what is learned from a spectrum and added to the input, on graphs of any size."""
    return Cells("A", "APE", learnable=True, recurring=False, unbound=True, params=params)


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
    def of(cls, positions: Positions, dtype: torch.dtype) -> Nodes:
        """Those of a batch that was encoded by ``UNIT_COUNT``."""
        counts: Tensor = positions[UNIT_COUNT]
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

    def within(self, x: Tensor) -> Tensor:
        """(b, n, c) for each first unit the sum over the second one's nodes of x (b, n, n or M, c)."""
        summed: Tensor = (x * self.shares[:, None, :, None]).sum(2)
        return summed

    def sums(self, x: Tensor) -> Tensor:
        """(b, n, ...) for each unit the sum of x (b, n, ...) over the nodes of its structure; 0 for padding."""
        return self.total(x) * _like(self.present, x)

    def means(self, x: Tensor) -> Tensor:
        """(b, n, ...) the mean over nodes; 0 for padding."""
        return self.sums(x) / _like(self.shares.sum(-1, keepdim=True).clamp(min=1), x)

    @property
    def whole(self) -> Tensor:
        """(b, 1, 1) number of nodes."""
        return self.shares.sum(-1)[:, None, None]

    def neighbours(self, positions: Positions) -> Tensor:
        """(b, n, n) weights of a sum over those nodes that an edge joins with a unit's node, either way.

        The batch was encoded by ``ADJACENCY``, too.
        """
        codes: Lookup = positions[ADJACENCY]
        joined = codes.map(lambda code: (code > NONE) & (code < SELF)).dense()
        return torch.where(joined, self.weights, 0)


def _like(of_units: Tensor, x: Tensor) -> Tensor:
    """(b, n, 1, ...) with as many dimensions as x (b, n, ...)."""
    return of_units.view(*of_units.shape, *[1] * (x.ndim - 2))


class _Layer(nn.TransformerEncoderLayer):
    """PyTorch's layer, with its rectifier, whose wide hidden vectors exist for a block of rows at a time."""

    def _ff_block(self, x: Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            return super()._ff_block(x)
        rows, p = x.flatten(0, -2), self.dropout.p if self.training else 0.0
        width = self.linear1.out_features
        # The numbers that PyTorch's dropout draws, a byte each.
        kept = torch.empty(len(rows), width if p else 0, dtype=torch.bool, device=x.device).bernoulli_(1 - p)
        weights = *self.linear1.parameters(), self.linear2.weight / (1 - p), self.linear2.bias
        (made,) = by_rows(_fed, cut(len(rows), 6 * width, x.device), [rows, kept.view(torch.uint8)], weights)
        out: Tensor = self.dropout2(made.view_as(x))
        return out


def _fed(block: Ranges, x: Tensor, kept: Tensor, *weights: Tensor) -> tuple[Tensor]:
    del block
    into, into_bias, out, out_bias = weights
    hidden = functional.linear(x, into, into_bias)
    if kept.shape[-1]:
        with torch.no_grad():  # what is dropped is 0 before the rectifier, through which no gradient comes then
            hidden.mul_(kept)
    return (functional.linear(hidden.relu_(), out, out_bias),)


class SpectralTransformer(nn.Module):
    """sum_j T(A [v_uj, lambda_j] + a)_j, over the existing eigenvectors j: (b, n, p).

    T is a Transformer over the k eigenvectors of one node, with post-normalisation, as PyTorch's default.

    Args:
        width: p.
        heads: of T; they must divide p.
        layers: of T.
        feedforward: hidden width of T.
    """

    def __init__(self, width: int, heads: int, layers: int, feedforward: int) -> None:
        super().__init__()
        self.embed = nn.Linear(2, width)
        layer = _Layer(width, heads, feedforward, batch_first=True)
        self.mix = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, spectrum: Spectrum) -> Tensor:
        """Of the units of a batch."""
        missing = ~spectrum.there.flatten(0, 1)
        unseen = missing & ~missing.all(-1, keepdim=True)  # none of units without any: a row masked whole gives NaN
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
        PositionError: the heads do not divide it, or it leaves no channels for content.
    """
    if width is None:
        width = -(-max(of_all // 4, 4) // heads) * heads
    elif heads < 1 or width % heads:
        raise PositionError(
            f"position model {model!r}: {heads} heads do not divide {width} channels; give a number that divides them"
        )
    return position_width(model, width, of_all)

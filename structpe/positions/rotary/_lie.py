"""Rotations exp(sum_c A_c x_c) of blocks of channels, A_c skew-symmetric and x the coordinates of a unit."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Positions, Site
from structpe.positions._checks import holds, of_arity
from structpe.positions.grids._shapes import coordinates
from structpe.terms import Terms

__all__ = ["GridModel", "LieModel", "Places", "Rotations", "block_of", "skew"]


@dataclass(frozen=True, eq=False)
class Places:
    """Coordinates of the queries (b or 1, n, axes) and of the keys (b or 1, m, axes), float64."""

    queries: Tensor
    keys: Tensor


class GridModel(PositionModel):
    """A model of the coordinates of units, c / ``extent`` on each axis. A unit without a place has 0 on each.

    Args:
        dims: sizes of the Transformer.
        encoding: coordinates per unit.
        axes: how many coordinates.
        extent: what coordinates are divided by.
        sizes: see :class:`PositionModel`.
    """

    def __init__(self, dims: Dims, encoding: Encoding, axes: int, extent: float, **sizes: int) -> None:
        if extent <= 0:
            raise PositionError(f"position model {self.name!r} divides coordinates by an extent above 0, not {extent}")
        super().__init__(dims, [of_arity(self.name, encoding, 1)], **sizes)
        self.axes, self.extent = axes, extent

    def prepare(self, positions: Positions) -> Places:
        """The coordinates; once for all structures of a batch where these have the same, as images of one size.

        Raises:
            PositionError: units have another number of coordinates.
        """
        (encoding,) = self.encodings
        keys = self._scaled(coordinates(self.name, encoding, positions[encoding], self.axes))
        queries = self._scaled(positions.queries(encoding))
        if len(keys) > 1 and holds((keys == keys[:1]).all()):
            return Places(queries[:1], keys[:1])
        return Places(queries, keys)

    def _scaled(self, places: Tensor) -> Tensor:
        return (places if places.is_floating_point() else places.clamp(min=0)).double() / self.extent


@dataclass(frozen=True, eq=False)
class Rotations:
    """Rotations (b or 1, h, n, blocks, g, g) of the first channels of queries, and of keys."""

    queries: Tensor
    keys: Tensor

    def turned(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Each block of g channels turned; the channels after the last block as they are."""
        return _turned(q, self.queries), _turned(k, self.keys)


class LieModel(GridModel):
    """Rotates blocks of g channels of a head by R(x) = exp(sum_c A_c x_c); a variant defines the A_c."""

    @abstractmethod
    def generators(self, layer: int) -> Tensor:
        """(h or 1, blocks, axes, g, g) the skew-symmetric A_c."""

    def terms(self, prepared: Places, site: Site) -> Terms:
        generators = self.generators(site.layer)
        keys = _rotations(prepared.keys, generators)
        same = prepared.queries.shape == prepared.keys.shape  # then they are the same units
        queries = keys if same else _rotations(prepared.queries, generators)
        return Terms(maps=(Rotations(queries, keys).turned,))


def block_of(model: str, dims: Dims, block: int | None) -> int:
    """The width of the blocks: as given, or 8, or that of a head if it is smaller.

    Raises:
        PositionError: below 2, or larger than a head.
    """
    width = min(8, dims.head) if block is None else block
    if not 2 <= width <= dims.head:
        raise PositionError(
            f"position model {model!r} turns blocks of {width} channels in heads of width {dims.head}; give a block of "
            f"2 channels or more, and no more than a head has"
        )
    return width


def skew(triangle: Tensor, width: int) -> Tensor:
    """(..., g, g) skew-symmetric matrices of the entries (..., g(g-1)/2) above their diagonals, row by row."""
    rows, columns = torch.triu_indices(width, width, offset=1, device=triangle.device).unbind()
    flat = triangle.new_zeros(*triangle.shape[:-1], width * width)
    upper = flat.scatter(-1, (rows * width + columns).expand(triangle.shape), triangle)
    upper = upper.view(*triangle.shape[:-1], width, width)
    return upper - upper.mT


def _rotations(places: Tensor, generators: Tensor) -> Tensor:
    exact = torch.promote_types(generators.dtype, torch.float32)
    with torch.autocast(generators.device.type, enabled=False):
        exponents = torch.einsum("bnc,hpcij->bhnpij", places.to(exact), generators.to(exact))
        rotations: Tensor = torch.linalg.matrix_exp(exponents.contiguous())
    return rotations


def _turned(x: Tensor, rotations: Tensor) -> Tensor:
    blocks, width = rotations.shape[3], rotations.shape[5]
    turning, rest = x[..., : blocks * width], x[..., blocks * width :]
    vectors = turning.reshape(*x.shape[:3], blocks, width, 1)
    turned = (rotations.to(x.dtype) @ vectors).reshape(turning.shape)
    return torch.cat([turned, rest], dim=-1) if rest.shape[-1] else turned

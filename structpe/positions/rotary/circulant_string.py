"""Circulant-STRING: exponentials of circulant matrices, applied by Fourier transforms (Schenck et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Coordinates
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Site, Spec
from structpe.positions.rotary._lie import GridModel, Places
from structpe.terms import Terms

__all__ = ["CirculantString"]


@dataclass(frozen=True, eq=False)
class Phases:
    """Angles (b or 1, h, n, d_h/2 + 1) of the Fourier coefficients of queries, and of keys."""

    queries: Tensor
    keys: Tensor

    def turned(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Each coefficient turned by its angle."""
        return _turned(q, self.queries), _turned(k, self.keys)


def _turned(x: Tensor, angles: Tensor) -> Tensor:
    with torch.autocast(x.device.type, enabled=False):
        spectrum = torch.fft.rfft(x.to(angles.dtype))
        turned: Tensor = torch.fft.irfft(spectrum * torch.complex(angles.cos(), angles.sin()), n=x.shape[-1])
    return turned.to(x.dtype)


class CirculantString(GridModel, name="circulant-string"):
    """Circulant-STRING: exponentials of circulant matrices, applied by Fourier transforms (Schenck et al. 2025).

    (q_i, k_j) -> (R(x_i) q_i, R(x_j) k_j),  R(x) = exp(sum_c x_c (C_c - C_c^T)), C_c circulant and learned.

    Circulant matrices commute, so that q.k depends only on the offsets on all axes. A Fourier transform makes them
    diagonal: R(x) q turns its f-th coefficient by 2 sum_c x_c Im F(c)_f, c the first column of C_c, in d_h log d_h
    operations. Columns (d_h) are learned for each layer, head and axis. (Schenck et al. 2025, section 3.2.2. No code by
    the authors is known: compared with the exponential of the matrices.) They start from N(0, ``std``^2), our choice;
    coordinates are divided by ``extent``. A class token, without a place, is not turned.

    Args:
        dims: sizes of the Transformer; the width of a head must be 3 or more.
        encoding: coordinates per unit; a sequence has one axis, the others are 0.
        axes: how many coordinates.
        extent: what coordinates are divided by.
        std: deviation that the entries start from.

    Raises:
        PositionError: the heads are too narrow, the extent is 0 or less, or another number of coordinates.
    """

    spec = Spec("schenck2025", "grid", Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="l*d*a"))

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Coordinates(),
        axes: int = 2,
        extent: float = 1.0,
        std: float = 0.1,
    ) -> None:
        if dims.head < 3:
            raise PositionError(
                f"position model {self.name!r} turns nothing in heads of width {dims.head}; give a width of 3 or more"
            )
        super().__init__(dims, encoding, axes, extent, a=axes)
        self.columns = nn.Parameter(torch.randn(dims.layers, dims.heads, axes, dims.head) * std)

    def terms(self, prepared: Places, site: Site) -> Terms:
        columns = self.columns[site.layer]
        exact = torch.promote_types(columns.dtype, torch.float32)
        frequencies = 2 * torch.fft.rfft(columns.to(exact)).imag
        with torch.autocast(columns.device.type, enabled=False):
            queries, keys = (
                torch.einsum("bnc,hcf->bhnf", places.to(exact), frequencies)
                for places in (prepared.queries, prepared.keys)
            )
        return Terms(maps=(Phases(queries, keys).turned,))

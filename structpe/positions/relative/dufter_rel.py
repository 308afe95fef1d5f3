"""A learned scalar for each distance, through its spectrum (Dufter, Schmitt and Schuetze 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import holds, of_arity, offsets
from structpe.positions._tables import Sharing, Table
from structpe.positions.decay._distances import distances
from structpe.terms import Lookup, Terms

__all__ = ["DufterRelative"]


class DufterRelative(PositionModel, name="dufter-rel"):
    """A learned scalar for each distance, through its spectrum (Dufter, Schmitt and Schuetze 2020).

    s_ij += b(|r_ij|),  b(r) = sum_f R_f cos(pi f r / n) / 2n,  f = 0..2n-1: R (2n) is learned, the spectrum of b.

    r_ij = s - t, or any other encoding of pairs. (Dufter et al. 2020, section 2, direct position interactions.) In the
    paper and the survey (section 4.1.2) the learned numbers are b(r) themselves, one per signed offset: that is
    ``rel-scalar``. The authors' code passes them to a circulant operator of TensorFlow, which takes a spectrum, not a
    kernel; and as the spectrum and the result are real, keys ahead and behind are not distinguished.

    That code has one head; here each head has its own R, unless shared. The number is added after the scale.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        length: n, above all distances.
        sharing: which layers and heads have the same R.

    Raises:
        PositionError: a distance of ``length`` or more, a pair without a path where the encoding has no limit, or no
            single integer per pair.
    """

    spec = Spec(
        "dufter2020", "sequence", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="2*n*copies")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), length: int = 128, sharing: Sharing = "none") -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 2)], n=length, copies=Table.copies(sharing, dims))
        self.length, self.table = length, Table(dims, 2 * length, sharing)
        nn.init.normal_(self.table.weight, std=(2 * length) ** -0.5)

    def prepare(self, positions: Positions) -> Lookup:
        """cos(pi f r / n) / 2n of each distinct distance and frequency."""
        of_pairs = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        return of_pairs.map(self._waves)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        spectrum = self.table.at(site.layer)
        return Terms(bias=(prepared.map(lambda waves: waves.to(spectrum.dtype) @ spectrum),))

    def _waves(self, values: Tensor) -> Tensor:
        far = distances(self.name, self.encodings[0], values)
        if holds((far >= self.length).any()):
            raise PositionError(
                f"position model 'dufter-rel' has {self.length} distances, this batch needs {int(far.max()) + 1}; "
                f"build it with a larger 'length', or choose an unbound model"
            )
        frequencies = torch.arange(2 * self.length, dtype=torch.float64, device=far.device)
        return torch.cos(math.pi / self.length * far[:, None].double() * frequencies) / (2 * self.length)

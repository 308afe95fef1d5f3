"""Attention weighed by a kernel of random walks (Choromanski et al. 2022)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.walk_kernel import WalkKernel
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import holds, of_all_pairs, offsets
from structpe.terms import Lookup, Terms

__all__ = ["GKAT"]


class GKAT(PositionModel, name="gkat"):
    """Attention weighed by a kernel of random walks (Choromanski et al. 2022).

    w_ij = K_ij exp(s_ij) / sum_k K_ik exp(s_ik), that is s_ij += log K_ij, no attention where K_ij = 0.

    K_ij measures how many nodes the random walks from i and from j share. (Choromanski et al. 2022, section 4.2, the
    random walk graph-nodes kernel; their code multiplies by K instead of using a mask.) Nothing is learned. The
    denominator of their code is 1e-19 larger.

    Args:
        dims: sizes of the Transformer.
        encoding: a number of 0 or more per pair.

    Raises:
        PositionError: the encoding has a negative value, or no single number per pair.
    """

    spec = Spec(
        "choromanski2022",
        "graph",
        Cells("B", "MAM", learnable=False, recurring=True, unbound=False, params="0"),
        note="a relative model by its form; but a walk ends where a text does, so that text in front changes it",
    )

    def __init__(self, dims: Dims, encoding: Encoding = WalkKernel()) -> None:
        super().__init__(dims, [of_all_pairs(self.name, encoding)])

    def prepare(self, positions: Positions) -> Terms:
        """The same for all layers."""
        kernel: Lookup = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        if holds((kernel.table < 0).any()):
            raise PositionError(
                f"position model 'gkat' needs a kernel of 0 or more; {self.encodings[0].name!r} gives "
                f"{float(kernel.table.min()):g}"
            )
        table = kernel.table[:, None]
        logarithm = table.where(table > 0, 1).log()
        return Terms(
            bias=(kernel.map(lambda _: logarithm),), mask=(kernel.map(lambda values: values > 0).dense()[:, None],)
        )

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared

"""Counts of homomorphisms of small graphs, concatenated with the content (Bao et al. 2025, MoSE)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.motifs import Motifs
from structpe.positions import Dims, Spec
from structpe.positions.walks._statistics import CELLS, StructuralEncoding

__all__ = ["MoSE"]


class MoSE(StructuralEncoding, name="mose"):
    """Counts of homomorphisms of small graphs, concatenated with the content (Bao et al. 2025, MoSE).

    cat[x_u, f(norm([Hom_u(F) for each motif F]))]: motif structural encoding. All else is as in ``rwse``.

    Hom_u(F) counts the homomorphisms of a small graph F that map its root to u, see :class:`Motifs`. (Bao et al.
    2025, section 3; the authors' code, whose configurations have an MLP of two layers and no norm.) The authors
    choose the motifs for each data set: for ZINC all images of cycles of seven and eight vertices, for others all
    graphs of up to five vertices and a cycle of six. Here they are cycles of three to eight, and two triangles with an
    edge in common.

    Args:
        dims: sizes of the Transformer.
        encoding: a vector of k counts per unit.
        width: p, how many of the d channels are the second part; None for a quarter of them.
        layers: of f; 0 for a linear map without a rectifier.

    Raises:
        PositionError: the encoding gives a single number per unit, or p leaves no channels for content.
    """

    spec = Spec("bao2025", "graph", CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Motifs(), width: int | None = None, layers: int = 0) -> None:
        super().__init__(dims, encoding, width, layers)

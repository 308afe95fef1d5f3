"""T5 on the triples of a graph, attention within triples (Plenz and Frank 2024)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from structpe.encodings.base import UNREACHABLE, Encoding
from structpe.encodings.triple_offset import TripleOffset
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import of_all_pairs, offsets
from structpe.positions._tables import Sharing, Table
from structpe.positions.buckets._offset_buckets import Buckets
from structpe.terms import Lookup, Terms

__all__ = ["GLMLocal"]


@dataclass(frozen=True, eq=False)
class _Prepared:
    rows: Lookup
    mask: Tensor


class GLMLocal(PositionModel, name="glm-local"):
    """T5 on the triples of a graph, attention within triples (Plenz and Frank 2024).

    s_ij += b[bucket(r_ij)] if a triple has both units, and no attention otherwise: the local graph language model.

    r_ij is the offset of j from i in the text "head relation tail" of the triple; b and its buckets are those of T5, B
    = 32 and D = 128, so that weights of T5 fit. (Plenz and Frank 2024, section 4.1; the authors' code.) The graph is
    that of :func:`structpe.transforms.levi`, split into units. T5 has no 1/sqrt(d_h): add ``Terms(scale=sqrt(d_h))`` to
    use its weights.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair, or no path.
        buckets: B.
        farthest: D.
        sharing: ``layer-wise`` as in T5.

    Raises:
        PositionError: the encoding does not give one integer per pair, or other buckets.
    """

    spec = Spec(
        "plenz2024", "graph", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies")
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = TripleOffset(),
        buckets: int = 32,
        farthest: int = 128,
        sharing: Sharing = "layer-wise",
    ) -> None:
        rows = Buckets(self.name, of_all_pairs(self.name, encoding), buckets, farthest, bidirectional=True)
        used = rows.size - ("unreachable" in encoding.codes)
        super().__init__(dims, [encoding], R=used, copies=Table.copies(sharing, dims))
        self.rows = rows
        self.table = Table(dims, used, sharing)

    def prepare(self, positions: Positions) -> _Prepared:
        """The row of each distinct value, and which pairs attend."""
        of_pairs = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        attending = of_pairs.map(lambda values: values != UNREACHABLE)
        return _Prepared(of_pairs.map(self._rows), attending.dense()[:, None])

    def terms(self, prepared: _Prepared, site: Site) -> Terms:
        return Terms(bias=(prepared.rows.map(self.table.at(site.layer).__getitem__),), mask=(prepared.mask,))

    def _rows(self, values: Tensor) -> Tensor:
        """Those of the buckets, without the one for pairs that do not attend."""
        rows = self.rows.of(values)
        return rows - (rows >= self.rows.count).long() if "unreachable" in self.encodings[0].codes else rows

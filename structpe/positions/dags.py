"""Positions in directed acyclic graphs: who comes before whom, and how deep."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import UNREACHABLE, Encoding
from structpe.encodings.dags import Generation
from structpe.encodings.distance import Distance
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.batch import of_all_pairs, offsets
from structpe.positions.sinusoids import CELLS, AddedSinusoids
from structpe.positions.tables import is_plain
from structpe.terms import Terms

__all__ = ["DAGPE", "DAGRA"]


class DAGRA(PositionModel, name="dagra"):
    """Attention among nodes of which one can be reached from the other, along the edges (Luo et al. 2023).

    s_ij = -inf unless a path of at most ``hops`` edges leads from i to j or from j to i, or i = j.

    Made for directed acyclic graphs, whose partial order it keeps to: predecessors and successors attend to one
    another, and nodes that are neither do not. (DAG reachability-based attention; Luo et al. 2023, their code.) In a
    text, and in a connected graph without directions, it leaves nothing out. The authors add depths to the input,
    ``dagpe``: sum both. In their code a node does not attend to itself, ``itself=False``; units that are related to
    none then get zeros.

    Args:
        encoding: distances along the edges, of any sign.
        hops: the longest path, None for any.
        itself: whether units attend to those of their own node.

    Raises:
        PositionError: the encoding does not give one integer for every pair, or has no value for pairs without a path;
            hops below 1.
    """

    spec = Spec("luo2023", "graph", Cells("R", "MAM", learnable=False, recurring=True, unbound=False, params="0"))

    def __init__(
        self, dims: Dims, encoding: Encoding = Distance(), hops: int | None = None, itself: bool = True
    ) -> None:
        if "unreachable" not in encoding.codes:
            raise PositionError(
                f"position model {self.name!r} asks which pairs have no path; {encoding.name!r} does not tell, give an "
                f"encoding of paths, such as 'distance'"
            )
        super().__init__(dims, [of_all_pairs(self.name, encoding)])
        self.hops, self.itself = hops, itself

    def prepare(self, positions: Positions) -> Terms:
        """The same for all layers."""
        (encoding,) = self.encodings
        return Terms(mask=(offsets(self.name, encoding, positions[encoding]).map(self._related).dense()[:, None],))

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared

    def _related(self, values: Tensor) -> Tensor:
        """(R,) which distances are those of pairs that attend."""
        plain = is_plain(values)
        own = (values == 0) | ~(plain | (values == UNREACHABLE))
        related = plain & (values != 0)
        if self.hops is not None:
            related = related & (values.abs() <= self.hops)
        return related | own if self.itself else related


class DAGPE(AddedSinusoids, name="dagpe"):
    """Sinusoids of the depth in a directed acyclic graph (Luo et al. 2023).

    x_u + P_g(u), P the sinusoids of ``sinusoidal``, g(u) the number of edges of the longest path to u.

    (DAG positional encoding; Luo et al. 2023, their code, whose sinusoids end at depth 499.) ``dagra`` is their
    attention.

    Args:
        encoding: a number per unit.
    """

    spec = Spec("luo2023", "graph", CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Generation()) -> None:
        super().__init__(dims, encoding)

"""Role, intimacy and hops of each node as sinusoids at the input (Zhang et al. 2020; survey, section 4.3.2)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.intimacy import Intimacy
from structpe.encodings.root_distance import RootDistance
from structpe.encodings.weisfeiler_lehman import WeisfeilerLehman
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import numbers, of_arity
from structpe.positions.sinusoidal._sinusoids import interleaved

__all__ = ["GraphBERTSurvey"]


class GraphBERTSurvey(PositionModel, name="graph-bert-survey"):
    """Role, intimacy and hops of each node as sinusoids at the input (Zhang et al. 2020; survey, section 4.3.2).

    x_u + P[role(u)] + P[rank(u)] + P[hop(u)]: P the sinusoids of three integers, without parameters.

    As the paper writes it (Zhang et al. 2020, section 3.2) and the survey quotes it (section 4.3.2): P[t] interleaves
    sin and cos of t 10000^(-2i/d), and roles are refined until they no longer change. Their numbers are arbitrary
    names, which a sinusoid treats as places; the authors' code has learned tables instead: see ``graph-bert``, also for
    contexts.

    Args:
        dims: sizes of the Transformer.
        encoding: roles.
        rank: one number per unit.
        hop: one number per unit.

    Raises:
        PositionError: an encoding gives a vector per unit.
    """

    spec = Spec(
        "zhang2020",
        "graph",
        Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0"),
        table1=Cells("B", "APE", learnable=False, recurring=False, unbound=True, params="0"),
        note="two of its numbers are relative to the target, which means absolute to all other nodes",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = WeisfeilerLehman(iterations=None),
        rank: Encoding = Intimacy(),
        hop: Encoding = RootDistance(),
    ) -> None:
        super().__init__(dims, [of_arity(self.name, each, 1) for each in (encoding, rank, hop)])

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        for encoding in self.encodings:
            of_units = numbers(self.name, encoding, prepared.queries(encoding))
            x = x + interleaved(of_units, self.dims.width).to(x.dtype)
        return x

"""Sinusoids in queries and keys of every layer, never in values: position-infused attention (Press et al. 2021)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Sources, Spec
from structpe.positions._checks import numbers, of_arity
from structpe.positions.sinusoidal._sinusoids import timing

__all__ = ["Shortformer"]


class Shortformer(PositionModel, name="shortformer"):
    """Sinusoids in queries and keys of every layer, never in values: position-infused attention (Press et al. 2021).

    q_t = W_q (n_t + P_t), k_s = W_k (n_s + P_s), v_s = W_v n_s in every layer, n the normalised hidden vectors.

    P_t = cat[sin((t + 1) omega_i), cos((t + 1) omega_i)], omega_i = 10000^(-i/(d/2 - 1)). Hidden vectors then do not
    depend on places, so that those of an earlier segment can be attended to: encoded together, both segments get new
    places 1, 2, ... Nothing is added to the input. (Press et al. 2021 and their code; survey, eq. 7.)

    Args:
        dims: sizes of the Transformer.
        encoding: t, one number per unit.

    Raises:
        PositionError: the encoding gives a vector per unit, or has no values for the units of the earlier segment.
    """

    spec = Spec(
        "press2021",
        "sequence",
        Cells("A", "APE", learnable=False, recurring=True, unbound=True, params="0"),
        table1=Cells("A", "APE", learnable=False, recurring=True, unbound=True, params="0"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order()) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)])

    def prepare(self, positions: Positions) -> Tensor:
        """(b, m, d) the sinusoids of all keys, those of the queries being the last."""
        return timing(numbers(self.name, self.encodings[0], positions[self.encodings[0]]) + 1, self.dims.width)

    def sources(self, sources: Sources, prepared: Tensor, site: Site) -> Sources:
        known, query, key = prepared.shape[1], sources.query, sources.key
        n, c = query.shape[1], key.shape[1]
        if c > known:
            raise PositionError(
                f"{c} units are attended to and positions of {known} were given; with the cache of an earlier "
                f"segment, encode both segments together and take the last as queries: Positions.step({c - n}, {c})"
            )
        waves = prepared.to(query.dtype)
        return Sources(query + waves[:, known - n :], key + waves[:, known - c :], sources.value)

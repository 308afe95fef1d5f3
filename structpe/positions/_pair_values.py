"""Real values of pairs as the input of a network: what is no number becomes a channel of its own."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.errors import PositionError
from structpe.positions._batch import Positions
from structpe.positions._checks import of_all_pairs
from structpe.positions._dims import Dims
from structpe.positions._rows import is_plain
from structpe.positions._sites import Site
from structpe.positions.base import PositionModel
from structpe.precision import widened
from structpe.structure import path
from structpe.terms import Lookup, Terms

__all__ = ["PairNetwork", "diagonal", "merged", "numbers_and_marks", "pair_width"]


def pair_width(model: str, encoding: Encoding, vectors: bool = True) -> int:
    """How many numbers an encoding of all pairs gives a pair.

    Args:
        model: name of the position model, for errors.
        encoding: of pairs.
        vectors: whether it may be several.

    Raises:
        PositionError: the encoding is of single units, or of listed pairs, or gives sequences, or several numbers.
    """
    needed = (
        f"position model {model!r} needs {'a number or a vector' if vectors else 'one number'} for each pair of units"
    )
    if of_all_pairs(model, encoding).ragged:
        raise PositionError(f"{needed} (resistance, ...); {encoding.name!r} gives sequences")
    shape = encoding.one(path(["a", "b"])).values.shape[1:]
    if len(shape) > 1 or (shape and not vectors):
        raise PositionError(f"{needed} (resistance, ...); {encoding.name!r} gives {shape[0]} numbers")
    return int(shape[0]) if shape else 1


def numbers_and_marks(encoding: Encoding, values: Tensor, dtype: torch.dtype) -> Tensor:
    """(R, K) the numbers of distinct values (R,) or (R, K); (R, K + 1) if there can be pairs without a path.

    Such a pair has 0 for the numbers and 1 in the last column, which is 0 for all others. Two units of one node, k
    places apart, have k.
    """
    if values.ndim == 1:
        values = values[:, None]
    if not encoding.codes:
        return values.to(dtype)
    plain = is_plain(values)
    inside = ~plain & (values > UNREACHABLE) if not values.is_floating_point() else torch.zeros_like(plain)
    numbers = torch.where(plain, values, torch.where(inside, values - WITHIN, 0)).to(dtype)
    return torch.cat([numbers, (~plain & ~inside).any(1, keepdim=True).to(dtype)], dim=1)


def merged(pairs: Lookup) -> Lookup:
    """The same pairs with one row for all that have the same number; vectors as they are.

    Encodings of real numbers do not look for equal ones, but a network on all of them takes longer than the search:
    resistances of trees, for example, are a few whole numbers. How many there are must not matter to a traced graph.
    """
    if pairs.table.ndim > 1 or torch.compiler.is_compiling():
        return pairs
    table, where = torch.unique(pairs.table, return_inverse=True)
    return Lookup(table, where[pairs.rows.long()], pairs.index)


def diagonal(pairs: Lookup) -> Tensor:
    """(b, n, ...) what each unit has with itself."""
    index = pairs.places().diagonal(dim1=1, dim2=2)
    return pairs.table[pairs.rows.gather(1, index).long()]


class PairNetwork(PositionModel):
    """s_ij += phi(x_ij) of the head, the same for all layers: phi runs once per distinct value.

    Args:
        dims: sizes of the Transformer.
        encoding: of pairs.
        vectors: whether a pair may have several numbers.
        sizes: of the symbols of the formula of parameters; K is the number of columns of :meth:`network`'s input.
    """

    def __init__(self, dims: Dims, encoding: Encoding, vectors: bool, **sizes: int) -> None:
        width = pair_width(self.name, encoding, vectors) + bool(encoding.codes)
        super().__init__(dims, [encoding], K=width, **sizes)

    def prepare(self, positions: Positions) -> Terms:
        """The same for all layers."""
        pairs = merged(positions[self.encodings[0]])
        exact = widened(self)
        dtype = next(exact.parameters()).dtype
        inputs = pairs.map(lambda values: numbers_and_marks(self.encodings[0], values, dtype))
        return Terms(bias=(inputs.map(exact.network).share(),))

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared

    @abstractmethod
    def network(self, inputs: Tensor) -> Tensor:
        """(R, h) phi of the numbers and marks (R, K) of distinct values."""

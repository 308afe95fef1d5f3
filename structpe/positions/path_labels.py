"""Labels of the edges on paths: their vectors, checks of the paths, and lookups of what is computed of pairs.

Shapes: R distinct paths of a batch, L their labels at most.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.label_path import LabelPath
from structpe.encodings.label_path_search import FIRST_STEP, UNKNOWN
from structpe.errors import PositionError
from structpe.terms import Lookup

__all__ = ["Edges", "check_single_edges", "each_pair", "rows_of_pairs", "slots_of"]


def slots_of(model: str, encoding: LabelPath) -> int:
    """The most labels that a path of this encoding has.

    Raises:
        PositionError: it has no ``max_length``, or several paths per pair.
    """
    if encoding.max_length is None or encoding.paths != 1:
        raise PositionError(
            f"position model {model!r} needs paths of a limited length, one per pair: "
            f"LabelPath(max_length=4), for example; given is {encoding!r}"
        )
    return encoding.max_length


def check_single_edges(model: str, encoding: LabelPath) -> None:
    """Check that the paths of an encoding are single edges: longer ones are a symbol.

    Raises:
        PositionError: they are others.
    """
    if (encoding.max_length, encoding.longer, encoding.paths) != (1, "symbol", 1):
        raise PositionError(
            f"position model {model!r} needs the labels of single edges: LabelPath(max_length=1, longer='symbol'); "
            f"given is {encoding!r}"
        )


def each_pair(table: Tensor, which: Tensor) -> Lookup:
    """The lookup x_ij = table[which_ij] for ``which`` (b, n, m), each pair with a row of its own.

    For values of which a structure has nearly as many as pairs: equal ones are not searched for.
    """
    pairs = torch.arange(which[0].numel(), device=which.device)
    return Lookup(table, which.flatten(1), pairs.view(1, *which.shape[1:]))


def rows_of_pairs(pairs: Lookup) -> Tensor:
    """(b, n, m) which row of the table each pair has."""
    batch = torch.arange(len(pairs.rows), device=pairs.rows.device)[:, None, None]
    return pairs.rows[batch, pairs.dense_index()]


class Edges(nn.Module):
    """E[label] of the steps of a path; zero without a step. The first row is for labels not seen in training.

    Args:
        symbols: number of symbols of the paths.
        heads: h, width of E.
    """

    def __init__(self, symbols: int, heads: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(symbols - FIRST_STEP + 1, heads) * 0.02)

    def forward(self, paths: Tensor) -> tuple[Tensor, Tensor]:
        """(R, L, h) vectors, and (R, L) which are steps, from the symbols (R, L) of paths."""
        rows, steps = self.rows(paths)
        return self.table[rows] * steps[..., None], steps

    def summed(self, paths: Tensor) -> Tensor:
        """(R, h) the sum over the steps of each path; 0 without a step."""
        vectors: Tensor = self(paths)[0]
        return vectors.sum(1)

    @staticmethod
    def rows(paths: Tensor) -> tuple[Tensor, Tensor]:
        """(R, L) row of E of each symbol, 0 where it is not a step, and (R, L) which are steps."""
        return (paths - (FIRST_STEP - 1)).clamp(min=0), (paths == UNKNOWN) | (paths >= FIRST_STEP)

"""Checks of encodings and of their values for a batch."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.structure import path
from structpe.terms import Lookup

__all__ = [
    "check_offsets",
    "clipped",
    "holds",
    "indices",
    "numbers",
    "of_all_pairs",
    "of_arity",
    "of_listed_pairs",
    "of_whole",
    "offsets",
    "width_of",
]


def holds(condition: Tensor) -> bool:
    """Whether the condition for refusing a batch is met, such as a place beyond a table.

    While torch.compile or torch.export traces a model, values are unknown and no batch is refused: a compiled model
    must be given valid batches. Looking up a row that does not exist then fails in PyTorch.
    """
    return not torch.compiler.is_compiling() and bool(condition)


def check_offsets(encoding: Encoding) -> None:
    """Raise an error unless the values of an encoding of pairs can be rows of a table.

    Raises:
        PositionError: it gives real numbers.
    """
    if encoding.real:
        raise PositionError(
            f"a table has a row for each offset or distance, whole numbers; encoding {encoding.name!r} gives real "
            f"ones; choose another, 'distance' say, or a position model without a table"
        )


def numbers(model: str, encoding: Encoding, of_units: Tensor) -> Tensor:
    """The value of an encoding of arity 1 at each unit, which must be one number.

    Raises:
        PositionError: it is a vector, such as a path or eigenvectors.
    """
    if of_units.ndim != 2:
        raise PositionError(
            f"position model {model!r} needs one number per unit (order, depth, ...); "
            f"{encoding.name!r} gives {tuple(of_units.shape[2:])} numbers"
        )
    return of_units


def offsets(model: str, encoding: Encoding, of_pairs: Lookup) -> Lookup:
    """The value of an encoding of arity 2 at each pair, which must be one number.

    Raises:
        PositionError: it is a sequence, such as the labels along a path.
    """
    if of_pairs.table.ndim != 1:
        raise PositionError(
            f"position model {model!r} needs one integer per pair (offset, distance, ...); "
            f"{encoding.name!r} gives {tuple(of_pairs.table.shape[1:])} numbers"
        )
    return of_pairs


def of_arity(model: str, encoding: Encoding, arity: Literal[1, 2]) -> Encoding:
    """The encoding, which must be of the arity that a model needs.

    Raises:
        PositionError: it is of the other one.
    """
    if encoding.arity != arity:
        needed = "pairs of units (offset, distance, ...)" if arity == 2 else "single units (order, depth, ...)"
        raise PositionError(f"position model {model!r} needs an encoding of {needed}; {encoding.name!r} is not one")
    return encoding


def of_whole(model: str, encoding: Encoding) -> Encoding:
    """The encoding, which must give units whole numbers, as the rows of a table.

    Raises:
        PositionError: it is of pairs, or gives real numbers.
    """
    if of_arity(model, encoding, 1).real:
        raise PositionError(
            f"position model {model!r} has a table, a row for each whole number; encoding {encoding.name!r} gives real "
            f"ones; choose another, 'order' say, or a model without a table"
        )
    return encoding


def indices(model: str, encoding: Encoding, of_units: Tensor) -> Tensor:
    """The value of an encoding of arity 1 at each unit, which must be one whole number, 0 or more: the row of a table.

    Raises:
        PositionError: it is not.
    """
    rows = numbers(model, encoding, of_units)
    if rows.is_floating_point() or holds((rows < 0).any()):
        given = "real numbers" if rows.is_floating_point() else f"{int(rows.min())}"
        raise PositionError(
            f"position model {model!r} has a table, a row for each whole number from 0; {encoding.name!r} gives {given}"
        )
    return rows


def of_all_pairs(model: str, encoding: Encoding) -> Encoding:
    """The encoding, which must have a value for every pair of units.

    Raises:
        PositionError: it is of units, or lists only some pairs.
    """
    if of_arity(model, encoding, 2).sparse:
        raise PositionError(f"position model {model!r} needs an encoding of all pairs; {encoding.name!r} lists some")
    return encoding


def width_of(model: str, encoding: Encoding) -> int:
    """How many numbers an encoding of arity 1 gives each unit, found by encoding a short path.

    Raises:
        PositionError: it gives one integer, not a vector.
    """
    shape = of_arity(model, encoding, 1).one(path(["a", "b"])).values.shape
    if len(shape) != 2:
        raise PositionError(
            f"position model {model!r} needs a vector per unit (laplacian, random-walk, ...); "
            f"{encoding.name!r} gives one number"
        )
    return int(shape[1])


def of_listed_pairs(model: str, encoding: Encoding) -> Encoding:
    """The encoding, which must list pairs.

    Raises:
        PositionError: it is of all pairs, or of units.
    """
    if not of_arity(model, encoding, 2).sparse:
        raise PositionError(
            f"position model {model!r} needs an encoding that lists pairs (neighbours, window, ...); "
            f"{encoding.name!r} is of all pairs"
        )
    return encoding


def clipped(scores: Tensor) -> Tensor:
    """Scores clipped to -5..5: the authors take their exponentials without a maximum."""
    return scores.clamp(-5, 5)

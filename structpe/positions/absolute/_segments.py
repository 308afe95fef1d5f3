"""Which segment of its input each unit belongs to: question or answer, first or second sentence."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions._checks import numbers, of_arity

__all__ = ["check", "checked"]


def check(model: str, encoding: Encoding, segments: int) -> Encoding:
    """The encoding, which must fit a model with so many segments.

    Raises:
        PositionError: the number of segments is below 1, or the encoding is of pairs.
    """
    if segments < 1:
        raise PositionError(f"position model {model!r} needs 1 segment or more; given are {segments}")
    return of_arity(model, encoding, 1)


def checked(model: str, encoding: Encoding, of_units: Tensor, segments: int) -> Tensor:
    """(b, n) the segment of each unit.

    Raises:
        PositionError: these are no integers 0, 1, ... below the number of segments.
    """
    values = numbers(model, encoding, of_units)
    if values.is_floating_point():
        raise PositionError(
            f"position model {model!r} needs an integer per unit, the number of its segment; {encoding!r} gives "
            f"{values.dtype} numbers; give the structures features of integers"
        )
    if torch.compiler.is_compiling():  # no number may be looked at while a graph is traced
        return values
    least, most = int(values.min()), int(values.max())
    if least < 0 or most >= segments:
        raise PositionError(
            f"position model {model!r} has segments 0..{segments - 1}, this batch has {least}..{most}; "
            f"number them from 0, and build it with 'segments' {most + 1} or more"
        )
    return values

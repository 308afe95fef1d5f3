"""What every number that a position model is built with must be, whatever the model: checked once, for all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from inspect import Parameter
from typing import Any

from structpe.errors import PositionError

__all__ = ["check_numbers"]

_LARGEST = 1e30
"""Float32 ends at 3.4e38, and numbers are squared and summed."""

_LARGEST_SIZE, _LARGEST_SEED = (1 << 31) - 1, (1 << 63) - 1
"""More rows, layers, ... no memory holds; PyTorch's seeds have 64 bits."""


def check_numbers(model: str, parameters: Mapping[str, Parameter], given: Mapping[str, Any]) -> None:
    """See to it that numbers are some that any model can do with.

    A whole number is a size: 1 or more, or 0 or more if 0 is the default, as of seeds. A real number is finite, and
    float32 can hold it; it is not negative unless its default is. ``base`` is above 1, as it is the factor by which the
    slowest wave is slower; ``dropout`` is a probability below 1.

    Args:
        model: name of the model.
        parameters: of its constructor.
        given: the options.

    Raises:
        PositionError: a number is none of these.
    """
    for option, value in given.items():
        default = parameters[option].default if option in parameters else None
        if problem := _problem(option, default, value):
            raise PositionError(f"option {option!r} of position model {model!r} is {value!r}; {problem}")


def _problem(option: str, default: Any, value: Any) -> str:
    """What must be given instead; nothing where all is well."""
    if isinstance(value, tuple):
        return next(filter(None, (_of_real(each) for each in _numbers(value))), "")
    if not _is_number(value):
        return ""
    most = _LARGEST_SEED if option == "seed" else _LARGEST_SIZE
    if isinstance(value, int) and value > most:
        return f"give {most} at most"
    if problem := _of_real(value):
        return problem
    if option == "base" and value <= 1:
        return "give a number above 1"
    if option == "dropout" and not 0 <= value < 1:
        return "give a probability: 0 or more, and below 1"
    negative = _is_number(default) and default < 0
    real = isinstance(default, float) or (default is None and isinstance(value, float))
    least = 0 if (_is_number(default) and default == 0) or real else 1
    if value < least and not negative:
        return f"give {least} or more"
    return ""


def _of_real(value: float) -> str:
    if not math.isfinite(value):
        return "give a finite number"
    if value and not 1 / _LARGEST <= abs(value) <= _LARGEST and not isinstance(value, int):
        return f"its magnitude must be between {1 / _LARGEST:g} and {_LARGEST:g}, or 0"
    return ""


def _numbers(values: tuple[Any, ...]) -> Iterator[float]:
    """Those of the items that are numbers, inner ones too."""
    for each in values:
        if isinstance(each, tuple):
            yield from _numbers(each)
        elif _is_number(each):
            yield each


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)

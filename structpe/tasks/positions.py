"""Position models whose encodings have seen the training data, and their description on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from structpe.encodings.base import Encoding
from structpe.positions import Dims, PositionModel, Sum
from structpe.positions.build import Config, build, describe
from structpe.structure import Structure

__all__ = ["fitted"]


def fitted(config: Config, dims: Dims, structures: Callable[[], Sequence[Structure]]) -> Any:
    """The description of a position model with what its encodings learn of the training structures, such as labels.

    Args:
        config: what a person wrote.
        dims: sizes of the Transformer.
        structures: called only where an encoding has something to learn.

    Raises:
        PositionError: there is no such model, encoding or option.
    """
    model = build(config, dims)
    if all(type(encoding).fit is Encoding.fit for encoding in model.encodings):
        return describe(model)
    return describe(_fit(model, structures()))


def _fit(model: PositionModel, structures: Sequence[Structure]) -> PositionModel:
    if isinstance(model, Sum):
        return Sum(model.dims, [_fit(each, structures) for each in model], model.layers)
    return type(model)(model.dims, **{name: _fit_option(value, structures) for name, value in model.options().items()})


def _fit_option(value: Any, structures: Sequence[Structure]) -> Any:
    if isinstance(value, tuple):
        return tuple(_fit_option(each, structures) for each in value)
    return value.fit(structures) if isinstance(value, Encoding) else value

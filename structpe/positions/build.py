"""Position models from plain data, such as a configuration file holds, and back.

::

    "t5"                                                                    a model with its defaults
    {"name": "t5", "buckets": 16, "encoding": "distance"}                   with options
    {"name": "t5", "encoding": {"name": "distance", "limit": 8}}            with an encoding that has options
    ["sinusoidal", {"name": "graformer", "reach": 3}]                       several at once; [] is none at all
    {"name": "t5", "in_layers": [0, 1]}                                     in some layers only
    {"cycle": ["rotary", "rotary", "rotary", "nope"]}                       one for each layer, over and over
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from structpe.encodings.base import Encoding
from structpe.encodings.named import as_encoding, options, split
from structpe.errors import PositionError, reason_of
from structpe.positions._dims import Dims
from structpe.positions._schedule import composed, layers_of, unrolled
from structpe.positions._sum import Sum
from structpe.positions.base import MODELS, PositionModel

__all__ = ["Config", "as_model", "build", "build_encoding", "check_model", "describe"]

Config: TypeAlias = "str | Mapping[str, Any] | Sequence[Config]"
"""Plain data that describes a position model."""


def build(config: Config, dims: Dims) -> PositionModel:
    """The position model that plain data describes.

    Args:
        config: a name; a mapping with ``name`` and options, and ``in_layers`` if it acts in some only; or a list of
            these, for their :class:`Sum`; or a mapping with ``cycle``, a list of these for one layer after the other.
            Equal members of a cycle are one model.
        dims: sizes of the Transformer.

    Raises:
        PositionError: there is no such model, encoding or option, or an option is of another type; layers do not exist.
    """
    if not isinstance(dims, Dims):
        raise PositionError(f"sizes are Dims(width, heads, layers); given is {dims!r}")
    if isinstance(config, PositionModel) or (isinstance(config, type) and issubclass(config, PositionModel)):
        instead = f"{config.__name__}(dims)" if isinstance(config, type) else "the model itself"
        raise PositionError(f"build takes plain data, a name say, and was given a position model; use {instead}")
    if isinstance(config, Mapping) and "cycle" in config:
        config = unrolled(config, dims.layers)
    if isinstance(config, Sequence) and not isinstance(config, str):
        return _sum(config, dims)
    if isinstance(config, Mapping) and "in_layers" in config:
        return _sum([config], dims)
    name, given = split(config, "a position model", "a list of these", PositionError)
    model = MODELS[name]
    made = options(PositionError, f"position model {name!r}", model.__init__, given, 2)
    try:
        return model(dims, **made)
    except (RuntimeError, ValueError, TypeError, LookupError, ArithmeticError, MemoryError) as error:
        # What only the libraries below find out, such as that memory does not hold a table of so many rows.
        raise PositionError(
            f"position model {name!r} cannot be built with {given} for {dims}: {reason_of(error)}; give other options"
        ) from error


def as_model(given: Any, dims: Dims) -> PositionModel:
    """The position model itself, or the one that :func:`build` makes of plain data.

    Args:
        given: a position model built for these sizes, or plain data.
        dims: sizes of the Transformer.

    Raises:
        PositionError: as of :func:`build`.
    """
    return given if isinstance(given, PositionModel) else build(given, dims)


def check_model(given: Any, whose: str) -> None:
    """Check that what a function is given is a position model that is built.

    Raises:
        PositionError: it is none.
    """
    if not isinstance(given, PositionModel):
        raise PositionError(
            f"{whose} takes a position model, and was given {given!r}; build one: "
            f"structpe.build('t5', structpe.Dims(width, heads, layers))"
        )


def _sum(configs: Sequence[Config], dims: Dims) -> Sum:
    """Each in the layers that it names."""
    layers = [layers_of(each) for each in configs]
    return Sum(dims, [_in_layers(each, own, dims) for each, own in zip(configs, layers, strict=True)], layers)


def _in_layers(config: Any, layers: tuple[int, ...] | None, dims: Dims) -> PositionModel:
    """The model for a Transformer of the layers in which it acts."""
    if layers is None:
        return build(config, dims)
    rest = {key: value for key, value in config.items() if key != "in_layers"}
    return build(rest, replace(dims, layers=max(len(layers), 1)))


def describe(model: PositionModel) -> Any:
    """Plain data from which :func:`build` makes such a model again, with fresh parameters. It can be written as JSON.

    Raises:
        PositionError: the model has no name in the registry.
    """
    return _described(model, None)


def _described(model: PositionModel, layers: tuple[int, ...] | None) -> Any:
    if isinstance(model, Sum):
        parts = zip(model, model.layers, strict=True)
        return [_described(each, composed(layers, own)) for each, own in parts]
    if model.name not in MODELS or MODELS[model.name] is not type(model):
        raise PositionError(
            f"{type(model).__name__} has no name in the registry, so that data cannot speak of it; "
            f"declare it with: class {type(model).__name__}(PositionModel, name=...)"
        )
    own = {} if layers is None else {"in_layers": list(layers)}
    return {"name": model.name, **{option: _plain(value) for option, value in model.options().items()}, **own}


def build_encoding(config: str | Mapping[str, Any]) -> Encoding:
    """The encoding that plain data describes: a name, or a mapping with ``name`` and options.

    Raises:
        PositionError: there is no such encoding or option, or an option is of another type.
    """
    return as_encoding(config, error=PositionError)


def _plain(value: Any) -> Any:
    """Encodings as mappings, tuples as lists, everything else as it is."""
    if isinstance(value, Encoding):
        return {"name": value.name, **{option: _plain(each) for option, each in value.options().items()}}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value

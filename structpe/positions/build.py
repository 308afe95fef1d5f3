"""Position models from plain data, such as a configuration file holds, and back.

::

    "t5"                                                                    a model with its defaults
    {"name": "t5", "num_buckets": 16, "encoding": "distance"}               with options
    {"name": "t5", "encoding": {"name": "distance", "max_distance": 8}}            with an encoding that has options
    ["sinusoidal", {"name": "graformer", "max_distance": 3}]                several at once; [] is none at all
    {"name": "t5", "in_layers": [0, 1]}                                     in some layers only
    {"cycle": ["rotary", "rotary", "rotary", "nope"]}                       one for each layer, over and over
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from structpe.encodings.base import ENCODINGS, Encoding, builder, check_hints, check_largest, split
from structpe.errors import PositionError, reason_of
from structpe.positions.base import MODELS, Dims, PositionModel, Sum
from structpe.positions.batch import fitting
from structpe.structure import Structure, check_structures

__all__ = [
    "Config",
    "as_model",
    "build",
    "check_model",
    "composed",
    "describe",
    "fitted",
    "layers_of",
    "list_models",
    "unrolled",
]


def list_models(pattern: str = "*") -> list[str]:
    """The names of the position models, sorted, that :func:`build` takes.

    Args:
        pattern: names to look for, with ``*`` for any characters, ``?`` for one and ``[...]`` for one of several, such
            as ``"*rope*"``. Case does not matter.
    """
    return fnmatch.filter(MODELS, pattern.lower())


def layers_of(config: Any) -> tuple[int, ...] | None:
    """The layers in which a model acts; None if its description names none.

    Raises:
        PositionError: they are not a list of whole numbers.
    """
    if not isinstance(config, Mapping) or "in_layers" not in config:
        return None
    given = config["in_layers"]
    if not isinstance(given, Sequence) or any(type(each) is not int for each in given):
        raise PositionError(f"in_layers is a list of numbers of layers, from 0; given is {given!r}")
    return tuple(given)


def composed(outer: tuple[int, ...] | None, inner: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The layers of a part of a sum that itself acts in the layers ``outer`` only."""
    if outer is None or inner is None:
        return inner if outer is None else outer
    return tuple(outer[layer] for layer in inner)


def unrolled(config: Mapping[str, Any], layers: int) -> list[dict[str, Any]]:
    """A cycle, whose i-th of m members acts in the layers i, i + m, i + 2m, ..., as models with ``in_layers``.

    Equal descriptions are one model, which acts in the layers of all of them.

    Raises:
        PositionError: there are other keys, no member, more members than layers, or a member with layers of its own.
    """
    members = config["cycle"]
    if set(config) != {"cycle"} or isinstance(members, str) or not isinstance(members, Sequence) or not members:
        raise PositionError(
            f"a cycle is a mapping with a list of position models, and no other key; given is {config!r}"
        )
    if len(members) > layers:
        raise PositionError(
            f"a cycle of {len(members)} position models has more than the {layers} layers of the Transformer; give "
            f"{layers} at most"
        )
    each: list[tuple[dict[str, Any], list[int]]] = []
    for layer in range(layers):
        for model in _members(members[layer % len(members)]):
            known = next((own for other, own in each if other == model), None)
            if known is None:
                each.append((model, [layer]))
            elif layer not in known:
                known.append(layer)
    return [model if len(own) == layers else {**model, "in_layers": own} for model, own in each]


def _members(config: Any) -> Iterator[dict[str, Any]]:
    """The models of one member, which may be a sum."""
    if isinstance(config, Sequence) and not isinstance(config, str):
        for each in config:
            yield from _members(each)
    elif isinstance(config, Mapping):
        if {"cycle", "in_layers"} & set(config):
            raise PositionError(
                f"a member of a cycle has neither in_layers nor a cycle of its own; given is {config!r}"
            )
        yield dict(config)
    else:
        yield {"name": config}


Config: TypeAlias = "str | Mapping[str, Any] | Sequence[Config]"
"""Plain data that describes a position model."""


def build(config: Config, dims: Dims, *, fit: Sequence[Structure] | None = None) -> PositionModel:
    """The position model that plain data describes.

    Args:
        config: a name; a mapping with ``name`` and options, and ``in_layers`` if it acts in some only; or a list of
            these, for their :class:`Sum`; or a mapping with ``cycle``, a list of these for one layer after the other.
            Equal members of a cycle are one model.
        dims: sizes of the Transformer.
        fit: training structures, for models whose encodings learn from them, such as the labels of their edges; graphs
            without labels need no fit.

    Raises:
        PositionError: there is no such model, encoding or option, or an option is of another type; layers do not exist.
        EncodingError: ``fit`` is not a list of structures.
    """
    if fit is not None:
        check_structures(fit, "fit")
        config = fitted(config, dims, lambda: fit)
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
    if name not in MODELS and name in ENCODINGS:
        config = f"{{'name': MODEL, 'encoding': {name!r}}}"
        raise PositionError(
            f"{name!r} is an encoding; give it to a position model that reads it: {config}; {fitting(ENCODINGS[name])}"
        )
    model, whose = MODELS[name], f"position model {name!r}"
    if given:
        check_hints(PositionError, whose, model.__init__, given, 2)
        check_largest(PositionError, whose, given)
    builder(PositionError).check_options(model.__init__, given, whose, 2)
    try:
        return model(dims, **given)
    except (RuntimeError, ValueError, TypeError, LookupError, ArithmeticError, MemoryError) as error:
        # What only the libraries below find out, such as that memory does not hold a table of so many rows.
        raise PositionError(
            f"{whose} cannot be built with {given} for {dims}: {reason_of(error)}; give other options"
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


def fitted(config: Config, dims: Dims, structures: Callable[[], Sequence[Structure]]) -> Any:
    """The plain data of a position model after fitting its encodings to training structures, such as to their labels.

    Args:
        config: the position model, as in a configuration.
        dims: sizes of the Transformer.
        structures: called only if an encoding needs to be fitted.

    Raises:
        PositionError: there is no such model, encoding or option.
    """
    model = build(config, dims)
    return describe(model.fit(given) if model.learns and (given := structures()) else model)


def _described(model: PositionModel, layers: tuple[int, ...] | None) -> Any:
    if isinstance(model, Sum):
        parts = zip(model, model.layers, strict=True)
        return [_described(each, composed(layers, own)) for each, own in parts]
    name = getattr(type(model), "name", "")
    if name not in MODELS or MODELS[name] is not type(model):
        raise PositionError(
            f"{type(model).__name__} has no name in the registry, so it cannot be described by plain data; "
            f"declare it with: class {type(model).__name__}(PositionModel, name=...)"
        )
    own = {} if layers is None else {"in_layers": list(layers)}
    return {"name": model.name, **{option: _plain(value) for option, value in model.options().items()}, **own}


def _plain(value: Any) -> Any:
    """Encodings as mappings, tuples as lists, everything else as it is."""
    if isinstance(value, Encoding):
        return {"name": value.name, **{option: _plain(each) for option, each in value.options().items()}}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value

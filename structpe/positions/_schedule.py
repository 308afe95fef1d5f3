"""Schedules of position models in plain data: which model acts in which layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from structpe.errors import PositionError

__all__ = ["composed", "layers_of", "unrolled"]


def layers_of(config: Any) -> tuple[int, ...] | None:
    """The layers in which a model acts; None if its description names none.

    Raises:
        PositionError: they are no list of whole numbers.
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

"""Slips in an encoding that somebody writes, as errors about it: what was given, what is needed, what to do.

``one`` and ``many`` of a class are wrapped once, when the class is made. Of each structure the kinds and shapes are
looked at, which costs microseconds; that every index names a value is looked at where ``one`` alone is the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from inspect import isfunction, signature
from typing import TYPE_CHECKING, Any

import numpy as np

from structpe.errors import EncodingError

if TYPE_CHECKING:
    from structpe.encodings.base import Encoding
    from structpe.structure import Structure

__all__ = ["check_fields", "check_key", "guard", "no_dataclass", "within"]


def guard(cls: type, kind: type) -> None:
    """Wrap what a class defines of its own.

    Args:
        cls: a subclass of ``Encoding``.
        kind: ``Encoded``.
    """
    own = {name: method for name, method in vars(cls).items() if isfunction(method)}
    if "one" in own:
        setattr(cls, "one", _one(own["one"], kind))  # noqa: B010, mypy refuses the plain assignment
    if "many" in own:
        setattr(cls, "many", _many(own["many"], kind))  # noqa: B010


def check_key(encoding: Encoding) -> None:
    """Refuse an encoding that cannot be a key of positions.

    Raises:
        EncodingError: its class says no arity; an option is no field; or an option of it has no hash, a list say.
    """
    if getattr(type(encoding), "arity", None) not in (1, 2):
        raise EncodingError(
            f"encoding {encoding.name!r} does not say whether it is of units or of pairs; add to the class arity = 1, "
            f"or arity = 2"
        )
    if "__dataclass_fields__" not in vars(type(encoding)):
        check_fields(encoding)
    try:
        hash(encoding)
    except TypeError:
        wrong = next(f.name for f in fields(encoding) if not _hashable(getattr(encoding, f.name)))
        kind = type(getattr(encoding, wrong)).__name__
        raise EncodingError(
            f"encoding {encoding.name!r}: option {wrong!r} is of type {kind}, which has no hash, and encodings are "
            f"keys; give a tuple in place of a list, of pairs in place of a dict"
        ) from None


def check_fields(encoding: Encoding) -> None:
    """Refuse options that are no fields, of which an encoding is made again.

    Raises:
        EncodingError: the constructor takes what is no field.
    """
    kind, known = type(encoding), {field.name for field in fields(encoding)}
    own = {} if "__dataclass_fields__" in vars(kind) else vars(kind).get("__annotations__", {})
    bare = [name for name, hint in own.items() if name not in known and "ClassVar" not in str(hint)]
    taken = [name for name, p in signature(kind).parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if lost := [name for name in taken if name not in known] or bare:
        raise EncodingError(no_dataclass(encoding.name, lost[0]))


def no_dataclass(name: str, option: str) -> str:
    """What to say where an option is no field."""
    return (
        f"encoding {name!r}: {option} is no field of the dataclass, by which encodings are compared and made again; "
        f"write @dataclass(frozen=True) above the class, and each option in it as NAME: TYPE = DEFAULT"
    )


def within(encoding: Encoding, structure: Structure, encoded: Any) -> Any:
    """What an encoding says, if each index names one of its values.

    Raises:
        EncodingError: one does not.
    """
    index = encoded.index
    if index is not None and index.size and not (index.min() >= 0 and index.max() < len(encoded.values)):
        wrong = int(index.max()) if index.max() >= len(encoded.values) else int(index.min())
        raise encoding.error(
            structure, f"the index names value {wrong}, and there are {len(encoded.values)} values, from 0 on"
        )
    return encoded


def _one(method: Callable[..., Any], kind: type) -> Callable[..., Any]:
    @wraps(method)
    def one(self: Encoding, structure: Structure) -> Any:
        return _checked(self, structure, method(self, structure), kind)

    return one


def _many(method: Callable[..., Any], kind: type) -> Callable[..., Any]:
    @wraps(method)
    def many(self: Encoding, structures: Sequence[Structure]) -> Any:
        found = method(self, structures)
        if not isinstance(found, list) or len(found) != len(structures):
            told = f"{len(found)} of them" if isinstance(found, list) else type(found).__name__
            raise EncodingError(
                f"encoding {self.name!r}: many must give a list with an Encoded for each of the {len(structures)} "
                f"structures; it gives {told}"
            )
        return [_checked(self, structure, each, kind) for structure, each in zip(structures, found, strict=True)]

    return many


def _checked(encoding: Encoding, structure: Structure, encoded: Any, kind: type) -> Any:
    """What an encoding says of one structure, if it is of the form that its arity asks for."""
    if not isinstance(encoded, kind):
        raise encoding.error(structure, _no_encoded(encoding, encoded))
    if problem := _problem(encoding, structure, encoded):
        raise encoding.error(structure, problem)
    return encoded


def _no_encoded(encoding: Encoding, given: Any) -> str:
    made = "Encoded.of_pairs(matrix)" if encoding.arity == 2 else "Encoded(values)"
    told = f"an array of shape {given.shape}" if isinstance(given, np.ndarray) else type(given).__name__
    told = "None; is there a return missing?" if given is None else f"{told}; wrap it"
    return f"one must give an Encoded, {made}, and gives {told}"


def _problem(encoding: Encoding, structure: Structure, encoded: Any) -> str:
    """What is wrong with values and index; nothing where all is well."""
    values, index, units = encoded.values, encoded.index, structure.unit_count
    if (
        not isinstance(values, np.ndarray)
        or values.ndim == 0
        or values.dtype.kind not in "biuf"
        or values.dtype.itemsize > 8
    ):
        told = f"an array of {values.dtype}" if isinstance(values, np.ndarray) else type(values).__name__
        return f"its values must be a NumPy array of numbers with a row for each; they are {told}"
    if encoding.arity == 1:
        if index is not None:
            return "it is of arity 1, a value for each unit, and has an index, which is of pairs; set arity = 2"
        if len(values) != units:
            return (
                f"it gives {len(values)} values for {units} units; give one for each unit, in their order (unit_owner)"
            )
        return ""
    if index is None:
        return "it is of arity 2, of pairs, and has no index; make it by Encoded.of_pairs(matrix), or set arity = 1"
    if not isinstance(index, np.ndarray) or index.dtype.kind not in "iu":
        told = f"of {index.dtype}" if isinstance(index, np.ndarray) else type(index).__name__
        return f"its index must be a NumPy array of whole numbers, the rows of values; it is {told}"
    if encoded.listed is None and index.shape != (units, units):
        return (
            f"its index has shape {index.shape} for {units} units; it must be ({units}, {units}), units and not nodes"
        )
    if (encoded.listed is not None) != encoding.sparse:
        wanted = (
            "set sparse = True" if encoded.listed is not None else "make it by Encoded.of_list, or leave sparse out"
        )
        return f"it {'lists pairs' if encoded.listed is not None else 'is sparse and lists no pairs'}; {wanted}"
    return ""


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True

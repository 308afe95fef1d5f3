"""Checks of the results of ``one`` and ``many``, so that mistakes in your own encoding raise clear errors.

Both methods are wrapped once, when the class is defined. Types and shapes are checked for each structure, which takes
microseconds. Indices are checked only if the class defines ``one`` and not ``many``.
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


def guard(cls: type, kind: type, column: type) -> None:
    """Wrap the methods that a class defines itself.

    Args:
        cls: a subclass of ``Encoding``.
        kind: ``Encoded``.
        column: ``Column``.
    """
    methods = {name: method for name, method in vars(cls).items() if isfunction(method)}
    if "one" in methods:
        setattr(cls, "one", _one(methods["one"], kind))  # noqa: B010, mypy refuses the plain assignment
    if "many" in methods:
        setattr(cls, "many", _many(methods["many"], kind, column))  # noqa: B010


def check_key(encoding: Encoding) -> None:
    """Check that an encoding can be a key of positions.

    Raises:
        EncodingError: its class has no arity; an option is not a field; or an option has no hash, such as a list.
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
    """Check that all options are fields, as needed to create an encoding from its options.

    Raises:
        EncodingError: an argument of the constructor is not a field.
    """
    kind, known = type(encoding), {field.name for field in fields(encoding)}
    annotated = {} if "__dataclass_fields__" in vars(kind) else vars(kind).get("__annotations__", {})
    bare = [name for name, hint in annotated.items() if name not in known and "ClassVar" not in str(hint)]
    taken = [name for name, p in signature(kind).parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if lost := [name for name in taken if name not in known] or bare:
        raise EncodingError(no_dataclass(encoding.name, lost[0]))


def no_dataclass(name: str, option: str) -> str:
    """The message if an option is not a field."""
    return (
        f"encoding {name!r}: {option} is not a field of the dataclass, and encodings are compared and created by their "
        f"fields; write @dataclass(frozen=True) above the class, and each option in it as NAME: TYPE = DEFAULT"
    )


def within(encoding: Encoding, structure: Structure, encoded: Any) -> Any:
    """Check that each index is that of a value.

    Raises:
        EncodingError: an index is out of range.
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


def _many(method: Callable[..., Any], kind: type, column: type) -> Callable[..., Any]:
    @wraps(method)
    def many(self: Encoding, structures: Sequence[Structure]) -> Any:
        found: Any = method(self, structures)
        right = isinstance(found, column)
        if not right or len(found) != len(structures):
            made = f"one of {len(found)}" if right else type(found).__name__
            raise EncodingError(
                f"encoding {self.name!r}: many must return a Column of the {len(structures)} structures, such as "
                f"Column.of([self.one(s) for s in structures]); it returns {made}"
            )
        return found

    return many


def _checked(encoding: Encoding, structure: Structure, encoded: Any, kind: type) -> Any:
    """Check that the result for one structure has the form that the arity requires."""
    if not isinstance(encoded, kind):
        raise encoding.error(structure, _not_encoded(encoding, encoded))
    if problem := _problem(encoding, structure, encoded):
        raise encoding.error(structure, problem)
    return encoded


def _not_encoded(encoding: Encoding, given: Any) -> str:
    needed = "Encoded.of_pairs(matrix)" if encoding.arity == 2 else "Encoded(values)"
    kind = f"an array of shape {given.shape}" if isinstance(given, np.ndarray) else type(given).__name__
    kind = "None; is there a return missing?" if given is None else f"{kind}; wrap it"
    return f"one must return an Encoded, {needed}, and returns {kind}"


def _problem(encoding: Encoding, structure: Structure, encoded: Any) -> str:
    """What is wrong with values and index; empty if nothing."""
    values, index, units = encoded.values, encoded.index, structure.unit_count
    if (
        not isinstance(values, np.ndarray)
        or values.ndim == 0
        or values.dtype.kind not in "biuf"
        or values.dtype.itemsize > 8
    ):
        kind = f"an array of {values.dtype}" if isinstance(values, np.ndarray) else type(values).__name__
        return f"its values must be a NumPy array of numbers with a row for each; they are {kind}"
    if encoding.arity == 1:
        if index is not None:
            return "it has arity 1, a value per unit, but also an index of pairs; set arity = 2"
        if len(values) != units:
            return f"it has {len(values)} values for {units} units; give one for each unit, in their order (unit_owner)"
        return ""
    if index is None:
        return "it has arity 2, a value per pair, but no index; use Encoded.of_pairs(matrix), or set arity = 1"
    if not isinstance(index, np.ndarray) or index.dtype.kind not in "iu":
        kind = f"of {index.dtype}" if isinstance(index, np.ndarray) else type(index).__name__
        return f"its index must be a NumPy array of whole numbers, the rows of values; it is {kind}"
    if encoded.listed is None and index.shape not in ((units, units), (2 * units - 1,)):
        return (
            f"its index has shape {index.shape} for {units} units; it must be ({units}, {units}), of units, not nodes, "
            f"or ({2 * units - 1},), of offsets"
        )
    if (encoded.listed is not None) != encoding.sparse:
        wanted = (
            "set sparse = True" if encoded.listed is not None else "use Encoded.of_list, or leave out sparse = True"
        )
        return f"it {'lists pairs' if encoded.listed is not None else 'is sparse but lists no pairs'}; {wanted}"
    return ""


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True

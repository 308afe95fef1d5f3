"""A converter turns objects of another library into structures, and structures into such objects.

A library is imported only when one of its objects is at hand or asked for: which converter a thing belongs to is read
off the names of its classes. So this package costs nothing to those who do not use the library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from structpe.errors import StructPEError
from structpe.plain.typed import Builder, options_of
from structpe.registry import Registry
from structpe.structure import Structure

__all__ = ["CONVERTERS", "ConversionError", "Converter", "as_structure", "as_structures", "convert"]


class ConversionError(StructPEError):
    """An object that no structure can be made of, or a structure that a library has no object for."""


@dataclass(frozen=True)
class Converter:
    """A library whose objects are structures.

    Attributes:
        name: its name in the registry.
        classes: what it converts, each ``package.Class`` by the first part of the package's name; classes derived
            from them are included.
        doc: what becomes of such an object, in one line.
        read: ``(object, **options)`` -> the structures in it, one by one; most objects are one structure.
        write: ``(structure, **options)`` -> an object; None where there is no way back.
    """

    name: str
    classes: tuple[str, ...]
    doc: str
    read: Callable[..., Iterator[Structure]]
    write: Callable[..., Any] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that ``read`` takes after the object."""
        return tuple(options_of(self.read))


CONVERTERS: Registry[Converter] = Registry("structpe.converters", "converter", ConversionError)
"""Every converter by its name."""


def as_structures(thing: Any, **options: Any) -> list[Structure]:
    """The structures of an object of another library: of a spaCy ``Doc`` with three sentences three.

    Args:
        thing: an object of a class that a converter claims; ``structpe.converters.CONVERTERS`` lists them. A
            :class:`Structure` is itself.
        options: options of the converter.

    Raises:
        ConversionError: no converter claims its class, it has no such option, or the object does not fit.
        StructureError: a graph that breaks a rule.
    """
    if isinstance(thing, Structure):
        return [thing]
    chosen = _claimed(thing)
    Builder(ConversionError).check_names(chosen.options, options, f"converter {chosen.name!r}")
    return list(chosen.read(thing, **options))


def as_structure(thing: Any, **options: Any) -> Structure:
    """The one structure of an object; see :func:`as_structures`.

    Raises:
        ConversionError: the object holds none or several, besides what :func:`as_structures` raises.
    """
    found = as_structures(thing, **options)
    if len(found) != 1:
        raise ConversionError(
            f"the {type(thing).__name__} holds {len(found)} structures where one is needed; as_structures() gives all"
        )
    return found[0]


def convert(structure: Structure, to: str, **options: Any) -> Any:
    """An object of another library that says the same as a structure, as far as the library can.

    What cannot be said there is named in the docstring of the converter's file.

    Args:
        structure: the graph.
        to: name of the converter, such as ``networkx`` or ``pyg``.
        options: options of the converter.

    Raises:
        ConversionError: no such converter, it has no way back or no such option, or the structure does not fit.
    """
    chosen = CONVERTERS[to]
    if chosen.write is None:
        able = ", ".join(name for name, known in CONVERTERS.items() if known.write is not None)
        raise ConversionError(f"converter {to!r} only reads; a structure can become an object of: {able}")
    Builder(ConversionError).check_names(options_of(chosen.write), options, f"converter {to!r}")
    return chosen.write(structure, **options)


def _claimed(thing: Any) -> Converter:
    names = {f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(thing).__mro__}
    for known in CONVERTERS.values():
        if names.intersection(known.classes):
            return known
    classes = ", ".join(sorted(name for known in CONVERTERS.values() for name in known.classes))
    given = f"{type(thing).__module__}.{type(thing).__qualname__}"
    raise ConversionError(f"no converter takes a {given}; known are objects of {classes}; files are read with read()")

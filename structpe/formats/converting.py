"""A converter turns objects of another library into structures, and structures into such objects.

The converter of an object is found by the names of its classes, so a library is imported only if it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from structpe.errors import ConversionError, located
from structpe.plain.options import Builder, options_of
from structpe.registry import Registry
from structpe.structure import Structure, check_structures

__all__ = [
    "CONVERTERS",
    "ConversionError",
    "Converter",
    "add_converter",
    "as_structure",
    "as_structures",
    "convert",
    "each_structure",
    "of_rows",
]


@dataclass(frozen=True)
class Converter:
    """A library whose objects are structures.

    Attributes:
        name: its name in the registry.
        classes: the classes that it converts, each as ``package.Class`` with the first part of the package's name;
            subclasses are included.
        doc: a description, in one line.
        read: ``(object, **options)`` -> its structure, or its structures one by one.
        write: ``(structure, **options)`` -> an object; None without an inverse.
    """

    name: str
    classes: tuple[str, ...]
    doc: str
    read: Callable[..., Structure | Iterator[Structure]]
    write: Callable[..., Any] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that ``read`` takes after the object."""
        return tuple(options_of(self.read))


CONVERTERS: Registry[Converter] = Registry("structpe.formats", "converter", ConversionError)
"""Every converter by its name."""


def add_converter(
    name: str,
    classes: str,
    doc: str,
    read: Callable[..., Structure | Iterator[Structure]],
    write: Callable[..., Any] | None = None,
) -> None:
    """Enter a :class:`Converter` into the registry; the classes are separated by blanks."""
    CONVERTERS.add(name, Converter(name, tuple(classes.split()), doc, read, write))


def as_structures(thing: Any, **options: Any) -> list[Structure]:
    """The structures of an object of another library, such as three for a spaCy ``Doc`` with three sentences.

    Args:
        thing: an object of a class that a converter claims; ``structpe.formats.CONVERTERS`` lists them. A
            :class:`Structure` is itself.
        options: options of the converter.

    Raises:
        ConversionError: no converter claims its class, the option does not exist, or the object cannot be converted.
        StructureError: a graph is invalid.
    """
    return list(each_structure(thing, **options))


def each_structure(thing: Any, **options: Any) -> Iterator[Structure]:
    """Yield the structures of an object one by one, for a data set larger than memory.

    Args:
        thing: as of :func:`as_structures`, or an iterator over such objects, each with one structure.
        options: options of the converter.

    Raises:
        ConversionError: as :func:`as_structures`.
        StructureError: a graph is invalid.
    """
    if isinstance(thing, Structure):
        yield thing
    elif isinstance(thing, Iterator):
        yield from of_rows(thing, lambda each: as_structure(each, **options))
    else:
        kind: Any = type(thing)
        chosen = _of_class(kind, CONVERTERS.changes) or _of_mapping(thing)
        if options:  # reading a signature takes as long as a small graph
            options = Builder(ConversionError).bound(chosen.read, (), options, f"converter {chosen.name!r}").arguments
        found = chosen.read(thing, **options)
        if isinstance(found, Structure):
            yield found
        else:
            yield from found


def of_rows(rows: Iterable[Any], read: Callable[[Any], Structure]) -> Iterator[Structure]:
    """The structure of each row; errors say which."""
    for number, row in enumerate(rows):
        with located(f"row {number}"):
            structure = read(row)
        yield structure


def as_structure(thing: Any, **options: Any) -> Structure:
    """The single structure of an object; see :func:`as_structures`.

    Raises:
        ConversionError: the object has none or several structures, or an error of :func:`as_structures`.
    """
    found = as_structures(thing, **options)
    if len(found) != 1:
        raise ConversionError(
            f"the {type(thing).__name__} has {len(found)} structures where one is needed; as_structures() returns all"
        )
    return found[0]


def convert(structure: Structure, to: str, **options: Any) -> Any:
    """Convert a structure into an object of another library.

    The docstring of the converter's module lists what is lost.

    Args:
        structure: the graph.
        to: name of the converter, such as ``networkx`` or ``pyg``.
        options: options of the converter.

    Raises:
        ConversionError: the converter or option does not exist, the converter only reads, or the structure cannot be
            converted.
    """
    chosen = CONVERTERS[to]
    if chosen.write is None:
        able = ", ".join(name for name, known in CONVERTERS.items() if known.write is not None)
        raise ConversionError(f"converter {to!r} only reads; these also write: {able}")
    check_structures([structure], "convert")
    found = Builder(ConversionError).bound(chosen.write, (), options, f"converter {to!r}")
    return chosen.write(structure, **found.arguments)


@lru_cache(maxsize=64)
def _of_class(kind: type, changes: int) -> Converter | None:
    """The converter that claims a class or a base of it; None if none does. ``changes`` are those of the registry."""
    claimed = {name: each for each in CONVERTERS.values() for name in each.classes}
    # The nearest first, Python's own at the end: a sparse matrix of SciPy may be a dict.
    for cls in sorted(kind.__mro__, key=lambda cls: cls.__module__ == "builtins"):
        if (found := claimed.get(f"{cls.__module__.partition('.')[0]}.{cls.__name__}")) is not None:
            return found
    return None


def _of_mapping(thing: Any) -> Converter:
    if isinstance(thing, Mapping):  # such as a row that Hugging Face's datasets give to a function
        return CONVERTERS["rows"]
    classes = ", ".join(sorted(name for known in CONVERTERS.values() for name in known.classes))
    given = f"{type(thing).__module__}.{type(thing).__qualname__}"
    raise ConversionError(f"no converter takes a {given}; known are objects of {classes}; files are read with read()")

"""Encodings from plain data: a name, or a mapping with ``name`` and options; and lists of encodings in any form."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, TypeAlias

from structpe.encodings.base import ENCODINGS, Encoding, check_hashable
from structpe.errors import EncodingError, PositionError, StructPEError
from structpe.plain.bounds import OPTION
from structpe.plain.typed import Builder, hints_of, options_of
from structpe.registry import unknown

__all__ = ["Asked", "as_encoding", "as_encodings", "builder", "check_hints", "check_sizes", "options", "split"]

Asked: TypeAlias = Encoding | str | Mapping[str, Any]
"""An encoding, its name, or ``name`` and options."""


def as_encoding(
    given: Asked,
    what: str = "the encoding",
    kind: type[Encoding] = Encoding,
    error: type[StructPEError] = EncodingError,
) -> Encoding:
    """The encoding itself, or the one that plain data describes.

    Args:
        given: an encoding, its name, or a mapping with ``name`` and options.
        what: what it is, in errors.
        kind: class that it must be of.
        error: class of the errors.

    Raises:
        StructPEError: of class ``error``; there is no such encoding or option, or an option is of another type.
    """
    if isinstance(given, kind):
        return given
    name, given_options = split(given, f"{what}, an encoding,", "an Encoding", error)
    if name not in ENCODINGS:
        raise error(f"{what}: {unknown('encoding', name, sorted(ENCODINGS))}")
    chosen = ENCODINGS[name]
    if not issubclass(chosen, kind):
        raise error(f"{what} takes an encoding of the class {kind.__name__}; {name!r} is not one")
    return chosen(**options(error, f"encoding {name!r}", chosen.__init__, given_options, 1))


def as_encodings(given: Any, whose: str) -> tuple[Encoding, ...]:
    """The encodings of a list of encodings, names, and mappings with ``name`` and options.

    Args:
        given: the list.
        whose: the function that takes it, in errors.

    Raises:
        EncodingError: it is no such list, or an encoding cannot be a key.
        PositionError: there is no encoding of a name, or no such option.
    """
    example = "such as [Order(), Distance(max_distance=8)]"
    if isinstance(given, (str, Mapping)) or not isinstance(given, Collection):  # an iterator could be read only once
        raise EncodingError(f"{whose} takes a list of encodings, {example}; given is {given!r}")
    for each in given:
        if not isinstance(each, (Encoding, str, Mapping)):
            raise EncodingError(
                f"{whose} takes a list of encodings, {example}, and {each!r} is not one; a name such as 'distance' "
                f"makes one with its defaults, {{'name': 'distance', 'max_distance': 8}} with options"
            )
    made = tuple(each if isinstance(each, Encoding) else as_encoding(each, error=PositionError) for each in given)
    for encoding in made:
        check_hashable(encoding)
    return made


@cache
def builder(error: type[StructPEError]) -> Builder:
    """What checks options, some of which are encodings in any form; its errors are of this class."""
    return Builder(error, Encoding, lambda kind, value, what: as_encoding(value, what, kind, error))


def options(error: type[StructPEError], whose: str, init: Any, given: Mapping[str, Any], skip: int) -> dict[str, Any]:
    """Options from plain data as a constructor wants them.

    Args:
        error: class of the errors.
        whose: owner of the options in errors.
        init: the constructor.
        given: options by name.
        skip: how many parameters come before the options.

    Raises:
        StructPEError: of class ``error``; an option is unknown, missing, too large, of another type, or has no hint.
    """
    check_hints(error, whose, init, given, skip)
    check_sizes(error, whose, given)
    return builder(error).arguments(init, given, whose, skip)


def check_hints(error: type[StructPEError], whose: str, init: Any, given: Mapping[str, Any], skip: int) -> None:
    """Check that options from plain data have type hints.

    Raises:
        StructPEError: of class ``error``; one has none.
    """
    hints = hints_of(init)
    for option in options_of(init, skip):
        if option in given and option not in hints:
            raise error(
                f"option {option!r} of {whose} has no type hint, which plain data is checked by; annotate it, "
                f"such as encoding: Encoding = ..."
            )


def check_sizes(error: type[StructPEError], whose: str, given: Mapping[str, Any]) -> None:
    """Check that whole numbers, those in lists too, are none that memory could not hold; seeds may be any.

    Raises:
        StructPEError: of class ``error``; one is larger.
    """
    for option, value in given.items():
        for each in value if isinstance(value, (list, tuple)) else (value,):
            if option != "seed" and type(each) is int and abs(each) > OPTION:
                what = f"option {option!r} of {whose} is {each}"
                raise error(f"{what}; at most {OPTION} is allowed, give a smaller number")


def split(config: Any, what: str, other: str, error: type[StructPEError]) -> tuple[str, dict[str, Any]]:
    """Name and options of a name, or of a mapping that has one.

    Raises:
        StructPEError: of class ``error``; it is neither.
    """
    if isinstance(config, str):
        return config, {}
    if isinstance(config, Mapping) and isinstance(config.get("name"), str):
        return config["name"], {key: value for key, value in config.items() if key != "name"}
    raise error(
        f"{what} is described by its name, by a mapping with 'name' and options, or by {other}; given is {config!r}"
    )

"""Lists of triples: ``as_structure([("Orrin", "partOf", "Inner Isles")])``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from structpe.converters.base import ConversionError, add_converter
from structpe.errors import ReadError
from structpe.readers.triples import triples, without_header
from structpe.structure import Structure

__all__ = ["from_triples"]


def from_triples(facts: Sequence[Any], name: str = "", header: bool | None = None) -> Structure:
    """The knowledge graph of (subject, relation, object) texts; see :func:`structpe.readers.triples.triples`.

    Args:
        facts: lists or tuples of three texts.
        name: where they come from, for error messages.
        header: whether the first names the columns, and is left out; None: it is a fact, but an error if it has the
            usual names, such as ``head relation tail``.

    Raises:
        ConversionError: something in the list is not three texts, or the first looks like a header.
        StructureError: there is no fact, or a text is empty.
    """
    for place, fact in enumerate(facts):
        if not isinstance(fact, (list, tuple)) or len(fact) != 3 or not all(isinstance(part, str) for part in fact):
            given = f"{type(fact).__module__}.{type(fact).__qualname__}".removeprefix("builtins.")
            raise ConversionError(
                f"a list is taken as triples (subject, relation, object) of texts, but number {place} is {given} "
                f"{repr(fact)[:80]}; convert several objects one by one"
            )
    try:
        return triples(without_header(facts, header), name)
    except ReadError as error:
        raise ConversionError(error.message) from None


add_converter("triples", "builtins.list builtins.tuple", "lists of (subject, relation, object)", from_triples)

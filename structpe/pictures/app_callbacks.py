"""The functions of the app, from the user's choices to a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from structpe.encodings.base import ENCODINGS
from structpe.formats import READERS, read
from structpe.pictures.head_patterns import Quantity, begin
from structpe.pictures.show import show
from structpe.pictures.style import PictureError, look
from structpe.positions import Dims
from structpe.positions.build import Config
from structpe.structure import Structure, path

__all__ = ["ANY", "picture", "structures"]


ANY = "by the suffix"
"""The choice without a reader."""
SENTENCE = "the keeper lit the lamp at dusk"


def structures(
    file: str, reader: str = ANY, on_error: str = "raise", options: Mapping[str, Any] | None = None
) -> list[Structure]:
    """The structures of a file; without a file, a sentence as a sequence.

    Args:
        file: path of a file or folder, or an empty text.
        reader: name of the reader.
        on_error: what to do with bad items, ``raise`` or ``skip``.
        options: options of the reader.

    Raises:
        ReadError: the file is missing or invalid.
    """
    if not file.strip():
        return [path(SENTENCE.split(), name="an example")]
    on_error_known: Any = on_error  # `read` checks it
    name = None if reader == ANY else READERS[reader].name
    return read(file.strip(), name, on_error_known, **(options or {})).structures


def picture(
    given: Sequence[Structure],
    index: int,
    encodings: Sequence[str] = (),
    position: Config = "",
    dims: Dims = Dims(64, 4, 1),
    quantity: Quantity | None = None,
) -> bytes:
    """A PNG of one of the structures.

    Args:
        given: the structures, from which encodings learn labels.
        index: index of the structure to draw.
        encodings: names of encodings.
        position: a position model, or an empty text.
        dims: sizes of the Transformer for which it is built.
        quantity: quantity of its heads.

    Raises:
        StructPEError: an encoding or a model does not fit the structure.
    """
    if not 0 <= index < len(given):
        raise PictureError(f"there are {len(given)} structures, 0..{len(given) - 1}; {index} is out of range")
    made: list[Any] = [ENCODINGS[name] for name in encodings]
    what: list[Any] = [encoding().fit(given) for encoding in made]
    if position:
        what.append(begin(position, dims, lambda: given))
    held = BytesIO()
    drawn = show(given[index], what, quantity if position else None)
    with look():
        drawn.savefig(held, format="png", dpi=110)
    return held.getvalue()

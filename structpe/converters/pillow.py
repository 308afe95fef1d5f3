"""Pillow: images as grids, with a node per pixel or patch. Images with a palette are converted to colours.

The inverse is an array: ``convert(structure, "numpy", kind="image")``, for ``PIL.Image.fromarray``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from structpe.converters._images import from_pixels
from structpe.converters.base import ConversionError, add_converter
from structpe.structure import Structure

__all__ = ["from_pillow"]


def from_pillow(image: Any, patch: int | Sequence[int] = 1) -> Structure:
    """The grid of the current frame of a ``PIL.Image.Image``; rows from the top, columns from the left.

    Args:
        image: in any mode; its bands are the channels of ``x``. A palette is converted to ``RGBA``.
        patch: length of a patch in pixels on each axis, such as 16 or (16, 8), rows first.

    Raises:
        ConversionError: the file of the image is damaged, or a patch does not divide a length.
    """
    try:
        plain = image.convert("RGBA") if image.mode in ("P", "PA") else image
        found = np.asarray(plain)
    except (OSError, SyntaxError, ValueError) as error:
        raise ConversionError(f"the image cannot be read: {error}; restore its file") from None
    return from_pixels(found, patch)


add_converter("pillow", "PIL.Image", "images, as grids of pixels or patches", from_pillow)

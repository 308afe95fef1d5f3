"""Arrays of pixels as grids: a product of paths, a node per pixel or per patch of pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from structpe.formats.converting import ConversionError
from structpe.structure import Structure

__all__ = ["Channels", "from_pixels", "pixels"]


Channels = Literal["last", "first", "none"]


def from_pixels(pixels: NDArray[Any], patch: int | Sequence[int] = 1, channels: Channels = "last") -> Structure:
    """The grid of an image or video.

    Args:
        pixels: (H, W), (H, W, C) or (T, H, W, C) numbers or booleans; (C, H, W) or (T, C, H, W) with channels
            ``first``, (T, H, W) with ``none``. T is the number of frames of a video.
        patch: length of a patch in pixels on each axis, such as 16 or (16, 16) or (2, 16, 16); a single number is for
            rows and columns, with one frame.
        channels: the axis of the channels.

    Returns:
        A structure with a node per patch, in row-major order; ``coordinates`` (n, axes), and ``x`` (n, patch x C), the
        pixels of the patch in row-major order, with consecutive channels, in the same dtype.

    Raises:
        ConversionError: the number of axes is wrong, or a patch does not divide a length.
        StructureError: there are more than 2^20 nodes, or pixels are not finite.
    """
    from structpe.transforms.grids import grid

    if channels not in ("last", "first", "none"):
        raise ConversionError(f"channels is {channels!r}; give 'last', 'first' or 'none'")
    table = _channels_last(pixels, channels)
    size = _sizes(patch, table.ndim - 1)
    if any(length % part for length, part in zip(table.shape[:-1], size, strict=True)) or min(table.shape[:-1]) < 1:
        wrong = f"pixels of shape {table.shape[:-1]} cannot be cut into patches of {size}"
        raise ConversionError(f"{wrong}; crop or pad them first to multiples of these lengths")
    shape = tuple(length // part for length, part in zip(table.shape[:-1], size, strict=True))
    axes = len(shape)
    split = table.reshape(*(each for pair in zip(shape, size, strict=True) for each in pair), table.shape[-1])
    order = (*range(0, 2 * axes, 2), *range(1, 2 * axes, 2), 2 * axes)
    whole = grid(shape)
    x = split.transpose(order).reshape(whole.size, math.prod(size) * table.shape[-1])
    return replace(whole, features={**whole.features, "x": np.ascontiguousarray(x)})


def pixels(structure: Structure, patch: int | Sequence[int] = 1, channels: Channels = "last") -> NDArray[Any]:
    """The inverse of :func:`from_pixels`; a single channel is an axis unless ``channels`` is ``none``.

    Raises:
        ConversionError: the structure is not a complete grid with pixels, or the patches have another size.
    """
    lacking = [key for key in ("coordinates", "x") if key not in structure.features]
    if lacking:
        raise ConversionError(f"the structure has no feature {lacking[0]!r}; an image is made of 'coordinates' and 'x'")
    places, x = (np.asarray(structure.features[key]) for key in ("coordinates", "x"))
    if places.ndim != 2 or places.dtype.kind not in "iu" or places.min(initial=0) < 0:
        raise ConversionError("the feature 'coordinates' is not a table of whole numbers from 0; remove class tokens")
    shape = tuple(int(most) + 1 for most in places.max(axis=0))
    if math.prod(shape) != structure.size or len(np.unique(places, axis=0)) < structure.size:
        raise ConversionError(f"{structure.size} nodes do not fill a grid of shape {shape}, each place once")
    size = _sizes(patch, len(shape))
    if x.ndim != 2 or x.shape[1] % math.prod(size) or (channels == "none" and x.shape[1] != math.prod(size)):
        raise ConversionError(f"the feature 'x' has shape {x.shape}, which does not fit patches of {size}")
    axes, depth = len(shape), x.shape[1] // math.prod(size)
    table = np.empty((*shape, *size, depth), x.dtype)
    table[tuple(places.T)] = x.reshape(-1, *size, depth)
    order = (*(each for axis in range(axes) for each in (axis, axes + axis)), 2 * axes)
    whole = table.transpose(order).reshape(*(n * part for n, part in zip(shape, size, strict=True)), depth)
    if channels == "none":
        return whole[..., 0]
    return whole if channels == "last" else np.moveaxis(whole, -1, -3)


def _channels_last(given: NDArray[Any], channels: Channels) -> NDArray[Any]:
    """(..., C), with one channel if the array has none."""
    if given.dtype.kind not in "biuf":
        raise ConversionError(f"the pixels have dtype {given.dtype}; give numbers or booleans")
    axes = given.ndim - (channels != "none" and given.ndim > 2)
    if axes not in (2, 3):
        raise ConversionError(
            f"the array has shape {given.shape}; an image is (H, W) or (H, W, C), a video (T, H, W, C), or "
            "(T, H, W) with channels='none'"
        )
    if given.ndim == axes:
        return given[..., None]
    return given if channels == "last" else np.moveaxis(given, -3, -1)


def _sizes(patch: int | Sequence[int], axes: int) -> tuple[int, ...]:
    """Length of a patch on each axis."""
    if isinstance(patch, (int, np.integer)):
        size = (*(1 for _ in range(axes - 2)), *(int(patch) for _ in range(2)))
    else:
        size = tuple(int(each) for each in patch)
    if len(size) != axes or min(size) < 1:
        raise ConversionError(f"patch is {patch!r}; give one whole number from 1, or one for each of {axes} axes")
    return size

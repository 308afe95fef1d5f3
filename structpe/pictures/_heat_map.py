"""Draw a matrix with accessible colours, names if there is room, and a colour bar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structpe.pictures._boxes import wide
from structpe.pictures._plot import FAINT, GREY, MUTED, add_bar, thinned
from structpe.pictures.heat import Heat

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MAPS", "SHADES", "draw", "size_of"]

MAPS = {"sequential": "viridis", "diverging": "RdBu_r"}
SHADES = {"no path": GREY, "same node": "#f6dfa4", "not listed": FAINT, "no place": "#dcd0e8", "does not attend": GREY}
"""Colours of cells that are not numbers."""
WRITTEN = 14
"""Largest number of rows and columns for which integers are written into the cells."""


def size_of(heat: Heat) -> tuple[float, float]:
    """Width and height in inches of a map with its names."""
    rows, columns = heat.values.shape
    cell = float(np.clip(6.5 / max(rows, columns, 1), 0.035, 0.32))
    points = _letters(heat)
    name = max((wide(name, points) for name in heat.rows), default=0.0)
    square = heat.rows is heat.columns
    below = max((wide(name, points) for name in heat.columns), default=0.0) if square else 0.2
    across = max(1.0, columns * cell, wide(heat.title, 9.0) - 0.8)
    return across + name + 1.5, max(1.2 if square else 0.5, rows * cell) + below + 1.15


def _letters(heat: Heat) -> float:
    """Font size of the names of rows and columns."""
    return 7.0 if len(heat.values) <= 40 else 5.5


def draw(axes: Axes, heat: Heat, bar: bool = True) -> None:
    """Draw a matrix on axes."""
    from matplotlib.patches import Patch

    low, high = heat.limits
    square = heat.rows is heat.columns
    drawn = axes.imshow(
        heat.values,
        cmap=MAPS[heat.scale],
        vmin=low,
        vmax=high,
        aspect="equal" if square else "auto",
        interpolation="nearest",
    )
    for name, mask in heat.special.items():
        _shade(axes, mask, SHADES[name])
    axes.set_title(heat.title)
    axes.set_xlabel(heat.axes[1], color=MUTED, fontsize=7)
    axes.set_ylabel(heat.axes[0], color=MUTED, fontsize=7)
    _names(axes, heat)
    axes.spines[:].set_visible(False)
    _numbers(axes, heat)
    if bar:
        _bar(axes, drawn, heat)
    if heat.special:
        patches = [Patch(color=SHADES[name], label=name) for name in heat.special]
        axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(1.0, 0.0), handlelength=1, handleheight=1)


def _shade(axes: Axes, mask: Any, colour: str) -> None:
    from matplotlib.colors import ListedColormap

    axes.imshow(np.where(mask, 0.0, np.nan), cmap=ListedColormap([colour]), aspect=axes.get_aspect())


def _names(axes: Axes, heat: Heat) -> None:
    rows, columns = heat.values.shape
    square = heat.rows is heat.columns
    shown = thinned(rows, 75)
    small = _letters(heat)
    axes.set_yticks(list(shown), [heat.rows[i] for i in shown], fontsize=small, parse_math=False)
    across = thinned(columns, 75 if square else 12)
    axes.set_xticks(
        list(across),
        [heat.columns[i] for i in across],
        fontsize=small,
        rotation=90 if square else 0,
        parse_math=False,
    )


def _numbers(axes: Axes, heat: Heat) -> None:
    rows, columns = heat.values.shape
    if not heat.whole or max(rows, columns) > WRITTEN or heat.rows is not heat.columns:
        return
    low, high = heat.limits
    for (i, j), value in np.ndenumerate(heat.values):
        if not np.isfinite(value) or abs(value) >= 1000:
            continue
        part = (value - low) / ((high - low) or 1.0)
        dark = part < 0.55 if heat.scale == "sequential" else abs(part - 0.5) > 0.3
        axes.text(j, i, f"{value:.0f}", ha="center", va="center", fontsize=6, color="white" if dark else "#333333")


def _bar(axes: Axes, drawn: Any, heat: Heat) -> None:
    from matplotlib.ticker import MaxNLocator

    if not np.isfinite(heat.values).any():
        return
    bar = add_bar(axes.figure, drawn, axes, 0.6, 18)
    if heat.whole:
        bar.locator = MaxNLocator(integer=True)

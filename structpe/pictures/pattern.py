"""Patterns of attention from positions, without content (Chen et al. 2021, figures 4 and 6).

Figure 4 (section 4.5) shows heads of a trained DIET-ABS, which attend by offset, or to the first unit. Figure 6
(appendix C) shows heads of DIET-REL with segments, without content, on an input of 32 units whose second segment begins
at 16, as :func:`segmented` makes it. The paper's models are trained on English. Here, figures are for any model of the
registry with random parameters, or for a trained one (``Trained.patterns``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from structpe.pictures import heat
from structpe.pictures.head_patterns import weights_of
from structpe.pictures.setting import Setting, first_layer, sequence
from structpe.pictures.style import MUTED, PictureError, add_bar, figure, fitting, look, settle
from structpe.positions.build import Config
from structpe.structure import Structure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "pattern", "segmented"]

ACROSS = 6


@torch.no_grad()
def pattern(position: Config, setting: Setting = Setting()) -> Tensor:
    """(h, n, n) the attention weights of the first layer, from positions only.

    Args:
        position: plain data for :func:`structpe.positions.build`.
        setting: the sizes and the input; its content is ignored.

    Raises:
        PictureError: the model has its own attention.
        EncodingError, PositionError: the model does not fit the structure.
    """
    return weights_of(*first_layer(position, replace(setting, content=0.0)))[0]


def segmented(places: int = 32, start: int = 16) -> Structure:
    """A sequence of two segments, with the feature ``segment``; the second begins at ``start``, as in figure 6.

    Raises:
        PictureError: a segment would be empty.
    """
    if not 0 < start < places:
        raise PictureError(f"the second segment begins at {start} of {places} places; give one of 1..{places - 1}")
    return replace(sequence(places), features={"segment": (np.arange(places) >= start).astype(np.int64)})


def draw(weights: Tensor, title: str = "", marks: Sequence[int] = ()) -> Figure:
    """Draw a map for each head, on one scale.

    Args:
        weights: (h, n, n).
        title: title of the picture.
        marks: places for lines, such as the beginning of a segment.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    count = len(weights)
    across, down = min(count, ACROSS), -(-count // ACROSS)
    with look():
        picture = figure(1.9 * across + 0.9, 2.1 * down + 0.5)
        picture.suptitle(
            fitting(title, (1.9 * across + 0.7) / 1.15, 10), x=0.01, ha="left", fontsize=10, fontweight="bold"
        )
        grid = picture.subplots(down, across, squeeze=False)
        drawn: Any = None
        for head, axes in enumerate(grid.flat):
            if head >= count:
                axes.set_axis_off()
                continue
            drawn = axes.imshow(weights[head].numpy(), cmap=heat.MAPS["sequential"], vmin=0,
                                vmax=float(weights.max()), interpolation="nearest")  # fmt: skip
            axes.set_title(f"head {head + 1}", fontsize=7, loc="center", color=MUTED)
            axes.set_xticks([])
            axes.set_yticks([])
            for place in marks:
                axes.axhline(place - 0.5, color="white", linewidth=0.6)
                axes.axvline(place - 0.5, color="white", linewidth=0.6)
            axes.spines[:].set_visible(False)
        add_bar(picture, drawn, grid, 0.8, 16)
        settle(picture)
    return picture

"""The rank of the scores of attention with a position model (Chen et al. 2021, section 2.3 and appendix C).

Figure 2 compares the rank of all scores of a BERT with absolute positions at the input and of one with DIET-ABS; figure
8 compares the parts from positions, P W_Q W_K^T P^T and P_Q P_K^T; theorem 1 explains them. The paper plots trained
models. Here, :func:`scores` is for any model of the registry with random parameters, which reaches the bounds of the
theorem. For a trained model, pass ``Trained.patterns.scores`` to :func:`singular_values`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

from structpe.errors import StructPEError
from structpe.pictures.head_patterns import weights_of
from structpe.pictures.setting import Setting, first_layer
from structpe.pictures.style import FAINT, LINES, MUTED, PictureError, figure, fitting, look, settle
from structpe.positions.build import Config
from structpe.terms import Terms

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Ranks", "centred", "draw", "rank", "ranks", "scores", "singular_values"]

TOLERANCE = 1e-9
"""Singular values below this fraction of the largest count as zero; rounding errors are about 1e-15."""


@dataclass(frozen=True)
class Ranks:
    """The rank from positions only, and of all scores; None, with a reason, if there is no matrix of scores."""

    position: int | None
    whole: int | None
    why: str = ""


def ranks(position: Config, setting: Setting = Setting()) -> Ranks:
    """The largest ranks of a head: figure 8, and figure 2."""
    try:
        alone = rank(scores(position, replace(setting, content=0.0)))
        return Ranks(alone, rank(scores(position, setting)))
    except StructPEError as error:
        return Ranks(None, None, str(error))


@torch.no_grad()
def scores(position: Config, setting: Setting = Setting()) -> Tensor:
    """(h, n, n) the scores of the first layer, minus the mean of each row, which does not change the softmax.

    They are the logarithm of the output of attention with unit vectors as values, for any model.

    Args:
        position: plain data for :func:`structpe.positions.build`.
        setting: the sizes and the input.

    Raises:
        PictureError: attention is not a softmax over all pairs.
        EncodingError, PositionError: the model does not fit the structure.
    """
    return centred(*first_layer(position, setting))


def centred(q: Tensor, k: Tensor, terms: Terms) -> Tensor:
    """(h, n, n) the scores of queries and keys (1, h, n, d_h), minus the mean of each row.

    Raises:
        PictureError: attention is not a softmax over all pairs.
    """
    if other := terms.used() & {"feature_map", "projection", "pairs", "mask", "causal"}:
        raise PictureError(f"no softmax over all pairs: {', '.join(sorted(other))}")
    logs = weights_of(q, k, terms)[0].log()
    if not logs.isfinite().all():
        raise PictureError("a weight of attention is zero")
    return logs - logs.mean(-1, keepdim=True)


def singular_values(matrices: Tensor) -> Tensor:
    """(..., n) singular values of each matrix (..., n, n), relative to the largest; zeros for a zero matrix."""
    values = torch.linalg.svdvals(matrices)
    largest = values[..., :1]
    return torch.where(largest > TOLERANCE, values / largest.clamp(min=TOLERANCE), 0)


def rank(matrices: Tensor) -> int:
    """The largest rank of a head."""
    return int((singular_values(matrices) > TOLERANCE).sum(-1).max())


def draw(values: Mapping[str, Tensor], marks: Mapping[str, int] | None = None, title: str = "") -> Figure:
    """Plot singular values by size, a line for each model, which drops to zero at the rank.

    Args:
        values: by legend, (n,) of a head, from :func:`singular_values`.
        marks: numbers to mark on the axis, such as d_h, by name.
        title: title of the picture.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    with look():
        from matplotlib.ticker import FuncFormatter

        picture = figure(6.4, max(3.8, 0.17 * len(values) + 0.6))
        axes = picture.subplots()
        for number, (legend, each) in enumerate(values.items()):
            kept = each[each > TOLERANCE].numpy()
            x, y = np.append(np.arange(1, len(kept) + 1), len(kept)), np.append(kept, 1e-7)
            style = ("-", "--", ":", "-.")[number // len(LINES) % 4]
            axes.plot(
                x,
                y,
                style,
                color=LINES[number % len(LINES)],
                label=f"{fitting(legend, 1.6, 7)}: rank {len(kept)}",
            )
        most = max((len(each) for each in values.values()), default=1)
        _marks(axes, marks or {}, most)
        axes.set(yscale="log", ylim=(1e-4, 1.5), xlim=(0, most), title=fitting(title, 3.3, 9))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set(xlabel="singular value, by size", ylabel="part of the largest")
        axes.spines[["top", "right"]].set_visible(False)
        picture.legend(loc="outside right upper")
        settle(picture)
    return picture


def _marks(axes: Axes, marks: Mapping[str, int], most: int) -> None:
    """Draw vertical lines at numbers, with their names."""
    for number, (name, place) in enumerate(marks.items()):
        axes.axvline(place, color=FAINT, linewidth=1.5, zorder=0)
        side: Literal["left", "right"] = "left" if place < 0.7 * most else "right"
        axes.text(place, 1.15e-4 * 2**number, f" {name} = {place} ", color=MUTED, fontsize=7, ha=side)

"""The style of pictures: fonts, colours, labels and sizes of texts; and saving pictures."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from structpe.errors import StructPEError, needing
from structpe.system.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "FAINT",
    "GREY",
    "INK",
    "LINES",
    "MUTED",
    "Box",
    "PictureError",
    "add_bar",
    "apart",
    "families",
    "figure",
    "fitting",
    "label",
    "look",
    "meets",
    "save",
    "settle",
    "shortened",
    "tall",
    "text_box",
    "thinned",
    "wide",
]


INK, MUTED, GREY, FAINT = "#1f2933", "#6b7785", "#c9d0d8", "#eef1f4"
LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d31")
"""Colours for colour-blind readers (Okabe and Ito 2008), with a brown instead of their yellow."""
SUFFIXES = (".png", ".svg")
FONT = "DejaVu Sans"
OTHERS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Zen Hei", "Microsoft YaHei",
    "Hiragino Sans GB", "Noto Sans", "Noto Sans Arabic", "Noto Sans Devanagari", "Noto Sans Thai", "Noto Emoji",
    "Arial Unicode MS", "Segoe UI Symbol",
)  # fmt: skip
"""Fonts for letters that the first one lacks, if installed."""
SETTINGS: Any = {
    "font.size": 8,
    "text.color": INK,
    "text.parse_math": False,  # labels are texts from files, and may contain dollars
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.size": 2,
    "ytick.major.size": 2,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "svg.fonttype": "path",
    "svg.hashsalt": "structpe",  # makes files reproducible
}


class PictureError(StructPEError):
    """A picture cannot be drawn."""


@contextmanager
def look() -> Iterator[None]:
    """A context with the style of all pictures.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    with needing("matplotlib", "viz"):
        import matplotlib
    with matplotlib.rc_context({**SETTINGS, "font.family": families()}), warnings.catch_warnings():
        # Letters that all fonts lack become visible boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def families() -> list[str]:
    """The font of all pictures, and installed fonts with other scripts."""
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return [FONT, *(name for name in OTHERS if name in installed)]


def figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches, which needs no screen."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    # Words below a square map are a little lower than the solver assumes.
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(h_pad=0.07))


def settle(picture: Figure) -> None:
    """Fix the layout of a finished picture; otherwise each drawing would change it slightly."""
    if (engine := picture.get_layout_engine()) is not None:
        engine.execute(picture)
    picture.set_layout_engine("none")
    _round(picture)


def _round(picture: Any) -> None:
    """Round places to the precision of the layout engine, since ids in an SVG depend on them."""
    for part in picture.subfigs:
        part.bbox_relative.p0, part.bbox_relative.p1 = part.bbox_relative.p0.round(6), part.bbox_relative.p1.round(6)
        _round(part)
    for axes in picture.axes:
        place = axes.get_position(original=True)
        axes.set_position([round(float(number), 6) for number in place.bounds], which="original")


def add_bar(part: Any, drawn: Any, axes: Any, shrink: float, aspect: float) -> Any:
    """Add the scale of colours of an image to a figure or a part of one."""
    bar = part.colorbar(drawn, ax=axes, shrink=shrink, aspect=aspect, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=6, length=2)
    return bar


def save(picture: Figure, path: str | Path, dots: int = 150) -> Path:
    """Write a picture atomically, as PNG or SVG by its suffix.

    Args:
        picture: such as one from :func:`structpe.pictures.show`.
        path: ends in .png or .svg.
        dots: dots per inch of a PNG.

    Raises:
        PictureError: the suffix is unknown.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise PictureError(f"{str(path)!r} has no known suffix; give one of {', '.join(SUFFIXES)}")
    kind, held = path.suffix.lower()[1:], BytesIO()
    nothing: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    with look():
        picture.savefig(held, format=kind, dpi=dots, metadata=nothing)
    atomic_write(path, lambda hidden: hidden.write_bytes(held.getvalue()))
    return path


def label(text: str, most: int = 24) -> str:
    """A text on one line, cut at the end if it is long."""
    line = re.sub(r"[\s\x00-\x1f\x7f]+", " ", text).strip()
    return line if len(line) <= most else f"{line[: most - 1]}…"


def shortened(text: str, most: int) -> str:
    """A text on one line, cut in the middle if it is long: the ends of paths and numbers are informative."""
    line = label(text, len(text) + 1)
    half = (most - 1) // 2
    return line if len(line) <= most else f"{line[:half]}…{line[-half:]}"


def thinned(count: int, room: int) -> Sequence[int]:
    """Indices of every k-th of ``count`` items, with the smallest round k that leaves at most ``room`` items."""
    step = max(1, -(-count // max(1, room)))
    for round_step in (1, 2, 3, 4, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000):
        if round_step >= step:
            return range(0, count, round_step)
    return range(0, count, step)


Box = NDArray[np.float64]
"""(4,) left, bottom, right, top."""
SPARE = 1.06
"""Factor for renderers, which round the widths of letters to pixels."""


def wide(text: str, points: float, style: str = "normal") -> float:
    """Width of a line of text in a font size; call it inside :func:`structpe.pictures.style.look`."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=points, style=style)  # type: ignore[arg-type]  # any text in its own annotation
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return SPARE * float(width) / 72


def fitting(text: str, inches: float, points: float) -> str:
    """A text, cut in the middle to fit a width."""
    most = len(text)
    while most > 3 and wide(shortened(text, most), points) > inches:
        most -= 1
    return shortened(text, most)


def tall(points: float) -> float:
    """Height of one line of text."""
    return 1.3 * points / 72


def text_box(x: float, y: float, width: float, height: float) -> Box:
    """The box around a point."""
    return np.array([x - width / 2, y - height / 2, x + width / 2, y + height / 2])


def meets(box: Box, others: Iterable[Box]) -> bool:
    """Whether a box overlaps any other."""
    return any(box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in others)


def apart(middles: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 2) the middles, moved until no two boxes overlap; each pair moves along the axis with the smaller overlap.

    Args:
        middles: (n, 2) middles of the boxes.
        sizes: (n, 2) width and height of each box.
    """
    reach, held = float(sizes.max()), float(np.prod(np.ptp(middles, axis=0) + sizes.max(axis=0)))
    at: NDArray[np.float64] = middles * max(1.0, (1.3 * float(sizes.prod(axis=1).sum()) / held) ** 0.5)
    for turn in range(400):
        near = cKDTree(at).query_pairs(reach, p=np.inf, output_type="ndarray")
        first, second = np.sort(near, axis=1).T
        gap = at[second] - at[first]
        short = (sizes[first] + sizes[second]) / 2 - np.abs(gap)
        meeting = (short > 1e-6).all(axis=1)
        if not meeting.any():
            return at
        first, second, gap, short = first[meeting], second[meeting], gap[meeting], short[meeting]
        axis = short.argmin(axis=1)
        row = np.arange(len(axis))
        # Of two at the same place, the later one moves to the right or up.
        push = np.where(gap[row, axis] < 0, -1.0, 1.0) * (0.5 * short[row, axis] + 1e-4)
        moved, count = np.zeros_like(at), np.zeros_like(at)
        for node, way in ((second, 1.0), (first, -1.0)):
            np.add.at(moved, (node, axis), way * push)
            np.add.at(count, (node, axis), 1.0)
        at += moved / np.maximum(1.0, count) ** 0.5
        if turn % 20 == 19:
            at *= 1.05  # too crowded to converge otherwise
    at *= max(1.0, reach / max(_nearest(at), 1e-3))
    return at


def _nearest(at: NDArray[np.float64]) -> float:
    """The smallest distance between two places."""
    far = np.abs(at[:, None] - at[None]).max(axis=-1)
    far[np.arange(len(at)), np.arange(len(at))] = np.inf
    return float(far.min())

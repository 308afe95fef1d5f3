"""Draw a structure: a line of words, a grid, a molecule, a tree as arcs, a hierarchy, or another graph.

A plan has all places in inches, computed from the widths of the texts, so that no two texts overlap. Matplotlib, or
plotly on a page, draws it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structpe.pictures._arcs import UPRIGHT, Arcs, arcs_of, draw_arcs
from structpe.pictures._plan import Laid, laid_out
from structpe.pictures._plot import FAINT, INK, LINES, MUTED, label
from structpe.pictures._relations import RELATION
from structpe.pictures.heat import NAMED
from structpe.pictures.molecule import Depiction, depict
from structpe.pictures.places import Form, form_of
from structpe.structure import Structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Drawn", "draw"]


class Drawn:
    """The plan of a structure.

    Make it within :func:`structpe.pictures._plot.look`, which sets the fonts.

    Args:
        structure: the graph.
        most: largest number of horizontal words of a parse.

    Raises:
        MissingExtra: it is a molecule, and RDKit is not installed.

    Attributes:
        form: the kind of layout.
        names: the texts at its nodes.
        depiction: layout of a molecule.
        arcs: layout of a tree.
        laid: layout of all other forms.
        size: width and height in inches.
    """

    def __init__(self, structure: Structure, most: int = UPRIGHT) -> None:
        self.structure, self.form = structure, form_of(structure)
        self.names = node_names(structure, 24 if structure.size <= 60 else 14)
        self.depiction: Depiction | None = depict(structure) if self.form == "molecule" else None
        self.arcs: Arcs | None = arcs_of(structure, self.names, most) if self.form == "tree" else None
        self.laid: Laid | None = None
        if self.depiction is None and self.arcs is None:
            self.laid = laid_out(structure, self.form, self.names)
        self.size = _size(self)

    @property
    def places(self) -> NDArray[np.float64]:
        """(n, 2) places of nodes; for a molecule in pixels with y downwards, for others in inches."""
        if self.depiction is not None:
            return self.depiction.atoms
        if self.arcs is not None:
            return np.stack([self.arcs.at, np.zeros(len(self.arcs.at))], axis=1)
        assert self.laid is not None
        return self.laid.places


def node_names(structure: Structure, most: int = 24) -> list[str]:
    """The texts at nodes: their labels, with their numbers if labels repeat and there is no order."""
    names = [label(text, most) for text in structure.nodes]
    if structure.size > NAMED and form_of(structure) == "graph":
        return [str(node) for node in range(structure.size)]
    ordered = structure.order is not None and form_of(structure) in ("sequence", "tree")
    return names if ordered or len(set(names)) == len(names) else [f"{i} {name}" for i, name in enumerate(names)]


def draw(axes: Axes, drawn: Drawn) -> None:
    """Draw a structure on axes of the size of its plan.

    Lines are added as artists, not as patches: the limits of the axes are given, and need not be found from each line.
    """
    axes.set_axis_off()
    if drawn.depiction is not None:
        _draw_molecule(axes, drawn.depiction)
        return
    width, height = drawn.size
    if drawn.arcs is not None:
        draw_arcs(axes, drawn.structure, drawn.names, drawn.arcs)
        low = -drawn.arcs.below
    elif drawn.laid is not None:
        low = 0.0
        _edges(axes, drawn.structure, drawn.laid)
        _nodes(axes, drawn, drawn.laid)
    axes.set_xlim(0, width)
    axes.set_ylim(low, low + height)


def _size(drawn: Drawn) -> tuple[float, float]:
    if drawn.depiction is not None:
        width, height = 2 * _half(drawn.depiction)
        scale = min(0.55 / drawn.depiction.bond, 13.0 / width, 10.0 / height)
        return float(width * scale), float(height * scale)
    part = drawn.arcs or drawn.laid
    assert part is not None
    return part.size


def _draw_molecule(axes: Axes, depiction: Depiction) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    for each in depiction.outlines():
        if len(each.points):
            stroke, width = each.stroke or ("none", 0.0)
            path = Path(each.points, each.codes)
            axes.add_artist(PathPatch(path, edgecolor=stroke, facecolor=each.fill or "none", linewidth=0.6 * width,
                                      linestyle=(0, (3, 2)) if each.dashed else "-"))  # fmt: skip
    middle, half = (depiction.atoms.min(axis=0) + depiction.atoms.max(axis=0)) / 2, _half(depiction)
    low, high = middle - half, middle + half
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(high[1], low[1])
    axes.set_aspect("equal")


def _half(depiction: Depiction) -> NDArray[np.float64]:
    """(2,) half of the width and height around the atoms of a drawing, in pixels, with room for letters."""
    half: NDArray[np.float64] = np.maximum(np.ptp(depiction.atoms, axis=0) / 2 + depiction.bond, 1.6 * depiction.bond)
    return half


def _nodes(axes: Axes, drawn: Drawn, laid: Laid) -> None:
    n, root = drawn.structure.size, drawn.structure.root
    if laid.dots:
        colours = [LINES[1] if node == root else LINES[0] for node in range(n)]
        x, y = laid.places.T
        axes.scatter(x, y, s=34 if n <= NAMED else 110, c=colours, zorder=3, linewidths=0)
    for name, (x, y) in zip(drawn.names, laid.texts, strict=True):
        if laid.dots:
            axes.text(x, y, name, ha="center", va="center", fontsize=laid.points, zorder=4,
                      color=INK if n <= NAMED else "white")  # fmt: skip
        else:
            axes.text(x, y, name, ha="center", va="center", fontsize=laid.points, zorder=4, bbox=_box(drawn.form))


def _box(form: Form) -> dict[str, Any]:
    edge = "none" if form == "sequence" else MUTED
    return {"boxstyle": "round,pad=0.25", "facecolor": FAINT if form != "hierarchy" else "white", "edgecolor": edge,
            "linewidth": 0.5}  # fmt: skip


def _edges(axes: Axes, structure: Structure, laid: Laid) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    for line in laid.lines:
        arrow = "-|>" if structure.directed and line.arrow else "-"
        axes.add_artist(FancyArrowPatch(path=Path(line.points), arrowstyle=arrow, mutation_scale=6, shrinkA=0,
                                        shrinkB=0, linewidth=0.7, color=MUTED, zorder=1))  # fmt: skip
    white = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    for each in laid.relations:
        axes.text(each.x, each.y, each.text, ha="center", va="center", fontsize=RELATION, color=LINES[0], zorder=2,
                  style="italic", bbox=white)  # fmt: skip
    if laid.below:
        axes.text(0.05, 0.03, "\n".join(laid.below), ha="left", va="bottom", fontsize=RELATION, color=MUTED,
                  linespacing=1.3)  # fmt: skip

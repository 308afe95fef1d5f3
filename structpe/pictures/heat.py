"""Heat maps: the values of an encoding as a matrix, and a matrix drawn with accessible colours.

For arity 1, the matrix has a row for each unit and a column for each of its numbers; for arity 2, a row for each query
and a column for each key. If pairs have vectors, one component is shown, the *slice*.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoded, Encoding
from structpe.pictures.style import FAINT, GREY, MUTED, PictureError, add_bar, label, thinned, wide
from structpe.structure import Structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "MAPS",
    "MOST",
    "NAMED",
    "SHADES",
    "Heat",
    "Scale",
    "check_size",
    "draw",
    "heat_of",
    "in_order",
    "size_of",
    "unit_labels",
    "unit_names",
]


MARK, GOES_ON = "▁", "##"
"""Marks of tokenizers for a space, and for a piece that continues a word (BERT)."""
PRINTED = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
"""Bytes that a byte-level tokenizer writes as the character of that number; the others begin at 256."""
BYTES = {chr(byte): byte for byte in PRINTED} | {
    chr(256 + place): byte for place, byte in enumerate(sorted(set(range(256)) - set(PRINTED)))
}
"""The byte of each character of a byte-level tokenizer (Radford et al. 2019, GPT-2)."""


def in_order(structure: Structure) -> NDArray[np.int64]:
    """(u,) the units in reading order, that of their nodes if there is one."""
    owner = structure.unit_owner
    return owner.argsort(kind="stable") if structure.order is None else structure.order[owner].argsort(kind="stable")


def unit_labels(structure: Structure) -> list[str]:
    """(u,) the text of each unit, without the marks of tokenizers for spaces and bytes."""
    texts = list(structure.unit_texts)
    if structure.units is None:
        return [label(text) for text in texts]
    if _of_bytes(structure):
        texts = [_decoded(text) for text in texts]
    whole = [structure.nodes[node] for node in structure.unit_owner.tolist()]
    texts = [text if GOES_ON in node else text.removeprefix(GOES_ON) for text, node in zip(texts, whole, strict=True)]
    return [label(text.replace(MARK, " ")) or "␣" for text in texts]


def _of_bytes(structure: Structure) -> bool:
    """Whether units are byte-level: those of some node spell its label only if characters are read as bytes."""
    whole = [""] * structure.size
    for text, node in zip(structure.unit_texts, structure.unit_owner.tolist(), strict=True):
        whole[node] += text
    for written, node in zip(whole, structure.nodes, strict=True):
        meant = _decoded(written).strip().casefold()
        if written and meant and meant != written.casefold() and meant in node.casefold():
            return True
    return False


def _decoded(text: str) -> str:
    if not all(character in BYTES for character in text):
        return text
    return bytes(BYTES[character] for character in text).decode("utf-8", errors="replace")


Scale: TypeAlias = Literal["sequential", "diverging"]
NAMED = 80
"""Largest number of nodes of a graph for labels; more nodes have numbers."""
ACROSS = {"random-walk": "steps", "heat-kernel": "time", "laplacian": "eigenvector", "coordinates": "axis"}
"""The meaning of the columns of encodings of units; by default "number"."""
MOST = 1000
"""Largest number of units; more would be invisible, and slow to draw."""


@dataclass(frozen=True, eq=False)
class Heat:
    """A matrix, and the meaning of its rows, columns and colours.

    Attributes:
        title: title of the map.
        values: (r, c); NaN for cells without a number. Units are in reading order.
        rows: names of the rows.
        columns: names of the columns.
        axes: names of the two axes.
        special: masks (r, c) of cells without a number, by their meaning, such as "no path".
        whole: whether the numbers are integers, which can be written into the cells.
    """

    title: str
    values: NDArray[np.float64]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    axes: tuple[str, str] = ("query", "key")
    special: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    whole: bool = False

    @property
    def scale(self) -> Scale:
        """Diverging around 0 if there are negative numbers, otherwise sequential."""
        return "diverging" if (self.values < 0).any() else "sequential"

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest number of the colours; symmetric for a diverging scale."""
        finite = self.values[np.isfinite(self.values)]
        if not finite.size:
            return 0.0, 1.0
        low, high = float(finite.min()), float(finite.max())
        if self.scale == "diverging":
            most = max(abs(low), abs(high))
            return -most, most
        return (low, high) if high > low else (min(low, 0.0), max(high, low + 1.0) if low == 0 else high)


def heat_of(structure: Structure, encoding: Encoding, slice: int = 0) -> Heat:
    """The map of the values of an encoding.

    Args:
        structure: a structure with up to 1,000 units.
        encoding: fitted, if it needs a vocabulary.
        slice: component of the vector of each pair; 0 if a pair has one number.

    Raises:
        EncodingError: the structure lacks something that the encoding needs.
        PictureError: there are more units, or the slice does not exist.
    """
    check_size(structure)
    encoded = encoding.one(structure)
    names, read = unit_names(structure), in_order(structure)
    if encoding.arity == 1:
        values = encoded.values.reshape(len(encoded.values), -1)[read]
        columns = tuple(str(k) for k in range(1, values.shape[1] + 1))  # from 1, as in formulas
        return _heat(title_of(encoding), values, names, columns, ("unit", ACROSS.get(encoding.name, "number")))
    values = _pairs(encoded)[np.ix_(read, read)]
    flat = values.reshape(*values.shape[:2], -1)
    if not 0 <= slice < max(1, flat.shape[2]):
        raise PictureError(
            f"the slice is {slice}, but each pair has {flat.shape[2]} numbers by encoding {encoding.name!r}; give "
            f"one of 0..{flat.shape[2] - 1}"
        )
    title = title_of(encoding) + (f", number {slice} of 0..{flat.shape[2] - 1}" if flat.shape[2] > 1 else "")
    chosen = flat[:, :, slice] if flat.shape[2] else np.full(flat.shape[:2], np.nan)
    return _heat(title, chosen, names, names, ("query", "key"), _unsaid(encoded, read))


def check_size(structure: Structure) -> None:
    """Check the size of a structure.

    Raises:
        PictureError: it has more than 1,000 nodes or units.
    """
    for count, what in ((structure.size, "nodes"), (structure.unit_count, "units")):
        if count > MOST:
            raise PictureError(
                f"the structure has {count} {what}, a picture shows {MOST} at most; take a part of it"
            ).at(*([structure.name] if structure.name else []))


def title_of(encoding: Encoding) -> str:
    """The name of an encoding, and its short options that differ from their defaults."""
    given = [
        f"{field.name.replace('_', ' ')} {value}"
        for field in fields(encoding)
        if isinstance(value := getattr(encoding, field.name), (bool, int, float, str)) and value != field.default
    ]
    return ", ".join([encoding.name, *given])


def unit_names(structure: Structure) -> tuple[str, ...]:
    """A name for each unit in reading order, with the number of its node if texts repeat or there are many nodes."""
    labels, owner = unit_labels(structure), structure.unit_owner
    repeated = len(set(labels)) < len(labels) or structure.size > NAMED
    return tuple(f"{owner[unit]} {labels[unit]}" if repeated else labels[unit] for unit in in_order(structure))


def _pairs(encoded: Encoded) -> NDArray[np.float64]:
    """(u, u, ...) numbers of all pairs; NaN for pairs that a sparse encoding does not list."""
    if encoded.listed is None:
        return encoded.pairs().astype(np.float64)
    values = np.full((encoded.count, encoded.count, *encoded.values.shape[1:]), np.nan)
    values[encoded.listed[:, 0], encoded.listed[:, 1]] = encoded.values[encoded.index]
    return values


def _unsaid(encoded: Encoded, read: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    if encoded.listed is None:
        return None
    silent = np.ones((encoded.count, encoded.count), dtype=np.bool_)
    silent[encoded.listed[:, 0], encoded.listed[:, 1]] = False
    return silent[np.ix_(read, read)]


def _heat(
    title: str,
    given: NDArray[np.generic],
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    axes: tuple[str, str],
    unsaid: NDArray[np.bool_] | None = None,
) -> Heat:
    values = given.astype(np.float64)
    special = {
        "no path": values == UNREACHABLE,
        "same node": np.abs(values - WITHIN) < UNREACHABLE,
        "not listed": np.zeros(values.shape, dtype=np.bool_) if unsaid is None else unsaid,
    }
    special["no place"] = (np.abs(values) >= UNREACHABLE) & ~special["no path"] & ~special["same node"]
    special = {name: mask for name, mask in special.items() if mask.any()}
    for mask in special.values():
        values[mask] = np.nan
    values[~np.isfinite(values)] = np.nan
    finite = values[np.isfinite(values)]
    return Heat(title, values, rows, columns, axes, special, whole=bool((finite == np.round(finite)).all()))


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

"""What the app shows: from the choices of a user to pictures, numbers and texts."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

from structpe.encodings.base import Encoding, as_encoding
from structpe.errors import ConfigError, PositionError, ReadError, StructPEError
from structpe.formats import Item
from structpe.pictures.compare import Change, changes
from structpe.pictures.drawing import Drawing
from structpe.pictures.given import FORMS, item_of_file, item_of_text
from structpe.pictures.head_patterns import CONTENTS, begin
from structpe.pictures.heat import Heat, heat_of
from structpe.pictures.show import structure_figure
from structpe.pictures.style import look
from structpe.pictures.svg import bar_svg, curve_svg, limits_of, map_svg
from structpe.pictures.trained import RunSeen, item_of_run, options_of_run, run_on
from structpe.pictures.view import View, view
from structpe.plain.yaml import from_yaml
from structpe.positions import Dims
from structpe.positions.build import build
from structpe.structure import Structure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FROM_FILE", "FROM_RUN", "QUANTITIES", "Choices", "Part", "Scene", "Side", "scene"]

FROM_FILE, FROM_RUN = "file", "run"
"""The two forms of structures that are not pasted."""
QUANTITIES = ("both", "bias", "scores", "attention")
"""What is shown of heads; ``both`` is the bias, or scores without one, and attention."""
HEADS, LAYERS, HEAD_WIDTH = 8, 4, 24
"""Largest numbers of heads and layers, and the width of a head."""
HEAD_SIDE = 118
"""Length of the sides of a map of a head, in pixels."""
LEAST = 0.01
"""The change of a weight of attention that has at least the last colour."""


@dataclass(frozen=True)
class Choices:
    """What a user has chosen, all of it as text, as in an address.

    Attributes:
        form: a key of ``FORMS``, ``file`` or ``run``.
        text, parse: the pasted text, and the heads of its words.
        file, reader, options, on_error, index: an item of a file; ``options`` are a JSON object.
        run: folder of a trained run; empty for none.
        first, second, third: encodings, each a name or YAML; empty for none.
        a, b: position models, each a name or YAML; empty for none.
        quantity: one of ``QUANTITIES``.
        heads, layers: sizes of the models.
    """

    form: str = "sentence"
    text: str = FORMS["sentence"].sample
    parse: str = FORMS["sentence"].heads
    file: str = ""
    reader: str = ""
    options: str = ""
    on_error: str = ""
    index: str = "0"
    run: str = ""
    first: str = "depth"
    second: str = "undirected-distance"
    third: str = ""
    a: str = "sinusoidal"
    b: str = "{name: alibi, encoding: undirected-distance}"
    quantity: str = "both"
    heads: str = "4"
    layers: str = "1"

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Choices:
        """Those of an address or of a form; what is not given is as in the first view.

        Raises:
            ConfigError: a field is unknown.
        """
        known = {each.name for each in fields(cls)}
        if unknown := [name for name in given if name not in known]:
            raise ConfigError(f"the address has a field {unknown[0][:40]!r}; the fields are {', '.join(sorted(known))}")
        return cls(**{name: value.replace("\r\n", "\n") for name, value in given.items()})

    @property
    def query(self) -> str:
        """The address of the view after the question mark, without what is as in the first view or has no effect."""
        idle = {"text", "parse"} if self.form in (FROM_FILE, FROM_RUN) else {"index"}
        idle |= set() if self.form == "sentence" else {"parse"}
        idle |= set() if self.form == FROM_FILE else {"file", "reader", "options", "on_error"}
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in idle}
        return urlencode({n: value for n, value in given.items() if n == "form" or value != getattr(FIRST, n)})

    def number(self, name: str, low: int, high: int) -> int:
        """A field as a number.

        Raises:
            ConfigError: it is not a number within the bounds.
        """
        given = getattr(self, name).strip()
        if not (given.isascii() and given.isdigit() and len(given) < 10 and low <= int(given) <= high):
            raise ConfigError(f"{name} is {given[:40]!r}; give a number from {low} to {high}")
        return int(given)


FIRST = Choices()


@dataclass(frozen=True)
class Part:
    """Pictures with a title, or the reason why there are none.

    Attributes:
        title: of the pictures.
        pictures: SVG elements.
        bar: the scale of colours of all of them, an SVG element.
        why: why something is not shown.
        number: their one number, if they have one.
    """

    title: str
    pictures: tuple[str, ...] = ()
    bar: str = ""
    why: str = ""
    number: str = ""


@dataclass(frozen=True)
class HeadTable:
    """Means of heads by distance: the names of the columns, and the rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Side:
    """One of the position models that are compared.

    Attributes:
        letter: A or B.
        name: the model as it was chosen.
        parts: its heads.
        changed: what a shift and a renumbering change.
        table: means by distance; None without attention weights.
        why: why nothing can be shown; empty otherwise.
    """

    letter: str
    name: str
    parts: tuple[Part, ...] = ()
    changed: tuple[Part, ...] = ()
    table: HeadTable | None = None
    why: str = ""


@dataclass(frozen=True)
class Scene:
    """A whole view.

    Attributes:
        title: name and size of the structure.
        structure: its picture, as a data URI.
        says: the picture in words.
        maps: a map of each encoding.
        sides: the position models.
        run: a trained run on the structure.
        of_run: the heads of its encoder.
    """

    title: str
    structure: str
    says: str
    maps: tuple[Part, ...]
    sides: tuple[Side, ...]
    run: RunSeen | None = None
    of_run: tuple[Part, ...] = ()


def scene(choices: Choices) -> Scene:
    """Compute a view.

    A model or an encoding that does not fit this structure has a message in its place.

    Raises:
        StructPEError: a choice is wrong: a text cannot be read, a name is unknown, a number is out of range.
    """
    dims = _dims(choices)
    if choices.quantity not in QUANTITIES:
        raise ConfigError(f"the quantity is {choices.quantity[:40]!r}; give one of {', '.join(QUANTITIES)}")
    encodings = [_encoding(text) for text in (choices.first, choices.second, choices.third) if text.strip()]
    models = [
        (letter, text, _model(text, dims)) for letter, text in (("A", choices.a), ("B", choices.b)) if text.strip()
    ]
    item = _item(choices)
    structure = item.structure
    run = run_on(choices.run, item) if choices.run.strip() else None
    with look():
        drawn = Drawing(structure)
        shown = View(structure, ())
        return Scene(
            shown.title,
            _uri(structure_figure(drawn)),
            _said(structure),
            tuple(_map(structure, each) for each in encodings),
            _compared([_seen(*named, structure, choices.quantity, dims) for named in models]),
            run,
            tuple(part for seen in (run.views if run is not None else ()) for part in _heads(seen, _most([seen]))),
        )


def _dims(choices: Choices) -> Dims:
    heads, layers = choices.number("heads", 1, HEADS), choices.number("layers", 1, LAYERS)
    return Dims(HEAD_WIDTH * heads, heads, layers)


def _item(choices: Choices) -> Item:
    """The item that is shown.

    Raises:
        StructPEError: as in :mod:`structpe.pictures.given`.
    """
    if choices.form == FROM_RUN:
        if not choices.run.strip():
            raise ReadError("no trained run is named; give its folder, or choose another form of structures")
        return item_of_run(choices.run, choices.number("index", 0, 100_000))
    if choices.form == FROM_FILE:
        options = from_yaml(choices.options or "{}", "the options")
        return item_of_file(
            choices.file.strip(), choices.number("index", 0, 100_000), choices.reader, choices.on_error, **options
        )
    reader = FORMS[choices.form].reader if choices.form in FORMS else ""
    options = options_of_run(choices.run, reader) if choices.run.strip() and reader else {}
    return item_of_text(choices.form, choices.text, choices.parse, options)


def _encoding(text: str) -> Encoding:
    return as_encoding(from_yaml(text, "the encoding"), error=PositionError)


def _model(text: str, dims: Dims) -> Any:
    """The plain description of a position model, which is built once to find mistakes."""
    config = from_yaml(text, "the position model")
    build(config, dims)
    return config


def _map(structure: Structure, encoding: Encoding) -> Part:
    try:
        heat = heat_of(structure, encoding.fit([structure]) if type(encoding).fit is not Encoding.fit else encoding)
    except StructPEError as error:
        return Part(encoding.name, why=error.message)
    return _part(heat.title, heat, heat.title, limits_of([heat]))


@dataclass(frozen=True, eq=False)
class _Seen:
    """A position model on the structure, or the reason why it does not fit."""

    letter: str
    name: str
    views: tuple[View, ...] = ()
    changes: tuple[Change, ...] = ()
    why: str = ""


def _seen(letter: str, name: str, config: Any, structure: Structure, quantity: str, dims: Dims) -> _Seen:
    try:
        model = begin(config, dims, lambda: [structure])
        views = tuple(view(structure, [model], each) for each in _quantities(quantity))
        if not views[0].blocks:
            return _Seen(letter, name, why="; ".join(views[0].notes))
        return _Seen(letter, name, views, tuple(changes(structure, model)))
    except StructPEError as error:
        return _Seen(letter, name, why=error.message)


def _compared(found: list[_Seen]) -> tuple[Side, ...]:
    """The models side by side; their attention, and what moves of it, on one scale of colours."""
    most = _most([seen for each in found for seen in each.views])
    heats = [each.heat for one in found for each in one.changes if each.heat is not None]
    moved = max((float(np.abs(heat.values).max()) for heat in heats), default=0.0)
    return tuple(
        Side(
            one.letter,
            one.name,
            tuple(part for seen in one.views for part in _heads(seen, most)),
            tuple(_changed(change, max(moved, LEAST)) for change in one.changes),
            _table(one.views[0]) if one.views else None,
            one.why,
        )
        for one in found
    )


def _most(views: Sequence[View]) -> float:
    """The largest weight of attention."""
    blocks = (block for seen in views if seen.word == "attention" for block in seen.blocks)
    return max((heat.limits[1] for block in blocks for heat in block.heads), default=1.0)


def _quantities(name: str) -> tuple[Any, ...]:
    return (None, "attention") if name == "both" else (name,)


def _heads(seen: View, most: float) -> Iterator[Part]:
    """The heads of a view, and their means by distance; ``most`` is the largest weight of attention."""
    title = (seen.said.partition(": ")[2] or seen.said).removesuffix(f"; {CONTENTS['same']}")  # the page says so
    heats = [heat for block in seen.blocks for heat in block.heads]
    limits = (0.0, most) if seen.word == "attention" else limits_of(heats)
    for block in seen.blocks:
        maps = tuple(
            map_svg(heat, limits, f"{title}, {block.title}, {heat.title}", named=False, side=HEAD_SIDE)
            for heat in block.heads
        )
        yield Part(f"{title}, {block.title}", maps, bar_svg(heats, limits), "; ".join(seen.notes))
        apart = f"mean {seen.word.partition(',')[0].removesuffix(' added to scores')} by distance, {block.title}"
        axis = "offset, key − query" if block.curve.signed else "distance in edges"
        yield Part(apart, (curve_svg(block.curve, axis, f"{apart}; the table has the numbers"),))


def _changed(change: Change, most: float) -> Part:
    if change.heat is None:
        return Part(change.title, why=change.why)
    number = f"{100 * change.moved:.1f} %"
    says = f"{change.title}: {number} of attention moves; where it rises and falls, mean of all heads"
    return _part(change.title, change.heat, says, (-most, most), number)


def _table(seen: View) -> HeadTable:
    """The means by distance of the first layers, as numbers."""
    curve = seen.blocks[0].curve
    names = tuple(f"head {number}" for number in range(1, len(curve.mean) + 1))
    rows = tuple(
        (f"{distance:g}", *(f"{value:.4f}" for value in curve.mean[:, place]))
        for place, distance in enumerate(curve.distance)
    )
    return HeadTable(("offset" if curve.signed else "distance", *names), rows)


def _said(structure: Structure) -> str:
    """A structure in words: its first edges, or its nodes."""
    most = 12
    facts = [
        f"{structure.nodes[a]} {structure.relation(edge) or 'to'} {structure.nodes[b]}"
        for edge, (a, b) in enumerate(structure.edges.tolist())
    ]
    told = "; ".join(facts[:most]) or " ".join(structure.nodes[:most])
    return f"{View(structure, ()).title}. {told}" + (f"; and {len(facts) - most} more" if len(facts) > most else "")


def _part(title: str, heat: Heat, says: str, limits: tuple[float, float], number: str = "") -> Part:
    return Part(title, (map_svg(heat, limits, says),), bar_svg([heat], limits), number=number)


def _uri(picture: Figure) -> str:
    """A figure as a data URI, the same for the same figure."""
    held = BytesIO()
    picture.savefig(held, format="svg", metadata={"Date": None}, facecolor="none")
    return "data:image/svg+xml;base64," + base64.b64encode(held.getvalue()).decode("ascii")

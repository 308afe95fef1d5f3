"""``structpe positions``: the position models as Table 1 of the survey, with filters; and the encodings."""

from __future__ import annotations

import difflib
import inspect
import json
import re
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from structpe.cli.base import Command, UsageError, print_table, refuse_idle
from structpe.errors import StructPEError

if TYPE_CHECKING:
    from structpe.positions import Cells, Dims, Spec

__all__ = ["STRUCTURES", "ModelRow", "about", "chosen", "formula", "found"]


ROLE = re.compile(r":\w+:`~?([^`]*)`")
"""A cross-reference of the docs, :class:`Name`; only the name is printed."""


class Shown(Protocol):
    """The attributes of a row that filters and sorting use."""

    @property
    def name(self) -> str:
        """Name of the model."""

    @property
    def decodes(self) -> bool | None:
        """Whether a decoder can use it."""

    @property
    def place(self) -> int:
        """Index of its structure among all kinds."""


T = TypeVar("T", bound=Shown)

STRUCTURES = ("sequence", "grid", "tree", "graph")
CHOICES = {
    "structure": (STRUCTURES, "made for these structures"),
    "injection": (("APE", "MAM", "both", "none"), "information that enters here"),
    "reference": (("A", "R", "B"), "positions that are absolute, relative or both"),
}
CLAIMS = ("learnable", "recurring", "unbound")
FLAGS = {
    "learnable": "numbers that are learned",
    "recurring": "information that enters at each layer",
    "unbound": "any length of input",
    "decodes": "use in a decoder, which generates unit by unit",
}


def _add_filters(parser: ArgumentParser) -> None:
    """Declare a search word and a filter for each cell of Table 1."""
    parser.add_argument("words", metavar="WORD", nargs="*", help="only rows that have each word in name, title or key")
    group = parser.add_argument_group("filters", "a row must pass all that are given; --no-... negates one")
    for name, (choices, about) in CHOICES.items():
        group.add_argument(
            f"--{name}", choices=choices, action="append", default=[], help=f"{about}; given twice, either"
        )
    for name, about in FLAGS.items():
        group.add_argument(f"--{name}", action=BooleanOptionalAction, help=about)


def chosen(given: Namespace, measured: Callable[[str], T]) -> list[T]:
    """The rows that pass the filters. A model is built only if its claims pass.

    Args:
        given: the arguments.
        measured: builds a model by its name, and returns its row.

    Raises:
        StructPEError: no row passes; with ``--json`` the list is empty instead.
    """
    from structpe.positions import MODELS

    claimed = [name for name in MODELS if _passes(_spec(name), given) and _has_words(name, given.words)]
    rows = [measured(name) for name in claimed]
    kept = [row for row in rows if given.decodes in (None, row.decodes)]
    if not kept and not given.json:
        raise StructPEError(_nothing(given, list(MODELS)))
    return sorted(kept, key=lambda row: (row.place, row.name))


def _refuse_filters(given: Namespace) -> None:
    """Check that no filter of position models is given.

    Raises:
        UsageError: a filter is given.
    """
    names = (*CHOICES, *FLAGS)
    if filters := sorted(word for word in given.named if word.removeprefix("--").removeprefix("no-") in names):
        raise UsageError(f"{filters[0]} is a filter of position models; leave it out with --encodings, or give a word")


def found(words: Sequence[str], *texts: str) -> bool:
    """Whether each word is in one of the texts, ignoring case."""
    return all(any(word.lower() in text.lower() for text in texts) for word in words)


def about(cls: type) -> str:
    """The title of a position model or an encoding, the first paragraph of its docstring, on one line."""
    return _paragraph(cls, 0).rstrip(".")


def formula(cls: type) -> str:
    """The formula of a position model or an encoding, the second paragraph of its docstring, on one line."""
    return _paragraph(cls, 1)


def _paragraph(cls: type, number: int) -> str:
    paragraphs = (inspect.getdoc(cls) or "").split("\n\n")
    return ROLE.sub(r"\1", paragraphs[number].replace("\n", " ")) if number < len(paragraphs) else ""


def _passes(spec: Spec | None, given: Namespace) -> bool:
    """Whether the claims of a model pass the filters; without claims it passes only without filters."""
    had: dict[str, Any] = dict.fromkeys((*CHOICES, *CLAIMS))
    if spec is not None:
        had = {name: getattr(spec.cells, name) for name in ("reference", "injection", *CLAIMS)}
        had |= {"structure": spec.structure, "injection": had["injection"].replace("-", "none")}
    several = all(not getattr(given, name) or had[name] in getattr(given, name) for name in CHOICES)
    return several and all(getattr(given, name) in (None, had[name]) for name in CLAIMS)


def _spec(name: str) -> Spec | None:
    from structpe.positions import MODELS
    from structpe.positions.base import spec_of

    return spec_of(MODELS[name])


def _has_words(name: str, words: Sequence[str]) -> bool:
    from structpe.positions import MODELS

    spec = _spec(name)
    claims = [] if spec is None else [spec.cite, spec.structure]
    return found(words, name, about(MODELS[name]), *claims)


def _nothing(given: Namespace, names: Sequence[str]) -> str:
    flags = [f"--{'' if getattr(given, n) else 'no-'}{n}" for n in FLAGS if getattr(given, n) is not None]
    choices = [f"--{name} {each}" for name in CHOICES for each in getattr(given, name)]
    wanted = " ".join([*map(repr, given.words), *choices, *flags])
    near = difflib.get_close_matches(given.words[0], names, n=1) if given.words else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"no position model has {wanted}.{hint} Leave out a word or a filter; 'structpe positions' lists all"


_SURVEY = {"t": 512, "n": 30_000, "D_max": 8, "K": 5, "dr": 64, "t1": 16}
"""Sizes for the survey's formulas."""


class PositionsCommand(Command, name="positions"):
    """List position models as in Table 1 of the survey, or encodings.

    Cells are claims about the models of structpe, and tests measure each of them. If the survey's Table 1 has another
    cell, it is in brackets. Ref: reference point, A absolute, R relative, B both. Inj: added to the input (APE), to
    attention (MAM), both, or neither (-). L: learnable. Rec: recurring at each layer. U: unbound. #Param: our formula
    in d width, h heads, l layers, dh = d/h and the model's own sizes, then the number of parameters at the given sizes,
    then the survey's formula in its letters and its value, with t = 512 units, n = 30,000 words, D_max = 8, K = 5, d_r
    = 64, d1 = d/2 and t1 = 16.
    """

    example = (
        "structpe positions --width 64 --heads 4 --layers 2\n"
        "structpe positions --structure tree --structure graph --injection APE --unbound\n"
        "structpe positions rotary --decodes --json\n"
        "structpe positions --encodings walk"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--width", metavar="D", type=int, default=512, help="hidden size, d (default 512)")
        parser.add_argument("--heads", metavar="H", type=int, default=8, help="heads, h (default 8)")
        parser.add_argument("--layers", metavar="L", type=int, default=6, help="layers, l (default 6)")
        parser.add_argument("--notes", action="store_true", help="say why cells differ from the survey's")
        parser.add_argument("--encodings", action="store_true", help="list encodings instead")
        parser.add_argument("--json", action="store_true", help="print everything as JSON")
        _add_filters(parser)

    def run(self, given: Namespace) -> None:
        if given.encodings:
            _refuse_filters(given)
            refuse_idle(given, "on encodings", "--width", "--heads", "--layers", "--notes")
            _show_encodings(given.words, given.json)
            return
        if given.json:
            refuse_idle(given, "with --json, which has the notes", "--notes")
        from structpe.positions import MODELS, Dims

        dims = Dims(given.width, given.heads, given.layers)
        kept = chosen(given, lambda name: ModelRow.measured(name, dims))
        if given.json:
            print(json.dumps([row.plain() for row in kept], indent=2, ensure_ascii=False))
            return
        _show_models(kept, dims, given.notes)
        if len(kept) < len(MODELS):
            print(f"{len(kept)} of {len(MODELS)} position models.")


@dataclass(frozen=True)
class ModelRow:
    """A position model: its row of Table 1, and its number of parameters.

    Attributes:
        name: its name in the registry.
        spec: its claims; None for a model without a ``Spec``.
        dims: the sizes for which it was built.
        sizes: the values of its own letters in the formula.
        parameters: number of parameters; None if it cannot be built for these sizes.
        problem: why it cannot be built.
        decodes: whether a decoder can use it; None if it cannot be built.
        about: its title, the first paragraph of its docstring.
        formula: the second paragraph of its docstring.
        options: its options with their defaults, as :func:`structpe.build` takes them; null without a default.
    """

    name: str
    spec: Spec | None
    dims: Dims
    sizes: dict[str, int]
    parameters: int | None
    problem: str = ""
    decodes: bool | None = None
    about: str = ""
    formula: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def measured(cls, name: str, dims: Dims) -> ModelRow:
        """The row of a model with its default options, built for these sizes."""
        from structpe.errors import PositionError
        from structpe.plain.options import options_of
        from structpe.positions import MODELS, build, describe
        from structpe.positions.base import spec_of

        model = MODELS[name]
        spec, said = spec_of(model), (about(model), formula(model))
        try:
            built = build(name, dims)
        except PositionError as error:
            options = dict.fromkeys(options_of(model.__init__, 2))
            return cls(name, spec, dims, {}, None, str(error), None, *said, options)
        count = sum(p.numel() for p in built.parameters())
        letters = re.findall(r"[A-Za-z]\w*", spec.cells.params) if spec is not None else built.sizes
        sizes = {letter: size for letter, size in built.sizes.items() if letter in letters}
        options = {option: value for option, value in describe(built).items() if option != "name"}
        return cls(name, spec, dims, sizes, count, "", built.causal, *said, options)

    @property
    def place(self) -> int:
        """Index of its structure among all kinds; models without a row of Table 1 come last."""
        return len(STRUCTURES) if self.spec is None else STRUCTURES.index(self.spec.structure)

    def plain(self) -> dict[str, Any]:
        """Plain data for JSON."""
        own = {
            "name": self.name,
            "parameters": self.parameters,
            "survey_parameters": self.survey,
            "sizes": self.sizes,
            "decodes": self.decodes,
            "about": self.about,
            "formula": self.formula,
            "options": self.options,
            "problem": self.problem,
        }
        return own | ({} if self.spec is None else asdict(self.spec))

    @property
    def survey(self) -> float | None:
        """The value of the survey's formula at these sizes; None without a row in the survey."""
        if self.spec is None or self.spec.table1 is None:
            return None
        own = {"d": self.dims.width, "h": self.dims.heads, "l": self.dims.layers, "d1": self.dims.width // 2}
        return float(eval(self.spec.table1.params, {"__builtins__": {}}, _SURVEY | own))  # our own transcription

    def cells(self) -> list[str]:
        """The cells of its row."""
        count = "-" if self.parameters is None else f"{self.parameters:,}"
        if self.spec is None:
            return ["-", self.name, *"-----", "-", count, ""]
        ours, survey = _marks(self.spec.cells), _marks(self.spec.table1) if self.spec.table1 else None
        marks = [
            mine if survey in (None, ours) or mine == theirs else f"{mine} ({theirs})"
            for mine, theirs in zip(ours, survey or ours, strict=True)
        ]
        formula = ", ".join([self.spec.cells.params, *(f"{letter}={size}" for letter, size in self.sizes.items())])
        printed = f"{self.spec.table1.params} = {self.survey:,.0f}" if self.spec.table1 else ""
        return [self.spec.structure, self.name, *marks, formula, count, printed]


def _marks(cells: Cells) -> list[str]:
    flags = (cells.learnable, cells.recurring, cells.unbound)
    return [cells.reference, cells.injection, *("y" if flag else "n" for flag in flags)]


def _show_models(rows: list[ModelRow], dims: Dims, notes: bool) -> None:
    count = f"d={dims.width} h={dims.heads} l={dims.layers}"
    header = ["structure", "model", "Ref", "Inj", "L", "Rec", "U", "#Param", count, "survey's #Param"]
    print_table(header, [row.cells() for row in rows], numeric=[count], long=["#Param", "survey's #Param"])
    print("\nIn brackets: the cell of the survey's Table 1, if it differs.")
    for row in rows:
        if row.problem:
            print(f"{row.name}: {row.problem}")
        elif row.spec is None:
            print(f"{row.name}: its class has no Spec, so it has no row of Table 1")
        elif notes and row.spec.note:
            print(f"{row.name}: {row.spec.note}")


def _show_encodings(words: Sequence[str], as_json: bool) -> None:
    from structpe.encodings import ENCODINGS

    known = [
        (name, "pair" if each.arity == 2 else "unit", [*inspect.signature(each).parameters], about(each), formula(each))
        for name, each in ENCODINGS.items()
    ]
    rows = [row for row in known if found(words, row[0], *row[3:])]
    if not rows and not as_json:
        raise StructPEError(f"no encoding has {' and '.join(map(repr, words))} in its name or text; leave out a word")
    header = ["encoding", "per", "options", "about", "formula"]
    if as_json:
        print(json.dumps([dict(zip(header, row, strict=True)) for row in rows], indent=2, ensure_ascii=False))
    else:
        short = [[name, per, ", ".join(options), title] for name, per, options, title, _ in rows]
        print_table(header[:4], short, long=header[2:4])

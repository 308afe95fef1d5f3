"""The rows of the lists of position models and of encodings, which a file remembers: to make them takes seconds.

The commands ``structpe positions`` and ``structpe encodings`` show them.
"""

from __future__ import annotations

import fnmatch
import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

import structpe
from structpe.errors import PositionError
from structpe.spec import Cells, Spec

if TYPE_CHECKING:
    from structpe.encodings import Encoding
    from structpe.positions import Dims, PositionModel
    from structpe.structure import Structure

__all__ = ["STRUCTURES", "EncodingRow", "ModelRow", "about", "encodings", "formula", "found", "models"]

T = TypeVar("T")

STRUCTURES = ("sequence", "grid", "tree", "graph")

_SURVEY = {"t": 512, "n": 30_000, "D_max": 8, "K": 5, "dr": 64, "t1": 16}
"""Sizes for the survey's formulas."""

ROLE = re.compile(r":\w+:`~?([^`]*)`")
"""A cross-reference of the docs, :class:`Name`; only the name is printed."""


def found(words: Sequence[str], name: str, *texts: str) -> bool:
    """Whether each word is in a name or a text, and each pattern, with ``*``, ``?`` or ``[``, fits the name."""
    said = [text.lower() for text in (name, *texts)]
    return all(
        fnmatch.fnmatchcase(said[0], word) if set(word) & set("*?[") else any(word in text for text in said)
        for word in map(str.lower, words)
    )


def models(width: int, heads: int, layers: int) -> list[ModelRow]:
    """The rows of all position models, built for these sizes."""

    def measured() -> list[ModelRow]:
        from structpe.positions import MODELS, Dims

        dims = Dims(width, heads, layers)
        return [ModelRow.measured(name, dims) for name in MODELS]

    return _remembered(f"positions-{width}-{heads}-{layers}", "structpe.positions", list[ModelRow], measured)


def encodings() -> list[EncodingRow]:
    """The rows of all encodings."""

    def described() -> list[EncodingRow]:
        from structpe.encodings import ENCODINGS

        return [EncodingRow.of(name, each) for name, each in ENCODINGS.items()]

    return _remembered("encodings", "structpe.encodings", list[EncodingRow], described)


def _remembered(name: str, package: str, kind: type[T], find: Callable[[], T]) -> T:
    """What an earlier process found, if the code is the same; otherwise it is found, and kept for the next one.

    It is found anew if it may be more than what follows from our code: if other distributions add classes to the
    package, or if this process has imported it and may have added some.

    Args:
        name: of the file.
        package: whose classes it is about.
        kind: its type, of which msgspec can write and read values.
        find: finds it.
    """
    import msgspec

    from structpe.system.files import Busy, atomic_write

    if package in sys.modules or metadata.entry_points(group=package):
        return find()
    file, stamp = _file(name), _stamp()
    with suppress(OSError, msgspec.DecodeError):  # there is none, or another version wrote it
        written, kept = msgspec.json.decode(file.read_bytes(), type=tuple[str, kind])  # type: ignore[valid-type]
        if written == stamp:
            return cast(T, kept)
    found = find()
    with suppress(OSError, Busy):  # the folder cannot be written to, or another process writes the same
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(file, lambda hidden: hidden.write_bytes(msgspec.json.encode((stamp, found))))
    return found


def _file(name: str) -> Path:
    """Where the rows of this name are kept; each installation of the library has its own."""
    from structpe.system.files import user_cache

    where = hashlib.sha256(str(Path(structpe.__file__).parent).encode()).hexdigest()[:8]
    return user_cache() / "structpe" / f"{name}-{where}.json"


def _stamp() -> str:
    """A digest of the versions of Python and of the library, and of name, size and time of each of its sources."""
    states = ((str(each), each.stat()) for each in sorted(Path(structpe.__file__).parent.rglob("*.py")))
    sources = [(path, state.st_size, state.st_mtime_ns) for path, state in states]
    return hashlib.sha256(repr((sys.version, structpe.__version__, sources)).encode()).hexdigest()


@dataclass(frozen=True)
class ModelRow:
    """A position model: its row of Table 1, and its number of parameters at some sizes.

    Attributes:
        name: its name in the registry.
        spec: its claims; None for a model without a ``Spec``.
        sizes: the values of its own letters in the formula.
        parameters: number of parameters; None if it cannot be built for these sizes.
        problem: why it cannot be built.
        decodes: whether a decoder can use it; None if it cannot be built.
        about: its title, the first paragraph of its docstring.
        formula: the second paragraph of its docstring.
        options: its options with their defaults, as :func:`structpe.build` takes them; null without a default.
        survey: the value of the survey's formula at these sizes; None without a row in the survey.
        year: of its source.
    """

    name: str
    spec: Spec | None
    sizes: dict[str, int]
    parameters: int | None
    problem: str = ""
    decodes: bool | None = None
    about: str = ""
    formula: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    survey: float | None = None
    year: int | None = None

    @classmethod
    def measured(cls, name: str, dims: Dims) -> ModelRow:
        """The row of a model with its default options, built for these sizes."""
        from structpe.plain.options import options_of
        from structpe.positions import MODELS, describe
        from structpe.positions.base import spec_of

        model = MODELS[name]
        spec, said = spec_of(model), (about(model), formula(model))
        survey = None if spec is None or spec.table1 is None else _survey(spec.table1.params, dims)
        year = None if spec is None else _year(spec.cite)
        try:
            built = _built(name, dims)
        except PositionError as error:
            options = dict.fromkeys(options_of(model.__init__, 2))
            return cls(name, spec, {}, None, str(error), None, *said, options, survey, year)
        count = sum(p.numel() for p in built.parameters())
        letters = re.findall(r"[A-Za-z]\w*", spec.cells.params) if spec is not None else built.sizes
        sizes = {letter: size for letter, size in built.sizes.items() if letter in letters}
        options = {option: value for option, value in describe(built).items() if option != "name"}
        return cls(name, spec, sizes, count, "", built.causal, *said, options, survey, year)

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
            "year": self.year,
            "sizes": self.sizes,
            "decodes": self.decodes,
            "about": self.about,
            "formula": self.formula,
            "options": self.options,
            "problem": self.problem,
        }
        return own | ({} if self.spec is None else asdict(self.spec))

    def cells(self) -> list[str]:
        """The cells of its row, with the survey's."""
        count, year = "-" if self.parameters is None else f"{self.parameters:,}", str(self.year or "-")
        if self.spec is None:
            return ["-", self.name, *"-----", year, count, "-", ""]
        ours, survey = _marks(self.spec.cells), _marks(self.spec.table1) if self.spec.table1 else None
        marks = [
            mine if survey in (None, ours) or mine == theirs else f"{mine} ({theirs})"
            for mine, theirs in zip(ours, survey or ours, strict=True)
        ]
        formula = ", ".join([self.spec.cells.params, *(f"{letter}={size}" for letter, size in self.sizes.items())])
        printed = f"{self.spec.table1.params} = {self.survey:,.0f}" if self.spec.table1 else ""
        return [self.spec.structure, self.name, *marks, year, count, formula, printed]


def _built(name: str, dims: Dims) -> PositionModel:
    """A model for counting. One of ours starts from zeros: to draw numbers takes most of the time.

    Large ones are built on the device ``meta``, where tensors have shapes only; it loads a second of PyTorch.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    from structpe.positions import MODELS, build

    class Zeros(TorchFunctionMode):
        def __torch_function__(self, call: Any, types: Any, given: Any = (), named: Any = None) -> Any:
            if call.__name__.endswith(("normal_", "uniform_")):
                return (given[0] if given else named["tensor"]).zero_()
            if call in (torch.randn, torch.rand):
                call, named = torch.zeros, {key: value for key, value in (named or {}).items() if key != "generator"}
            return call(*given, **(named or {}))

    if not MODELS[name].__module__.startswith("structpe."):
        return build(name, dims)
    if dims.width**2 * dims.layers > _LARGE:
        with suppress(Exception), torch.device("meta"), Zeros(), torch.no_grad():  # what is wrong is said below
            return build(name, dims)
    with Zeros(), torch.no_grad():
        return build(name, dims)


_LARGE = 4 * 512**2 * 6
"""The square of the width times the layers from which on a table of models is counted without any numbers."""


def _year(key: str) -> int | None:
    """The year of a BibTeX entry."""
    from structpe.positions.citing import reference

    found = re.search(r"^\s*year\s*=\D*(\d{4})", reference(key), re.MULTILINE)
    return int(found[1]) if found else None


def _survey(formula: str, dims: Dims) -> float:
    """The value of a formula of the survey, our own transcription."""
    own = {"d": dims.width, "h": dims.heads, "l": dims.layers, "d1": dims.width // 2}
    return float(eval(formula, {"__builtins__": {}}, _SURVEY | own))


def _marks(cells: Cells) -> list[str]:
    flags = (cells.learnable, cells.recurring, cells.unbound)
    return [cells.reference, cells.injection, *("y" if flag else "n" for flag in flags)]


class EncodingRow(NamedTuple):
    """An encoding.

    Attributes:
        encoding: its name.
        per: what has a value: each unit, each pair, or some pairs that it lists.
        options: names of its options.
        about: title.
        formula: of its values.
        takes: kinds of structures that it takes, as they are.
    """

    encoding: str
    per: Literal["unit", "listed pair", "pair"]
    options: list[str]
    about: str
    formula: str
    takes: list[str]

    @classmethod
    def of(cls, name: str, encoding: type[Encoding]) -> EncodingRow:
        """The row of an encoding, tried on a small structure of each kind."""
        options = [*inspect.signature(encoding).parameters]
        per: Literal["unit", "listed pair", "pair"] = "listed pair" if encoding.sparse else "pair"
        takes = [kind for kind, structure in _small().items() if _taken(encoding, structure)]
        return cls(name, "unit" if encoding.arity == 1 else per, options, about(encoding), formula(encoding), takes)


def _small() -> dict[str, Structure]:
    """A small structure of each kind."""
    import numpy as np

    from structpe.formats import tree
    from structpe.structure import Structure, path
    from structpe.transforms import grid

    ring = np.array([[0, 1], [1, 2], [2, 0]])
    return {
        "sequence": path("abc"),
        "grid": grid((2, 2)),
        "tree": tree(["a", "b", "c"], heads=[2, 0, 2], labels=["x", "root", "y"]),
        "graph": Structure(("a", "b", "c"), ring, ("x", "y", "x"), directed=False),
    }


def _taken(encoding: type[Encoding], structure: Structure) -> bool:
    """Whether an encoding with its defaults takes a structure."""
    try:
        encoding().fit([structure]).one(structure)
    except Exception:  # it may be anybody's
        return False
    return True


def about(cls: type) -> str:
    """The title of a position model or an encoding, the first paragraph of its docstring, on one line."""
    return _paragraph(cls, 0).rstrip(".")


def formula(cls: type) -> str:
    """The formula of a position model or an encoding, the second paragraph of its docstring, on one line."""
    return _paragraph(cls, 1)


def _paragraph(cls: type, number: int) -> str:
    paragraphs = (inspect.getdoc(cls) or "").split("\n\n")
    return ROLE.sub(r"\1", paragraphs[number].replace("\n", " ")) if number < len(paragraphs) else ""

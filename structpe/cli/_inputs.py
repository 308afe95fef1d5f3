"""Arguments that several commands share: files of structures, encodings, position models, trained models."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from structpe.cli.base import UsageError, path_of
from structpe.errors import ConfigError, PositionError, ReadError, StructPEError, located

if TYPE_CHECKING:
    from structpe.encodings import Encoding
    from structpe.formats import Item, Reading, Skipped
    from structpe.nn.search import SearchConfig
    from structpe.structure import Structure
    from structpe.tasks.runs import Run

__all__ = [
    "BY_RUN",
    "SEARCH",
    "WITH_RUN",
    "Beginning",
    "InputFile",
    "SkipReport",
    "add_encodings",
    "add_generation",
    "add_reading",
    "check_device",
    "check_file",
    "encodings_of",
    "generation_inputs",
    "item_of",
    "parse_encoding",
    "parse_options",
    "parse_position",
    "picture_input",
]


BY_RUN = "by default that of the training data, with its options, which --reader drops"
"""The default format of files for a trained model."""
WITH_RUN = f"by default from its suffix; with --checkpoint {BY_RUN}"

FIRST, MOST = 200, 30_000
"""The least number of structures in the first part of a file; the most, if the reader reads a file as a whole."""


def add_reading(
    parser: ArgumentParser,
    reader: str = "by default from its suffix",
    options: str = "option of the reader",
    on_error: str = "raise",
) -> None:
    """Declare ``--reader``, ``--option`` and ``--on-error``.

    Args:
        parser: the parser of the command.
        reader: the default format, for the help.
        options: the help of ``--option``.
        on_error: the default of ``--on-error``, for the help.
    """
    add = parser.add_argument_group("reading").add_argument
    add("--reader", metavar="NAME", help=f"format of the file; {reader}")
    add("--option", metavar="KEY=VALUE", dest="options", action="append", default=[],
        help=f"{options}, such as graph=enhanced; may be given several times")  # fmt: skip
    add("--on-error", choices=("raise", "skip"), help=f"what to do with a bad item (default: {on_error})")


@dataclass(frozen=True)
class InputFile:
    """A file of structures, and how to read it.

    Attributes:
        path: a file or folder.
        reader: name of the reader; None chooses by the suffix.
        on_error: what to do with bad items.
        options: options of the reader.
        kept: those of them that a run keeps.
    """

    path: Path
    reader: str | None = None
    on_error: Literal["raise", "skip"] = "raise"
    options: dict[str, Any] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path, given: Namespace, run: Run[Any, Any, Any, Any] | None = None) -> InputFile:
        """A file, read as the arguments say; for a trained model, as its training data unless arguments differ.

        Raises:
            UsageError: an option is not KEY=VALUE.
            ConfigError: no reader is given, and the run has none.
            ReadError: the file, reader or option does not exist.
        """
        from structpe.formats.reading import choose

        reader, options, own = given.reader, parse_options(given.options), parse_options(given.options)
        on_error: Literal["raise", "skip"] = given.on_error or "raise"
        if run is not None:
            with located(run.folder):
                reads = run.reads().but(reader, options, given.on_error)
            reader, on_error, options = reads.reader, reads.on_error, dict(reads.options)
        choose(path, reader).check(options)
        kept = {} if run is None else {name: each for name, each in options.items() if name not in own}
        return cls(path, reader, on_error, options, kept)

    def read(self) -> Reading:
        """Read all items, and report skipped ones on the error stream."""
        from structpe.formats import read

        with self._with_kept():
            reading = read(self.path, self.reader, self.on_error, **self.options)
        if reading.skipped:
            print(reading.report(), file=sys.stderr)
        return reading

    def _with_kept(self) -> AbstractContextManager[None]:
        """The context of options of a run, for errors."""
        if not self.kept:
            return nullcontext()
        from structpe.tasks.config import kept_options

        return kept_options(self.kept)

    def structures(
        self, executor: Executor | None = None, progress: Callable[[int, int], object] | None = None
    ) -> Iterator[Structure]:
        """Read the structures one by one, and report skipped items at the end.

        Args:
            executor: workers that make the items.
            progress: called repeatedly with the number of bytes read, and of all bytes.

        Raises:
            ReadError: an item is bad, or all are.
        """
        from structpe.formats import stream

        skipped, good = SkipReport(), 0
        skip = skipped.add if self.on_error == "skip" else None
        with self._with_kept():
            for item in stream(self.path, self.reader, skip, progress, executor, **self.options):
                good += 1
                yield item.structure
        if not good:
            report = f"no item could be read; check that the reader fits the file; {skipped.text(good)}"
            raise ReadError(report).at(self.path)
        if skipped.count:
            print(skipped.text(good), file=sys.stderr)

    def begun(self, form: Callable[[Structure], Structure]) -> tuple[Beginning, Iterator[Structure]]:
        """The beginning of the file, and all structures in a form, without reading the beginning again."""
        found: list[Structure] = []
        read, count, total = 0, 0, 0  # the bytes read when this number of structures was complete
        reported = 0
        failed: StructPEError | None = None

        def progress(done: int, all_: int) -> None:
            nonlocal read, count, total, reported
            read, count, total, reported = reported, len(found), all_, done

        began, structures = time.perf_counter(), map(form, self.structures(progress=progress))
        try:
            for structure in structures:
                found.append(structure)
                if count >= FIRST or len(found) >= MOST:
                    break
            else:
                count, read, total = len(found), 1, 1
        except StructPEError as error:  # raised again in its place: what comes before is still encoded
            failed = error
        seconds = (time.perf_counter() - began) * count / max(1, len(found))

        def all_of_them() -> Iterator[Structure]:
            yield from found
            if failed is not None:
                raise failed
            yield from structures

        return Beginning(found[:count], total / read if read else 0.0, seconds), all_of_them()


class Beginning(NamedTuple):
    """The first structures of a file.

    Attributes:
        structures: the structures.
        times: size of the file, as a multiple of them; 0 if it is not known.
        seconds: that reading them took.
    """

    structures: Sequence[Structure] = ()
    times: float = 0.0
    seconds: float = 0.0


def check_file(given: Namespace) -> None:
    """Check the options of reading, for a command with an optional file.

    Raises:
        UsageError: there are options but no file.
        ReadError: the file, reader or option does not exist.
    """
    if given.file is not None:
        InputFile.of(given.file, given)
    elif options := [name for name in ("reader", "options", "on_error") if getattr(given, name)]:
        name = {"options": "--option", "on_error": "--on-error"}.get(options[0], f"--{options[0]}")
        raise UsageError(f"{name} is an option of reading, and no file is given; give one, or leave {name} out")


def _parse_yaml(text: str, option: str, what: str = "it") -> Any:
    """Parse the YAML of an option.

    Raises:
        UsageError: it is not YAML.
    """
    from structpe.plain import from_yaml

    try:
        return from_yaml(text, what)
    except ConfigError as error:
        raise UsageError(f"{option} cannot be read: {error}") from None


def parse_options(given: Sequence[str]) -> dict[str, Any]:
    """Parse options of the form KEY=VALUE, with values in YAML.

    Raises:
        UsageError: an option is not of this form, is given twice, or is not YAML.
    """
    options: dict[str, Any] = {}
    for option in given:
        name, equals, value = option.partition("=")
        if not name or not equals:
            raise UsageError(f"--option {option!r} is not of the form KEY=VALUE")
        if (key := name.replace("-", "_")) in options:
            raise UsageError(f"--option {name} is given twice; give it once")
        options[key] = _parse_yaml(value, f"--option {option!r}", "the value")
    return options


class SkipReport:
    """The first skipped items, and the number of all: a million bad items must not fill the memory."""

    def __init__(self) -> None:
        self.first: list[Skipped] = []
        self.count = 0

    def add(self, skipped: Skipped) -> None:
        """Add a skipped item."""
        from structpe.formats.reading import SHOWN

        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(skipped)

    def text(self, good: int) -> str:
        """The report, given the number of good items."""
        from structpe.formats.reading import skip_report

        return skip_report(self.first, self.count, self.count + good)


def add_encodings(parser: ArgumentParser, required: bool = False) -> None:
    """Declare ``--encoding``."""
    parser.add_argument("--encoding", metavar="NAME", dest="encodings", action="append", required=required, default=[],
                        help="may be given several times; 'structpe encodings' lists them")  # fmt: skip


def encodings_of(given: Namespace) -> list[Encoding]:
    """The encodings of ``--encoding``; see :func:`parse_encoding`."""
    from structpe.encodings.base import as_encoding

    return [as_encoding(parse_encoding(each), error=PositionError) for each in given.encodings]


def parse_encoding(text: str) -> dict[str, Any]:
    """Parse an encoding to its plain description.

    Raises:
        UsageError: it is neither a name, nor NAME:key=value,..., nor a JSON object, or gives an option twice.
    """
    if not text.startswith("{"):
        name, _, options = text.partition(":")
        pairs = [option.partition("=") for option in options.split(",") if option]
        if not name or not all(key and equals and value for key, equals, value in pairs):
            raise UsageError(f"--encoding {text!r} is not of the form NAME or NAME:key=value,key=value")
        if twice := next((key for key, times in Counter(key for key, _, _ in pairs).items() if times > 1), None):
            raise UsageError(f"--encoding {text!r} gives {twice!r} twice; give it once")
        return {"name": name, **{key: _parse_yaml(value, f"--encoding {text!r}") for key, _, value in pairs}}
    described = _parse_yaml(text, f"--encoding {text!r}")  # YAML includes JSON
    if not isinstance(described, dict) or not isinstance(described.get("name"), str):
        raise UsageError(f'--encoding {text!r} has no name; write it as {{"name": "distance", "max_distance": 8}}')
    return described


def item_of(source: InputFile, index: int) -> tuple[Item, Callable[[], list[Structure]]]:
    """The item of a file with an index, not counting skipped ones; and a function that reads all structures.

    Raises:
        UsageError: there are fewer items.
        ReadError: the file, or an item up to this one, cannot be read.
    """
    from structpe.formats import stream

    if not 0 <= index < sys.maxsize:
        raise UsageError(f"--index is {index}; structures are counted from 0, and there are fewer than {sys.maxsize}")
    count, last = 0, None
    skip = None if source.on_error == "raise" else SkipReport().add
    items = stream(source.path, source.reader, skip, **source.options)
    for last in islice(items, index + 1):  # noqa: B007, the last one is used
        count += 1
    if last is None or count <= index:
        found = f"has {count} structures, 0..{count - 1}" if count else "has no good structure"
        raise UsageError(f"--index is {index}, but {source.path} {found}")
    return last, lambda: source.read().structures


def picture_input(given: Namespace, path: Path) -> InputFile:
    """The file of a picture, for the trained model of ``--checkpoint`` if there is one.

    Raises:
        StructPEError: see :meth:`InputFile.of`.
    """
    if given.checkpoint is None:
        return InputFile.of(path, given)
    from structpe.tasks.runs import load_run

    return InputFile.of(path, given, load_run(given.checkpoint))


def parse_position(text: str) -> Any:
    """Parse a position model, a name or YAML, to its plain description.

    Raises:
        UsageError: it is not YAML.
    """
    return _parse_yaml(text, f"--position {text!r}")


SEARCH = ("beam", "length_penalty", "longest")
"""The fields of ``SearchConfig``, each an option."""


def add_generation(parser: ArgumentParser, file: str = "file or folder with structures", **others: Any) -> None:
    """Declare the arguments of ``generate`` and ``evaluate``: run, file, options of reading and of the search.

    Args:
        parser: the parser of the command.
        file: the help of the file.
        others: further arguments of its declaration.
    """
    parser.add_argument("run", metavar="RUN", type=path_of, help="folder of a trained model")
    parser.add_argument("file", metavar="FILE", type=path_of, help=file, **others)
    add_reading(parser, BY_RUN, on_error="as in training")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="by default a GPU, if there is one")
    search = parser.add_argument_group("search", "by default as the run was configured")
    search.add_argument("--beam", metavar="N", type=int, help="texts kept at each step; 1 is greedy")
    search.add_argument("--length-penalty", metavar="A", type=float, help="0 prefers short texts, larger longer ones")
    search.add_argument("--longest", metavar="N", type=int, help="largest length of a text, in units")


def check_device(given: Namespace) -> None:
    """Check that there is a GPU if one is asked for.

    Raises:
        UsageError: there is none.
    """
    import torch

    if given.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("PyTorch sees no GPU here; leave --device out, or give --device cpu")


def generation_inputs(
    given: Namespace, items: list[Item] | None = None, texts: bool = False
) -> tuple[list[Item], SearchConfig]:
    """The items of ``FILE``, unless there are some, and the search of the run with the given options.

    Args:
        given: the arguments.
        items: of a split of the run.
        texts: whether items need texts.
    """
    from structpe.nn.search import SearchConfig
    from structpe.tasks.graph_to_text.generator import OR_WRITE, with_texts
    from structpe.tasks.runs.text import text_run

    check_device(given)
    run = text_run(given.run)
    asked = {name: each for name in SEARCH if (each := getattr(given, name)) is not None}
    if asked.get("beam", run.config.search.beam) == 1:
        if "length_penalty" in asked:
            raise UsageError(
                "--length-penalty has no effect on greedy search, which keeps one text; give --beam 2 or more"
            )
        asked["length_penalty"] = SearchConfig.length_penalty  # the run's own has no effect either
    search = replace(run.config.search, **asked)
    if items is not None:
        return items, search
    source = InputFile.of(given.file, given, run)
    found = list(source.read().items)
    if texts:
        found = with_texts(found, source.on_error, source.path, source.options.get("text"), OR_WRITE)
    return found, search

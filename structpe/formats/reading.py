"""A reader turns a path into items: each a structure, its texts, an id and metadata.

A reader is a generator. It yields an item, or an :class:`attempt` to make one, which another process may do. For a
bad item it yields the error instead, if it can find the next item; otherwise it raises. :func:`read` and :func:`stream`
raise the first error, or skip bad items and report each of them. They report progress for each reader that opens the
path that it is given.
"""

from __future__ import annotations

import inspect
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeGuard, TypeVar, cast, overload

from structpe.errors import ReadError, StructPEError, StructureError, located
from structpe.formats.text import HEAD, OF_NETWORKX, check_text, shown
from structpe.plain.options import Builder, options_of
from structpe.registry import Registry
from structpe.structure import Structure
from structpe.system.workers import in_order

__all__ = [
    "READERS",
    "SHOWN",
    "Item",
    "Meter",
    "Paths",
    "Reader",
    "Reading",
    "Skipped",
    "Yielded",
    "attempt",
    "choose",
    "files_in",
    "no_file",
    "paths_of",
    "read",
    "reader",
    "skip_report",
    "stream",
    "unreadable",
]

T = TypeVar("T")
PIECE = 1 << 17


class Meter:
    """Reports the number of bytes read, and of all bytes.

    Args:
        files: the files, in the order of reading.
        report: called with both numbers; None for no reports.
    """

    def __init__(self, files: Sequence[Path], report: Callable[[int, int], object] | None) -> None:
        self.report = report
        self.sizes = [] if report is None else [file.stat().st_size for file in files]
        self.total = sum(self.sizes)
        self.done = 0

    def watched(self, files: Sequence[tuple[Path, T]]) -> Iterator[tuple[Path, T]]:
        """The files with counting paths; a file that is read in another way counts at its end."""
        if self.report is None:
            yield from files
            return
        for place, (file, chosen) in enumerate(files):
            path = _Counting(file)  # so progress needs no change of any reader
            path.count = self._count
            yield path, chosen
            self.done = sum(self.sizes[: place + 1])
            self.report(self.done, self.total)

    def _count(self, taken: int) -> None:
        self.done += taken
        if self.report is not None:
            self.report(self.done, self.total)


class _Counting(type(Path())):  # type: ignore[misc]  # the class depends on the operating system
    """A path whose files report the number of bytes that are read."""

    count: Callable[[int], None] | None = None

    def open(self, mode: str = "r", *given: Any, **options: Any) -> Any:
        if self.count is None or mode.strip("bt") != "r":
            return super().open(mode, *given, **options)
        names = ("buffering", "encoding", "errors", "newline")
        options |= dict(zip(names, given, strict=False))
        file = io.BufferedReader(_Counted(self, self.count), PIECE)
        options.pop("buffering", None)
        return file if "b" in mode else io.TextIOWrapper(file, **options)


class _Counted(io.FileIO):
    """A file that reports the number of bytes that are read."""

    def __init__(self, path: Path, count: Callable[[int], None]) -> None:
        super().__init__(path, "rb")
        self.count = count

    def readinto(self, buffer: Any) -> int:
        taken = super().readinto(buffer) or 0
        if taken:
            self.count(taken)
        return taken

    def readall(self) -> bytes:
        content = super().readall()
        self.count(len(content))
        return content


def files_in(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    """The sorted files with these suffixes in a folder and its subfolders; links to folders are followed.

    Raises:
        ReadError: a link is broken, a file is a pipe or a device, or a folder cannot be listed.
    """
    return sorted(each for each in _within(folder) if _wanted(each, suffixes))


def no_file(path: Path) -> ReadError:
    """The error for a path that is neither a file nor a folder."""
    if path.exists():
        wrong = "this is a pipe or a device, which cannot be read twice; save its content to a file, and read that"
    elif path.is_symlink():
        wrong = f"the link leads to {path.readlink()}, where nothing is; fetch that file, or remove the link"
    else:
        wrong = "there is no such file or folder; check the path"
    return ReadError(wrong).at(path)


def unreadable(error: OSError) -> ReadError:
    """The error for a file or a folder that the system does not allow to read."""
    return ReadError(f"the file cannot be read: {error.strerror}; check its permissions")


def _within(folder: Path) -> Iterator[Path]:
    """The paths in a folder. Each folder is visited once, since a link may lead to one above."""
    seen: set[tuple[int, int]] = set()
    for parent, folders, names in os.walk(folder, onerror=_unlisted, followlinks=True):
        here = os.stat(parent)
        if (here.st_dev, here.st_ino) in seen:
            folders.clear()
            continue
        seen.add((here.st_dev, here.st_ino))
        folders.sort()
        yield from (Path(parent, name) for name in names)


def _unlisted(error: OSError) -> None:
    raise unreadable(error).at(error.filename)


def _wanted(file: Path, suffixes: Sequence[str]) -> bool:
    """Whether to read a file of a folder. A broken link without a suffix is an error: it may have led to a folder."""
    if file.name.startswith(".") or (file.suffix not in suffixes and (file.suffix or file.exists())):
        return False
    if not file.is_file():
        raise no_file(file)
    return True


@dataclass(frozen=True, eq=False)
class Item:
    """One example of a data set.

    Attributes:
        structure: the graph.
        texts: sentences with the same meaning, the references of text generation; may be empty.
        id: its name in the file, or its number from 1 if it has no name.
        metadata: everything else in the file about it.
    """

    structure: Structure
    texts: tuple[str, ...] = ()
    id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


Paths: TypeAlias = "str | PathLike[str] | Sequence[str | PathLike[str]]"
"""Files and folders: one, or a list of them."""

Outcome: TypeAlias = Item | StructPEError
"""An item, or the error of a bad item."""


@dataclass(frozen=True, eq=False)
class attempt:  # a verb, as readers call it: yield attempt(...)
    """An item that is not made yet. Called, it returns the item, or its error with the id and the line.

    Args:
        make: returns the item; a function of a module or a ``partial`` of one, if the reader is ``parallel``.
        id: of the item, for the error.
        line: the first line of the item, for the error.
    """

    make: Callable[[], Item]
    id: str = ""
    line: int = 0

    def __call__(self) -> Outcome:
        try:
            return self.make()
        except StructureError as error:
            # The name of a structure is its file and id, which the error already has.
            return StructureError(error.message).at(*_place(self.id, self.line))
        except ReadError as error:
            return error.at(*_place(self.id, 0 if error.places else self.line))


Yielded: TypeAlias = Outcome | attempt
"""An item, an error, or an attempt, from a reader."""

Items: TypeAlias = Callable[..., Iterator[Yielded]]
Made = TypeVar("Made", bound=Items)


@dataclass(frozen=True)
class Reader:
    """A file format.

    Attributes:
        name: its name in the registry.
        suffixes: the suffixes of its files, such as ``.conllu``; several readers may claim the same.
        doc: a description, in one line.
        items: ``(path, **options)`` -> items.
        also: further suffixes, of files that it reads in a folder only if it is named.
        parallel: whether other processes can make its items, which takes most of the time.
    """

    name: str
    suffixes: tuple[str, ...]
    doc: str
    items: Items
    also: tuple[str, ...] = ()
    parallel: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that ``items`` takes after the path."""
        return tuple(options_of(self.items))

    def check(self, options: Mapping[str, Any]) -> None:
        """Check options.

        Raises:
            ReadError: an option is unknown, or a value has another type than declared.
        """
        Builder(ReadError).arguments(self.items, options, f"reader {self.name!r}")


class Skipped(NamedTuple):
    """A bad item that was skipped: its place and its error."""

    place: str
    message: str


READERS: Registry[Reader] = Registry("structpe.formats", "reader", ReadError)
"""Every reader by its name."""


def reader(name: str, suffixes: str, also: str = "", parallel: bool = False) -> Callable[[Made], Made]:
    """Register a function as a reader; the first line of its docstring is its description.

    Args:
        name: its name.
        suffixes: the suffixes of its files, separated by spaces.
        also: suffixes that are too common to be claimed; such files are read if the reader is named.
        parallel: whether other processes can call its :class:`attempt`, and this takes most of the time.
    """

    def enter(items: Made) -> Made:
        doc = (inspect.getdoc(items) or "").partition("\n")[0]
        READERS.add(name, Reader(name, tuple(suffixes.split()), doc, items, tuple(also.split()), parallel))
        return items

    return enter


@dataclass(frozen=True, eq=False)
class Reading(Sequence[Item]):
    """A sequence of the items that were read, and the skipped ones."""

    items: tuple[Item, ...]
    skipped: tuple[Skipped, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        return self.items[index]

    @property
    def structures(self) -> list[Structure]:
        """The structure of each item."""
        return [item.structure for item in self.items]

    @property
    def duplicates(self) -> list[str]:
        """Ids that several items share; formats allow this, but it matters when files are joined by ids."""
        return [id for id, count in Counter(item.id for item in self.items).items() if count > 1]

    def report(self) -> str:
        """The number of skipped items, and the first of them with reasons; ``skipped`` has all."""
        return skip_report(self.skipped[:SHOWN], len(self.skipped), len(self.items) + len(self.skipped))


SHOWN = 20
"""How many skipped items a report lists."""

_GROUP = 250
"""Items that a worker makes at a time."""


def skip_report(first: Sequence[Skipped], count: int, total: int) -> str:
    """The number of skipped items, and the first of them with reasons."""
    shown = [f"  {place}: {message}" for place, message in first]
    more = [f"  and {count - len(first)} more"] if count > len(first) else []
    return "\n".join([f"skipped {count} of {total} items" + (":" if shown else ""), *shown, *more])


def read(
    path: Paths, reader: str | None = None, on_error: Literal["raise", "skip"] = "raise", **options: Any
) -> Reading:
    """Read all items of a file, of all files of a folder in the order of their names, or of several of these.

    Args:
        path: a file or a folder, or a list of them; folders and their subfolders are searched for files that the
            reader claims. Links are followed; broken links and pipes are errors.
        reader: name of the reader; None chooses by the suffix of the file.
        on_error: ``raise`` raises the error of the first bad item, ``skip`` skips bad items and lists them in
            ``skipped``.
        options: options of the reader.

    Raises:
        ReadError: the path, reader or option does not exist; with ``raise``, an item is bad; with ``skip``, all are.
        StructureError: with ``raise``, the graph of an item is invalid.
    """
    if on_error not in ("raise", "skip"):
        raise ReadError(f"on_error is {on_error!r}; give 'raise' or 'skip'")
    skipped: list[Skipped] = []
    skip = None if on_error == "raise" else skipped.append
    reading = Reading(tuple(stream(path, reader, skip, **options)), tuple(skipped))
    if not reading.items:
        where = ", ".join(map(str, paths_of(path)))
        raise ReadError(f"no item could be read; check that the reader fits the file; {reading.report()}").at(where)
    return reading


def stream(
    path: Paths,
    reader: str | None = None,
    skip: Callable[[Skipped], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
    executor: Executor | None = None,
    **options: Any,
) -> Iterator[Item]:
    """Yield the items of :func:`read` one by one, for a corpus larger than memory.

    Args:
        path: a file or a folder, or a list of them.
        reader: name of the reader; None chooses by the suffix of the file.
        skip: called with each bad item, which is then skipped; None raises the first error.
        progress: called repeatedly with the number of bytes read, and of all bytes.
        executor: workers that make the items, see :func:`structpe.system.workers.workers`; None makes them in this
            process. Readers whose items are cheap to make, or need the whole file, do not use them. The items are the
            same.
        options: options of the reader.
    """
    files = [each for one in paths_of(path) for each in _files(one, reader)]
    meter = Meter([file for file, _ in files], progress)
    for file, chosen in meter.watched(files):
        chosen.check(options)
        for outcome in _outcomes(file, chosen, options, executor):
            if isinstance(outcome, Item):
                yield outcome
            elif skip is None:
                raise outcome
            else:
                skip(Skipped(": ".join(outcome.places), outcome.message))


def paths_of(path: Paths) -> list[Path]:
    """The given paths, as a list.

    Raises:
        ReadError: the list is empty, or something is not a path.
    """
    given: Sequence[object] = [path] if isinstance(path, (str, PathLike)) else path if _is_list(path) else [path]
    if not given:
        raise ReadError("the list of paths is empty; give a file, a folder, or a list of at least one of these")
    if wrong := [each for each in given if not isinstance(each, (str, PathLike))]:
        odd = f"{repr(wrong[0])[:80]} ({type(wrong[0]).__name__})"
        raise ReadError(f"read takes the path of a file or folder, or a list of paths; given is {odd}")
    if "" in given:
        raise ReadError("the path is empty; give a file or a folder, '.' for the current one")
    return [Path(each) for each in given if isinstance(each, (str, PathLike))]


def _is_list(path: object) -> TypeGuard[Sequence[object]]:
    return isinstance(path, Sequence) and not isinstance(path, (str, bytes))


def choose(path: Paths, name: str | None = None) -> Reader:
    """The reader of a file, or of the first file of a folder, by name or by suffix.

    Raises:
        ReadError: the path or reader does not exist, or several readers claim the suffix.
    """
    return next(_files(paths_of(path)[0], name))[1]


def _place(id: str, line: int) -> list[str]:
    return ([shown(id)] if id else []) + ([f"line {line}"] if line else [])


def _outcomes(file: Path, chosen: Reader, options: Mapping[str, Any], executor: Executor | None) -> Iterator[Outcome]:
    """The items and errors of a file, with their places."""
    yielded = _numbered(file, chosen, options)
    made: Iterable[tuple[int | None, Outcome]] = map(_item_of, yielded)  # lazily, since some readers need it
    if chosen.parallel and executor is not None:
        groups = ((group,) for group in iter(lambda: list(islice(yielded, _GROUP)), []))
        made = chain.from_iterable(in_order(_made, groups, executor))
    for number, outcome in made:
        if not isinstance(outcome, Item) or type(outcome.structure) is not Structure:
            _check_outcome(outcome, chosen, file)
        if isinstance(outcome, Item):
            yield outcome
        elif number is None:
            yield outcome.at(file)
            return
        else:
            yield outcome.at(file, f"item {number}")


def _check_outcome(outcome: object, chosen: Reader, file: Path) -> None:
    """Explain to the author of a reader that it yields something else.

    Raises:
        ReadError: it does.
    """
    if isinstance(outcome, Item) and not isinstance(found := cast(object, outcome.structure), Structure):
        wrong = f"reader {chosen.name!r} made an item whose structure is {repr(found)[:80]}"
        raise ReadError(f"{wrong}; give Item(structure, texts, id=...)").at(file)
    if not isinstance(outcome, Item | StructPEError):
        wrong = f"reader {chosen.name!r} yields {type(outcome).__name__}"
        raise ReadError(f"{wrong}; yield an Item, an attempt to make one, or the error of a bad item").at(file)


def _numbered(file: Path, chosen: Reader, options: Mapping[str, Any]) -> Iterator[tuple[int | None, Yielded]]:
    """The outcomes of a reader, numbered from 1; if it stops or yields nothing, the reason, without a number."""
    number = 0
    try:
        for number, each in enumerate(chosen.items(file, **options), 1):
            yield number, each
    except ReadError as error:
        error.message += " (nothing after this was read from the file)" if number else ""
        yield None, error
        return
    except OSError as error:
        yield None, unreadable(error)
        return
    if not number:
        yield None, ReadError(f"there is no item in the file; reader {chosen.name!r} reads: {chosen.doc}")


def _made(group: Sequence[tuple[int | None, Yielded]]) -> list[tuple[int | None, Outcome]]:
    return list(map(_item_of, group))


def _item_of(numbered: tuple[int | None, Yielded]) -> tuple[int | None, Outcome]:
    number, each = numbered
    try:
        return number, each() if isinstance(each, attempt) else each
    except OSError as error:  # of a reader whose one item is the file
        return None, unreadable(error)


def _files(path: Path, name: str | None) -> Iterator[tuple[Path, Reader]]:
    given = READERS[name] if name is not None else None
    if path.is_file():
        yield path, given or _choose(path)
        return
    if not path.is_dir():
        raise no_file(path)
    if given is not None and not given.suffixes + given.also:
        raise ReadError(f"reader {given.name!r} reads single files; give one of this folder").at(path)
    claimed = given.suffixes + given.also if given else tuple(s for known in READERS.values() for s in known.suffixes)
    files = files_in(path, claimed)
    if not files:
        raise ReadError(f"the folder has no file whose name ends in {', '.join(sorted(set(claimed)))}").at(path)
    for file in files:
        yield file, given or _choose(file)


def _choose(file: Path) -> Reader:
    claims = [known for known in READERS.values() if file.suffix in known.suffixes]
    if len(claims) == 1:
        return claims[0]
    names = ", ".join(repr(known.name) for known in claims or READERS.values())
    try:
        with located(file), file.open("rb") as opened:
            check_text(opened.read(HEAD))  # before the question of the reader: it may not even be text
    except OSError as error:
        raise unreadable(error).at(file) from None
    if (call := OF_NETWORKX.get(file.suffix.lower())) is not None:
        said = f"but networkx reads them; in Python, give as_structure(networkx.{call}(PATH))"
        raise ReadError(f"no reader claims {file.suffix!r} files, {said}").at(file)
    problem = f"several readers read {file.suffix!r} files" if claims else f"no reader claims {file.suffix!r} files"
    raise ReadError(f"{problem}; say which with reader= or --reader, one of {names}").at(file)

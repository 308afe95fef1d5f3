"""Arrays, lines and indices from files of benchmarks, read without unpickling, and checked.

Many files hold the arrays of all graphs in one; a single wrong count would then split all later graphs wrongly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from structpe.datasets.archives import check_zip
from structpe.errors import ReadError, StructPEError, listed, located, reason_of
from structpe.formats import text
from structpe.structure import Ids

__all__ = [
    "array",
    "arrays",
    "check_counts",
    "check_ends",
    "check_list",
    "check_range",
    "indices",
    "lines",
    "lists_of_indices",
    "needed",
    "read_packed",
    "slices",
]

DIGITS = 20
"""More digits than any index has."""


def needed(file: Path) -> Path:
    """Return the file if it exists.

    Raises:
        ReadError: it does not exist.
    """
    if not file.is_file():
        raise ReadError(f"there is no file {file.name} in {file.parent}; give the folder that holds it")
    return file


def arrays(file: Path, *names: str) -> list[NDArray[Any]]:
    """Read arrays of an ``.npz`` file.

    Raises:
        ReadError: the file is missing or damaged, lacks an array, or holds pickled objects.
    """
    with _loaded(file) as content:
        if not isinstance(content, np.lib.npyio.NpzFile):
            raise ValueError("it holds one array without a name")
        if lacking := [name for name in names if name not in content.files]:
            known = listed(content.files)
            raise ReadError(f"there is no array {lacking[0]!r}; the file has {known}").at(file)
        assert content.zip is not None, "it was opened just now"
        check_zip(content.zip, file.stat().st_size)
        return [_member(content, name) for name in names]


def array(file: Path) -> NDArray[Any]:
    """Read the array of an ``.npy`` file.

    Raises:
        ReadError: the file is missing or damaged, or holds pickled objects.
    """
    with needed(file).open("rb") as stream:
        if stream.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
            stream.seek(0)
            with _named(file):
                _check_header(stream, file.stat().st_size)
    with _loaded(file) as content:
        if not isinstance(content, np.ndarray):
            raise ValueError("it holds several arrays")
        return content


def _member(content: Any, name: str) -> NDArray[Any]:
    """Read one array, after checking its header against its size."""
    place = name if name in content.zip.namelist() else f"{name}.npy"
    with content.zip.open(place) as stream:
        _check_header(stream, content.zip.getinfo(place).file_size)
    found: NDArray[Any] = content[name]
    return found


def _check_header(stream: IO[bytes], size: int) -> None:
    """Check that a file is as large as its array claims: NumPy allocates memory before it reads the first number.

    Raises:
        ValueError: it is not an array, or is smaller than it claims.
    """
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    promised = math.prod(shape) * max(1, dtype.itemsize)
    if min(shape, default=0) < 0 or promised > size:
        raise ValueError(f"it claims {dtype} of shape {shape}, and has {size} bytes")


@contextmanager
def _loaded(file: Path) -> Iterator[Any]:
    """Open a file with NumPy, which by itself would leave a damaged file open."""
    with needed(file).open("rb") as opened, _named(file):
        yield np.load(opened, allow_pickle=False)


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Convert all errors of NumPy while reading a file into a ReadError."""
    try:
        yield
    except StructPEError:
        raise
    except Exception as error:
        reason = reason_of(error) or type(error).__name__
        raise ReadError(f"not a file of arrays ({reason}); bring back the original").at(file) from None


def lines(file: Path) -> Iterator[tuple[int, str]]:
    """Iterate over the lines of a text file, numbered from 1.

    Raises:
        ReadError: the file is missing, or a line is not UTF-8.
    """
    try:
        yield from text.lines(needed(file))
    except ReadError as error:
        raise error.at(file) if error.places else error from None


def indices(file: Path, below: int, what: str) -> Ids:
    """Read indices, such as those of one part of a split.

    Args:
        file: a text file of whole numbers 0..below - 1, each at most once, separated by spaces and line breaks.
        below: number of items.
        what: name of the items, for errors.

    Raises:
        ReadError: the file is missing or empty, or contains anything else.
    """
    seen: set[int] = set()
    found = [number for place, line in lines(file) for number in _indices(file, place, line.split(), below, what, seen)]
    if not found:
        raise _no_indices(file, below, what, "the file is empty")
    return np.array(found, dtype=np.int64)


def lists_of_indices(file: Path, below: int, what: str) -> list[Ids]:
    """Read one list of indices per line, separated by commas; see :func:`indices`."""
    return [
        np.array(list(_indices(file, place, line.split(","), below, what, set())), dtype=np.int64)
        for place, line in lines(file)
    ]


def _indices(file: Path, line: int, words: list[str], below: int, what: str, seen: set[int]) -> Iterator[int]:
    for word in words:
        number = int(word) if word.strip().isdecimal() and len(word) < DIGITS else below
        if number >= below or number in seen:
            again = " a second time" if number in seen else ""
            raise _no_indices(file, below, what, f"{text.shown(word)} is given{again}", f"line {line}")
        seen.add(number)
        yield number


def _no_indices(file: Path, below: int, what: str, given: str, *places: str) -> ReadError:
    needed = f"numbers of {what} from 0..{below - 1}, each once, are needed"
    return ReadError(f"{given}; {needed}; bring back the original").at(file, *places)


LARGEST = 1 << 16
"""More nodes or edges than any graph of these sets has."""
Packed = Mapping[str, NDArray[Any]]


def read_packed(file: Path, names: Sequence[str], check: Callable[[Packed], None]) -> Packed:
    """Read arrays of an ``.npz`` file and check that they fit together.

    Args:
        file: the file.
        names: names of the arrays.
        check: raises a ReadError if they do not fit.

    Raises:
        ReadError: the file is missing or damaged, or its arrays do not fit.
    """
    packed = dict(zip(names, arrays(file, *names), strict=True))
    with located(file):
        check(packed)
    return packed


def slices(packed: Packed) -> list[tuple[slice, slice]]:
    """Slices of the nodes and of the edges of each graph."""
    ends = (np.cumsum([0, *packed[name].tolist()]).tolist() for name in ("n_nodes", "n_edges"))
    return list(zip(*([slice(*pair) for pair in pairwise(each)] for each in ends), strict=True))


def check_counts(packed: Packed, things: str) -> tuple[int, int]:
    """Check that there are ``n_nodes`` and ``n_edges`` for each ``y``; return the total of nodes and of edges.

    Raises:
        ReadError: an array has another length, or a count is out of range.
    """
    count = len(packed["y"]) if packed["y"].ndim else 0
    for name, least in (("n_nodes", 1), ("n_edges", 0)):
        check_list(packed, name, "iu", count, f"a number for each of {count} {things}s")
        check_range(packed, name, least, LARGEST)
    return int(packed["n_nodes"].sum(dtype=np.int64)), int(packed["n_edges"].sum(dtype=np.int64))


def check_ends(packed: Packed, count: int, words: tuple[str, str, str]) -> None:
    """Check that edges join nodes of one graph and are listed in both directions, with the same ``edge_attr``.

    Args:
        packed: the arrays.
        count: number of edges.
        words: words for an edge, a graph and a node, for errors.

    Raises:
        ReadError: an edge is wrong.
    """
    index, (edge, graph, node) = packed["edge_index"], words
    if index.dtype.kind not in "iu" or index.shape != (2, count):
        raise _misfit(f"edge_index has shape {index.shape} and type {index.dtype}; (2, {count}) integers are needed")
    index, sizes = index.astype(np.int64), packed["n_nodes"].astype(np.int64)
    of = np.repeat(np.arange(len(sizes)), packed["n_edges"])
    outside = np.flatnonzero(((index < 0) | (index >= sizes[of])).any(axis=0))
    if len(outside):
        first = outside[0]
        named = f"{edge} {first} is {index[:, first].tolist()} in {graph} {of[first]}"
        raise _misfit(f"{named}, whose {node}s are 0..{sizes[of[first]] - 1}")
    kinds = packed.get("edge_attr", np.zeros(count, dtype=np.int64))
    there, back = (np.stack([of, *ends, kinds], axis=1) for ends in (index, index[::-1]))
    there, back = there[there[:, 1] < there[:, 2]], back[back[:, 1] < back[:, 2]]
    there, back = (rows[np.lexsort(rows.T)] for rows in (there, back))
    if 2 * len(there) != count or not np.array_equal(there, back):
        typed = " with the same type" if "edge_attr" in packed else ""
        raise _misfit(f"each {edge} must be listed in both directions{typed} and join two {node}s")


def check_list(packed: Packed, name: str, kinds: str, count: int, needed: str) -> None:
    """Check the kind and the length of a one-dimensional array.

    Raises:
        ReadError: either is wrong.
    """
    values = packed[name]
    if values.shape != (count,) or values.dtype.kind not in kinds:
        numbers = "numbers" if "f" in kinds else "integers"
        raise _misfit(f"{name} has shape {values.shape} and type {values.dtype}; {numbers} are needed, {needed}")


def check_range(packed: Packed, name: str, least: float, below: float) -> None:
    """Check that values are finite, ``least`` or more, and less than ``below``.

    Raises:
        ReadError: a value is out of range.
    """
    values = packed[name]
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= least) & (values < below)))
    if len(wrong):
        needed = "a finite number" if below == np.inf else f"{least}..{below - 1}"
        raise _misfit(f"{name}[{wrong[0]}] is {values[wrong[0]]}; {needed} is needed")


def _misfit(message: str) -> ReadError:
    return ReadError(f"{message}; bring back the original")

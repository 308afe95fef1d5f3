"""The files of a store: its shards, the tables of its index, and the journal of a store that grows.

Arrays are mapped, so memory does not grow with the store. Of a shard:

::

    <i>.<part>    the array of this name of the column of encoding i; parts that the column lacks are absent. Of
                  symmetric pairs, ``index`` has the lower triangle
    digests       (n, 16) the digest of each structure
    names         the names of the structures, one after the other, in UTF-8
    name_ends     (n,) where each name ends

Of the index:

::

    shards.safetensors     of each shard
        ends        (s,) how many structures there are up to its end
        bytes       (s,) its size
        sha256      (s, 32) its checksum
        content     (s, 32) a digest of its structures and their names
    digests.safetensors    of each structure
        keys        (n,) the first eight bytes of its digest as a number, sorted
        places      (n,) its index in the store

A store that grows has a journal instead, with a line for each complete shard.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from structpe.encodings.columns import Column, halves
from structpe.errors import StoreError, undamaged
from structpe.system.files import MARK, append_line, sealed, sha256_of, unsealed

__all__ = [
    "DIGESTS",
    "DTYPES",
    "INDEX",
    "JOURNAL",
    "SHARDS",
    "Digests",
    "Entry",
    "Journal",
    "Shard",
    "Shards",
    "file_of",
    "mapped",
    "mark",
    "named",
    "ours",
    "pack",
    "read",
    "write",
]

DTYPES = {
    **{"BOOL": "bool", "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64"},
    **{"I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64", "F16": "float16", "F32": "float32"},
    "F64": "float64",
}
"""The dtypes of a shard, by their name in safetensors files."""

Array = NDArray[Any]

_PARTS = ("sizes", "values", "index", "starts", "rows", "row_starts", "listed")
_HEADER = 100_000_000  # bytes, the limit of safetensors itself


def pack(columns: Sequence[Column]) -> dict[str, Array]:
    """The tensors of a shard, from a column per encoding.

    Raises:
        StoreError: values have a dtype that the format lacks.
    """
    tensors: dict[str, Array] = {}
    for i, column in enumerate(map(_halved, columns)):
        for part in _PARTS:
            if (array := getattr(column, part)) is not None:
                if array.dtype.name not in DTYPES.values():
                    raise StoreError(f"a store holds arrays of {', '.join(DTYPES.values())}; one is of {array.dtype}")
                tensors[f"{i}.{part}"] = np.ascontiguousarray(array)
    return tensors


def _halved(column: Column) -> Column:
    if column.index is None or column.listed is not None:
        return column
    index, starts = halves(column.index, column.starts, column.sizes)
    return replace(column, index=index, starts=starts)


def named(names: Sequence[str], digests: Array) -> dict[str, Array]:
    """The tensors of a shard that identify its structures.

    Args:
        names: of the structures.
        digests: (n, 16) of the structures.
    """
    texts = [name.encode("utf-8", "surrogatepass") for name in names]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return {"digests": digests, "names": np.frombuffer(b"".join(texts), dtype=np.uint8), "name_ends": ends}


def mapped(path: Path) -> dict[str, Array]:
    """The arrays of a safetensors file, by name. Only the parts that are read come into memory.

    Raises:
        ValueError: the file is not one.
    """
    # Copy on write: PyTorch warns of arrays that cannot be written to. A write stays in this process.
    whole = np.memmap(path, dtype=np.uint8, mode="c")
    length = int(whole[:8].view("<u8")[0])
    if not 0 < length <= min(_HEADER, len(whole) - 8):
        raise ValueError(f"{path} begins with a header of {length} bytes and has {len(whole)}")
    header = json.loads(whole[8 : 8 + length].tobytes())
    data = whole[8 + length :].view(np.ndarray)
    return {name: _array(data, entry) for name, entry in header.items() if name != "__metadata__"}


class Shard:
    """A shard on disk.

    Args:
        path: the file.

    Raises:
        ValueError: the file is not a shard.
    """

    def __init__(self, path: Path) -> None:
        self._arrays = mapped(path)
        self.digests: Array = self._arrays["digests"]

    def column(self, encoding: int) -> Column:
        """The column of an encoding, by number."""
        parts: dict[str, Any] = {part: self._arrays.get(f"{encoding}.{part}") for part in _PARTS}
        return Column(**parts)

    def name(self, row: int) -> str:
        """The name of a structure."""
        ends = self._arrays["name_ends"]
        text = self._arrays["names"][int(ends[row - 1]) if row else 0 : int(ends[row])]
        return text.tobytes().decode("utf-8", "surrogatepass")


def _array(data: Array, entry: dict[str, Any]) -> Array:
    first, last = entry["data_offsets"]
    return data[first:last].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])


INDEX, SHARDS, DIGESTS, JOURNAL = "index.json", "shards.safetensors", "digests.safetensors", "journal"


def file_of(number: int) -> str:
    """The file of a shard."""
    return f"{number:05}.safetensors"


@dataclass(frozen=True)
class Entry:
    """A complete shard.

    Attributes:
        file: its name.
        structures: how many it holds.
        bytes: its size.
        sha256: its checksum.
        content: a digest of its structures and their names.
    """

    file: str
    structures: int
    bytes: int
    sha256: str
    content: str


def ours(growing: Path) -> bool:
    """Whether there is an unfinished store, an empty folder, or nothing; anything else must be left as it is."""
    if growing.is_symlink() or (growing.exists() and not growing.is_dir()):
        return False
    names = os.listdir(growing) if growing.exists() else []
    return not names or MARK in names or bool(_before(growing))  # the mark goes when the index is complete


def mark(growing: Path) -> None:
    """Make the folder of an unfinished store, with the mark by which it is known."""
    growing.mkdir(exist_ok=True)
    (growing / MARK).touch()


class Journal:
    """The complete shards of an unfinished store: one line each, so an entry costs the same however many there are.

    Args:
        folder: of the unfinished store.
        head: format, library and encodings; shards with another head are not reused.
    """

    def __init__(self, folder: Path, head: dict[str, Any]) -> None:
        self._folder, self._head, self._file = folder, head, folder / JOURNAL
        before = _before(folder)
        self._mine = {name: before.get(name) for name in head} == json.loads(json.dumps(head))
        entries = (*_finished(folder, before), *_lines(self._file)) if self._mine else ()
        self.left = {entry.file: entry for entry in entries}

    def add(self, entry: Entry) -> None:
        """Enter a complete shard, unless an interrupted run has entered it already."""
        if not self._mine:
            self._file.unlink(missing_ok=True)
            write_index(self._folder, self._head)
            self._mine = True
        if self.left.get(entry.file) != entry:
            append_line(self._file, sealed({"shard": asdict(entry)}))

    def close(self) -> None:
        """Remove the journal and the mark of a finished store."""
        for file in (self._file, self._folder / MARK):
            file.unlink(missing_ok=True)


def _before(folder: Path) -> dict[str, Any]:
    """The index of an interrupted run."""
    try:
        return unsealed((folder / INDEX).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}


def _finished(folder: Path, index: dict[str, Any]) -> list[Entry]:
    """The shards of a run that was interrupted between the complete index and the rename."""
    if "tables" not in index:
        return []
    try:
        shards = Shards(folder, index)
    except StoreError:
        return []
    return [shards.entry(number) for number in range(len(shards))]


def _lines(file: Path) -> Iterable[Entry]:
    if not file.exists():
        return
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entry = Entry(**unsealed(line)["shard"])
        except (ValueError, TypeError, KeyError):  # the process was killed while it wrote the line
            continue
        yield entry


def write(folder: Path, head: dict[str, Any], entries: Sequence[Entry]) -> None:
    """Write the index of a complete store, whose shards are in the folder."""
    numbers = {name: np.array([getattr(e, name) for e in entries], dtype=np.int64) for name in ("structures", "bytes")}
    sums = {
        name: np.frombuffer(b"".join(bytes.fromhex(getattr(e, name)) for e in entries), dtype=np.uint8).reshape(-1, 32)
        for name in ("sha256", "content")
    }
    ends = np.cumsum(numbers["structures"])
    save_file({"ends": ends, "bytes": numbers["bytes"], **sums}, folder / SHARDS)
    keys = np.empty(int(ends[-1]), dtype=np.uint64)
    for entry, end in zip(entries, ends.tolist(), strict=True):
        keys[end - entry.structures : end] = _keys(Shard(folder / entry.file).digests)
    places = np.argsort(keys, kind="stable")
    narrow = places.astype(np.min_scalar_type(len(places)), copy=False)
    save_file({"keys": keys[places], "places": narrow}, folder / DIGESTS)
    sums_of_tables = {name: sha256_of(folder / name) for name in (SHARDS, DIGESTS)}
    write_index(folder, {**head, "structures": int(ends[-1]), "shards": len(entries), "tables": sums_of_tables})


def write_index(folder: Path, index: dict[str, Any]) -> None:
    """Replace the index by another."""
    folder.mkdir(exist_ok=True)
    (folder / f"{INDEX}.new").write_text(sealed(index), encoding="utf-8")
    os.replace(folder / f"{INDEX}.new", folder / INDEX)


def read(folder: Path, form: int, library: str) -> dict[str, Any]:
    """The index of a complete store.

    Raises:
        StoreError: it is damaged, or of another format or library.
    """
    with undamaged(folder / INDEX, "encode again"):
        text = (folder / INDEX).read_text(encoding="utf-8")
        if (found := json.loads(text).get("format")) != form:
            raise StoreError(f"{folder} has format {found}, this library reads {form}; remove it, and encode again")
        index = unsealed(text)
        if index["library"] != library:
            wrong = f"{folder} was encoded by structpe {index['library']}, and this is structpe {library}"
            raise StoreError(f"{wrong}, whose numbers may differ; remove it, and encode again")
        return {key: index[key] for key in ("encodings", "structures", "shards", "tables")}


class Shards:
    """The end, the size and the checksums of each shard of a store.

    Args:
        folder: of the store.
        index: of the store.

    Raises:
        StoreError: the table is damaged or does not fit the index.
    """

    def __init__(self, folder: Path, index: dict[str, Any]) -> None:
        _check(folder / SHARDS, index)
        with undamaged(folder / INDEX, "encode again"):  # the table is whole, so the index is not
            table = mapped(folder / SHARDS)
            self.ends, self._bytes = table["ends"], table["bytes"]
            self._sums = {name: table[name] for name in ("sha256", "content")}
            counts = np.diff(self.ends, prepend=0)
            if len(counts) != index["shards"] or not len(counts) or counts.min() < 1:
                raise ValueError(f"the table tells of {len(counts)} shards, and the index of {index['shards']}")
            if self.ends[-1] != index["structures"]:
                raise ValueError(f"the table has {self.ends[-1]} structures, and the index {index['structures']}")

    def __len__(self) -> int:
        return len(self.ends)

    def entry(self, number: int) -> Entry:
        """The entry of a shard."""
        count = int(self.ends[number]) - (int(self.ends[number - 1]) if number else 0)
        sums = {name: each[number].tobytes().hex() for name, each in self._sums.items()}
        return Entry(file_of(number), count, int(self._bytes[number]), **sums)

    def of(self, item: int) -> tuple[int, int]:
        """The shard of a structure, and its row in that."""
        which = int(np.searchsorted(self.ends, item, side="right"))
        return which, item - (int(self.ends[which - 1]) if which else 0)

    def check_sizes(self, folder: Path) -> None:
        """Raise an error unless all shards exist with their sizes."""
        with os.scandir(folder) as files:
            found = {each.name: each.stat().st_size for each in files}
        for number, size in enumerate(self._bytes.tolist()):
            if found.get(file_of(number)) != size:
                raise StoreError(f"{folder} is incomplete: {file_of(number)} is missing or cut off; encode again")


class Digests:
    """The structures with a digest, by binary search in a mapped table.

    Args:
        folder: of the store.
        index: of the store.

    Raises:
        StoreError: the table is missing or damaged.
    """

    def __init__(self, folder: Path, index: dict[str, Any]) -> None:
        self._file, self._index = folder / DIGESTS, index
        _check_there(self._file)
        with undamaged(self._file, "encode again"):
            table = mapped(self._file)
            self._keys, self._places = table["keys"], table["places"]
        self._checked = False

    def candidates(self, digest: Array) -> list[int]:
        """The structures whose digest begins as this one, of 16 bytes."""
        key = _keys(digest[None])[0]
        first, last = (int(np.searchsorted(self._keys, key, side)) for side in ("left", "right"))
        return sorted(self._places[first:last].tolist())

    def check(self) -> None:
        """Compare the table with its checksum, once. A match can be checked in its shard; only a miss needs this.

        Raises:
            StoreError: it has been changed.
        """
        if not self._checked:
            _check(self._file, self._index)
            self._checked = True


def _keys(digests: Array) -> Array:
    """(n,) the first eight bytes of each digest as a number."""
    keys: Array = np.ascontiguousarray(digests[:, :8]).view("<u8")[:, 0]
    return keys


def _check_there(file: Path) -> None:
    if not file.is_file():
        raise StoreError(f"{file.parent} is incomplete: {file.name} is missing; encode again")


def _check(file: Path, index: dict[str, Any]) -> None:
    _check_there(file)
    if sha256_of(file) != index["tables"][file.name]:
        raise StoreError(f"{file} has been changed since it was written; encode again")

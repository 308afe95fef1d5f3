"""Encoded structures on disk: computed once, read on demand.

::

    FOLDER/index.json             format, library version; encodings with options and versions; numbers of structures
                                  and shards, checksums of the two tables, and a checksum of all this
    FOLDER/shards.safetensors     where each shard ends, its size and checksum
    FOLDER/digests.safetensors    the structure of each digest
    FOLDER/00000.safetensors      about a thousand structures; see :mod:`structpe.data.store_index`

All but the first are mapped, so the memory of a process does not grow with the number of structures. A store is
written to FOLDER.tmp by one process at a time, and renamed when it is complete and on the disk. A new run reuses the
shards of an interrupted one if they are undamaged and structures, encodings and library are the same.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np

from structpe import __version__
from structpe.data import store_index as store_index_module
from structpe.data.chunks import parts
from structpe.data.store_index import INDEX, Digests, Shard, Shards, file_of
from structpe.data.store_writer import content, digests, fill, holds, write_shard
from structpe.encodings.base import ENCODINGS, Asked, Column, Encoded, Encoding, as_encodings, check_hashable
from structpe.errors import EncodingError, StoreError, foreign, listed, undamaged
from structpe.structure import Structure
from structpe.system.files import finish, followed, lock, naming, sha256_of

if TYPE_CHECKING:
    from structpe.positions import Positions

__all__ = ["FORMAT", "Names", "Store", "Values", "digests", "fingerprint", "key", "load", "write"]

T = TypeVar("T")

FORMAT = 5
"""Version of the layout. Stores of another version are refused."""

_OPEN = 256  # shards that are mapped at a time


@dataclass(frozen=True)
class _Opened:
    """A mapped shard and the columns of the requested encodings."""

    shard: Shard
    columns: Mapping[Encoding, Column]


class Store:
    """A sequence of encoded structures on disk. ``store[i]`` reads structure i only.

    The checksum of a shard is compared when a process first opens it. Use :func:`load` to create a store object. It can
    be pickled, and shared by the workers of a data loader; each process opens the shards that it reads.

    Args:
        path: its folder.
        index: content of ``index.json``.
        encodings: the requested encodings, each with its number in the store.
    """

    def __init__(self, path: Path, index: dict[str, Any], encodings: dict[Encoding, int]) -> None:
        self.path, self.encodings = path, tuple(encodings)
        self._numbers, self._shards, self._digests = encodings, Shards(path, index), Digests(path, index)
        self._open: OrderedDict[int, _Opened] = OrderedDict()
        self._checked = np.zeros(len(self._shards), dtype=np.bool_)

    def __len__(self) -> int:
        return int(self._shards.ends[-1])

    def __getitem__(self, item: int) -> dict[Encoding, Encoded]:
        shard, row = self._find(item)
        return {encoding: column[row] for encoding, column in shard.columns.items()}

    def __iter__(self) -> Iterator[dict[Encoding, Encoded]]:
        return (self[item] for item in range(len(self)))

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, {len(self)} structures, {list(self.encodings)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return load, (self.path, self.encodings)

    @property
    def names(self) -> Names:
        """The names of the structures."""
        return Names(self)

    def name(self, item: int) -> str:
        """The name of a structure."""
        shard, row = self._find(item)
        return shard.shard.name(row)

    def value(self, item: int, encoding: Encoding | str) -> Encoded:
        """One of the encodings of a structure.

        Raises:
            StoreError: as of :meth:`of`.
        """
        shard, row = self._find(item)
        return shard.columns[self._known(encoding)][row]

    def of(self, encoding: Encoding | str) -> Values:
        """One encoding of all structures.

        Args:
            encoding: it, or its name if the store has one of this name.

        Raises:
            StoreError: the store does not have it, or has several of this name.
        """
        return Values(self, self._known(encoding))

    def _known(self, encoding: Encoding | str) -> Encoding:
        if isinstance(encoding, Encoding) and encoding in self._numbers:
            return encoding
        found = [each for each in self.encodings if each.name == encoding]
        if len(found) != 1:
            what = f"several encodings named {encoding!r}; give one itself" if found else f"no encoding {encoding!r}"
            raise StoreError(f"the store has {what}. It has {list(self.encodings)}").at(self.path)
        return found[0]

    def find(self, structure: Structure) -> int | None:
        """The index of this structure in the store, by everything except its name; the first of several, or None.

        Raises:
            StoreError: the table of digests has been changed.
        """
        digest = digests([structure])[0]
        for item in self._digests.candidates(digest):
            if 0 <= item < len(self):
                shard, row = self._find(item)
                if np.array_equal(shard.shard.digests[row], digest):
                    return item
        self._digests.check()  # a damaged table would hide the structure
        return None

    def positions(self, items: Sequence[int]) -> Positions:
        """The positions of a batch of structures, padded, as :func:`structpe.positions.batch.encode` computes them."""
        from structpe.positions.batch import join  # PyTorch takes two seconds to import, and encoding does not need it

        first, row = self._find(items[0])
        rows = np.asarray(items) - (items[0] - row)  # in the shard of the first
        if items[0] >= 0 and rows.min() >= 0 and rows.max() < len(first.shard.digests):
            return join({encoding: column.chosen(rows) for encoding, column in first.columns.items()})
        found = [self._find(item) for item in items]
        return join({e: [shard.columns[e][row] for shard, row in found] for e in self.encodings})

    def verify(self) -> None:
        """Read every file and compare its checksum.

        Raises:
            StoreError: one has been changed.
        """
        self._digests.check()
        for number in range(len(self._shards)):
            self._check(number)

    def _find(self, item: int) -> tuple[_Opened, int]:
        """The shard of a structure, and its row there; the shards used last stay mapped."""
        if not -len(self) <= item < len(self):
            raise IndexError(f"structure {item} of a store of {len(self)}")
        which, row = self._shards.of(item % len(self))
        if which not in self._open:
            self._open[which] = self._opened(which)
            if len(self._open) > _OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(which)
        return self._open[which], row

    def _opened(self, which: int) -> _Opened:
        file = self.path / file_of(which)
        with undamaged(file, "encode again"):
            if not self._checked[which]:
                self._check(which)
            shard = Shard(file)
            return _Opened(shard, {encoding: shard.column(number) for encoding, number in self._numbers.items()})

    def _check(self, number: int) -> None:
        file = self.path / file_of(number)
        with undamaged(file, "encode again"):
            found = sha256_of(file)
        if found != self._shards.entry(number).sha256:
            raise StoreError(f"{file} has been changed since it was written; encode again")
        self._checked[number] = True


class _Each(Sequence[T], Generic[T]):
    """A value of each structure of a store, read when it is asked for."""

    __slots__ = ("store",)

    def __init__(self, store: Store) -> None:
        self.store = store

    @abstractmethod
    def _read(self, item: int) -> T: ...

    def __len__(self) -> int:
        return len(self.store)

    @overload
    def __getitem__(self, item: int) -> T: ...

    @overload
    def __getitem__(self, item: slice) -> list[T]: ...

    def __getitem__(self, item: int | slice) -> T | list[T]:
        if isinstance(item, slice):
            return [self._read(i) for i in range(*item.indices(len(self)))]
        return self._read(item)


class Values(_Each[Encoded]):
    """One encoding of the structures of a store, each read when it is asked for."""

    __slots__ = ("encoding",)

    def __init__(self, store: Store, encoding: Encoding) -> None:
        super().__init__(store)
        self.encoding = encoding

    def _read(self, item: int) -> Encoded:
        return self.store.value(item, self.encoding)


class Names(_Each[str]):
    """The names of the structures of a store, each read when it is asked for."""

    def _read(self, item: int) -> str:
        return self.store.name(item)


def write(
    path: str | Path,
    structures: Iterable[Structure],
    encodings: Sequence[Asked],
    progress: Callable[[int], object] | None = None,
    say: Callable[[str], object] | None = None,
    executor: Executor | None = None,
) -> Store:
    """Encode structures and write them to a store, with one shard in memory at a time, or a few per worker.

    If another process writes the same store, wait for it. If a store of the same structures, encodings and library
    exists, compare its checksums and open it. If the path is a link, the store is written where it leads.

    Args:
        path: folder of the new store.
        structures: to be stored in this order.
        encodings: in any form; fitted, if they need to be.
        progress: called after each shard with the number of encoded structures.
        say: called with a message if another process is waited for, or if the store exists.
        executor: workers that encode, see :func:`structpe.system.workers.workers`; None encodes in this process. The
            bytes of the store are the same.

    Raises:
        StoreError: the folder exists and is something else, or there is no structure or no encoding.
        FileExistsError: FOLDER.tmp exists and is not an unfinished store; it is left as it is.
        EncodingError: a structure lacks what an encoding needs. Complete shards are kept for the next run.
        OSError: the disk is full, or the folder above cannot be written to.
    """
    path, tell = followed(Path(path)), say or (lambda message: None)
    made = tuple(dict.fromkeys(as_encodings(encodings, "write")))
    if not Path(os.path.abspath(path)).name:
        raise StoreError("this is the root of all folders; give the name of a new folder").at(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        lock(path, lambda: tell(f"another process writes to {path}; waiting for it")) as work,
        naming(path, _growing(path)),
    ):
        if not store_index_module.ours(_growing(path)):
            raise foreign(_growing(path))
        if path.exists():
            store = _same(path, structures, made, tell)
            tell(f"{path} exists already, with the same structures and encodings; nothing is encoded")
            return store
        if not made:
            raise StoreError(f"there is no encoding to store in {path}; give one or more of: {', '.join(ENCODINGS)}")
        head = {"format": FORMAT, "library": __version__, "encodings": _described(made)}
        for each in json.loads(json.dumps(head["encodings"])):
            _rebuilt(path, each)  # what cannot be read again is not written
        fill(_growing(path), head, structures, made, progress or (lambda done: None), executor)
        finish(_growing(path), path, work)
    return load(path)


def load(path: str | Path, encodings: Sequence[Asked] | None = None) -> Store:
    """Open a store.

    Args:
        path: its folder.
        encodings: the encodings to read, in any form; None for all.

    Raises:
        StoreError: there is no complete store, its index is damaged, it has another format, it was written by another
            version of the library or of an encoding, or it lacks an encoding.
    """
    path = Path(path)
    index = _read_index(path)
    with undamaged(path / INDEX, "encode again"):  # its checksum may be right and its content not an index
        stored = {_rebuilt(path, each): number for number, each in enumerate(index["encodings"])}
        asked = tuple(stored) if encodings is None else tuple(dict.fromkeys(as_encodings(encodings, "load")))
        if lacking := [e for e in asked if e not in stored]:
            wrong = f"{path} was not encoded by {listed(map(repr, lacking))}; it was by: {listed(map(repr, stored))}"
            raise StoreError(f"{wrong}; ask for these, or encode again")
        store = Store(path, index, {encoding: stored[encoding] for encoding in asked})
        store._shards.check_sizes(path)
        return store


def fingerprint(structures: Sequence[Structure]) -> str:
    """A digest of a list of structures, from the digests of each."""
    return hashlib.sha256(digests(structures).tobytes()).hexdigest()


def key(content: str, encoding: Encoding) -> str:
    """A key for the encoded values of structures with this :func:`fingerprint`.

    It covers the encoding with its options and version, the version of the library, and the layout of stores.
    """
    whole = [FORMAT, __version__, repr(encoding), encoding.versions(), content]
    return hashlib.sha256(json.dumps(whole).encode()).hexdigest()


def _growing(path: Path) -> Path:
    return Path(f"{os.path.abspath(path)}.tmp")


def _same(
    path: Path, structures: Iterable[Structure], encodings: Sequence[Encoding], tell: Callable[[str], object]
) -> Store:
    """Open the existing store, if it equals the one that would be written. Damaged shards are encoded again.

    Raises:
        StoreError: it differs, its index is damaged, or a damaged shard cannot be made again byte by byte.
    """
    exists = f"{path} exists already; remove it, or choose another folder"
    if not (path / INDEX).is_file():
        raise StoreError(exists)
    try:
        index = _read_index(path)
        shards = Shards(path, index)
    except StoreError as error:
        raise StoreError(f"{exists}: {error}") from None
    if index["encodings"] != json.loads(json.dumps(_described(encodings))):
        stored = ", ".join(repr(_rebuilt(path, each)) for each in index["encodings"])
        raise StoreError(f"{exists}: it is a store of the encodings {stored}")
    seen = 0
    for number, some in enumerate(parts(structures)):
        of_each = digests(some)
        if number >= len(shards) or shards.entry(number).content != content(some, of_each):
            raise StoreError(f"{exists}: it is a store of other structures")
        file, entry, seen = path / file_of(number), shards.entry(number), number + 1
        if not holds(file, entry):
            tell(f"{file} is missing or damaged; it is encoded again")
            if write_shard(file, some, of_each, encodings) != entry:
                raise StoreError(f"{exists}: {file} is damaged, and this machine does not give the same bytes again")
    if seen != len(shards):
        raise StoreError(f"{exists}: it is a store of other structures")
    return load(path)


def _read_index(path: Path) -> dict[str, Any]:
    if not (path / INDEX).is_file():
        if _growing(path).exists():
            wrong = f"there is no store at {path}, only an unfinished one at {_growing(path)}"
            raise StoreError(f"{wrong}; run the same command again, it goes on where it stopped")
        raise StoreError(f"there is no store at {path} (no {INDEX}); give the folder that an encoding run has written")
    return store_index_module.read(path, FORMAT, __version__)


def _described(encodings: Sequence[Encoding]) -> list[dict[str, Any]]:
    return [{"name": e.name, "options": e.options(), "versions": e.versions()} for e in encodings]


def _rebuilt(path: Path, described: dict[str, Any]) -> Encoding:
    try:
        encoding = ENCODINGS[described["name"]](**{k: _tuples(v) for k, v in described["options"].items()})
    except (EncodingError, TypeError) as error:
        wrong = f"{path} has an encoding that this library does not know, {described}"
        raise StoreError(f"{wrong}; import its code (structpe.import_code), or encode again") from error
    check_hashable(encoding)  # its options are of the types of their hints, which may be lists
    if (now := encoding.versions()) != (then := described["versions"]):
        name = next(name for name in {**now, **then} if now.get(name) != then.get(name))
        ours, stored = (str(each.get(name)).partition("+")[0] for each in (now, then))
        wrong = f"{path} was encoded by other code of {name!r}"
        if ours != stored:
            wrong = f"{path} was encoded by version {stored} of the encoding {name!r}, and this library has version "
            wrong += f"{ours}, which gives other numbers"
        raise StoreError(f"{wrong}; remove {path} and encode again, or choose another folder (--out)")
    return encoding


def _tuples(value: Any) -> Any:
    """Lists of JSON as tuples: the options of an encoding are hashable."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value

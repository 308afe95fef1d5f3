"""Encoded structures on disk: computed once, read on demand.

::

    FOLDER/index.json           format, library version; encodings with options and versions; shards with size,
                                checksum and a digest of their structures; names; and a checksum of all this
    FOLDER/00000.safetensors    a thousand structures or so; see :mod:`structpe.data._shard`

A store is written to FOLDER.tmp by one process at a time, and renamed when it is complete and on the disk. A new run
reuses the shards of an interrupted one if they are undamaged and structures, encodings and library are the same.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from structpe import __version__
from structpe.data._shard import Shard, pack
from structpe.data.encode import check_pairs, join
from structpe.data.parts import parts
from structpe.data.workers import in_order
from structpe.encodings.base import ENCODINGS, Column, Encoded, Encoding
from structpe.errors import EncodingError, StoreError, listed, undamaged
from structpe.files import finish, lock, naming, sealed, sha256_of, unsealed
from structpe.positions import Positions
from structpe.structure import Structure

__all__ = ["FORMAT", "Store", "fingerprint", "key", "load", "write"]

FORMAT = 3
"""Version of the layout. Stores of another version are refused."""

_INDEX = "index.json"
_OPEN = 256  # shards that are mapped at a time


class Store:
    """A sequence of encoded structures on disk. ``store[i]`` reads structure i only.

    The checksum of a shard is compared when a process first opens it. Use :func:`load` to create a store object. It can
    be pickled, and shared by the workers of a data loader.

    Args:
        path: its folder.
        index: content of ``index.json``.
        encodings: the requested encodings, each with its number in the store.
    """

    def __init__(self, path: Path, index: dict[str, Any], encodings: dict[Encoding, int]) -> None:
        self.path, self.encodings, self.names = path, tuple(encodings), tuple(index["names"])
        self._numbers, self._files = encodings, [shard["file"] for shard in index["shards"]]
        self._checksums = {shard["file"]: shard["sha256"] for shard in index["shards"]}
        self._ends = np.cumsum([shard["structures"] for shard in index["shards"]])
        self._open: OrderedDict[int, dict[Encoding, Column]] = OrderedDict()

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, item: int) -> dict[Encoding, Encoded]:
        if not -len(self) <= item < len(self):
            raise IndexError(f"structure {item} of a store of {len(self)}")
        item %= len(self)
        which = int(np.searchsorted(self._ends, item, side="right"))
        row = item - int(self._ends[which - 1]) if which else item
        return {encoding: column[row] for encoding, column in self._columns(which).items()}

    def _columns(self, which: int) -> dict[Encoding, Column]:
        """The columns of a shard; the shards used last stay open."""
        if which not in self._open:
            file = self.path / self._files[which]
            with undamaged(file, "encode again"):
                self._check(file)
                shard = Shard(file)
                self._open[which] = {encoding: shard.column(number) for encoding, number in self._numbers.items()}
            if len(self._open) > _OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(which)
        return self._open[which]

    def __iter__(self) -> Iterator[dict[Encoding, Encoded]]:
        return (self[item] for item in range(len(self)))

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, {len(self)} structures, {list(self.encodings)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return load, (self.path, self.encodings)

    def positions(self, items: Sequence[int]) -> Positions:
        """The positions of a batch of structures, padded, as :func:`structpe.data.encode.encode` computes them."""
        rows = [self[item] for item in items]
        return join({encoding: [row[encoding] for row in rows] for encoding in self.encodings})

    def verify(self) -> None:
        """Read every shard and compare its checksum.

        Raises:
            StoreError: one has been changed.
        """
        for file in self._checksums:
            self._check(self.path / file)

    def _check(self, file: Path) -> None:
        if sha256_of(file) != self._checksums[file.name]:
            raise StoreError(f"{file} has been changed since it was written; encode again")


def write(
    path: str | Path,
    structures: Iterable[Structure],
    encodings: Sequence[Encoding],
    progress: Callable[[int], object] | None = None,
    say: Callable[[str], object] | None = None,
    executor: Executor | None = None,
) -> Store:
    """Encode structures and write them to a store, with one shard in memory at a time, or a few per worker.

    If another process writes the same store, wait for it. If a store of the same structures, encodings and library
    exists, compare its checksums and open it.

    Args:
        path: folder of the new store.
        structures: to be stored in this order.
        encodings: fitted, if they need to be.
        progress: called after each shard with the number of encoded structures.
        say: called with a message if another process is waited for, or if the store exists.
        executor: workers that encode, see :func:`structpe.data.workers.workers`; None encodes in this process. The
            bytes of the store are the same.

    Raises:
        StoreError: the folder exists and is something else, or there is no structure or no encoding.
        EncodingError: a structure lacks what an encoding needs. Complete shards are kept for the next run.
        OSError: the disk is full, or the folder above cannot be written to.
    """
    path, encodings, tell = Path(path), tuple(dict.fromkeys(encodings)), say or _ignore
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        lock(path, lambda: tell(f"another process writes to {path}; waiting for it")) as work,
        naming(path, _growing(path)),
    ):
        if path.exists():
            store = _same(path, structures, encodings, tell)
            tell(f"{path} is there already, of the same structures and encodings; nothing is encoded")
            return store
        if not encodings:
            raise StoreError(f"there is no encoding to store in {path}; give one or more of: {', '.join(ENCODINGS)}")
        _encode(path, structures, encodings, progress or _ignore, executor)
        finish(_growing(path), path, work)
    return load(path)


def load(path: str | Path, encodings: Sequence[Encoding] | None = None) -> Store:
    """Open a store.

    Args:
        path: its folder.
        encodings: the encodings to read; None for all.

    Raises:
        StoreError: there is no complete store, its index is damaged, it has another format, it was written by another
            version of the library or of an encoding, or it lacks an encoding.
    """
    path = Path(path)
    index = _read_index(path)
    with undamaged(path / _INDEX, "encode again"):  # its checksum may be right and its content not an index
        _check_shards(path, index)
        stored = {_rebuilt(path, each): number for number, each in enumerate(index["encodings"])}
        asked = tuple(stored) if encodings is None else tuple(dict.fromkeys(encodings))
        if lacking := [e for e in asked if e not in stored]:
            raise StoreError(
                f"{path} was not encoded by {listed(map(repr, lacking))}; it was by: {listed(map(repr, stored))}; "
                "ask for these, or encode again"
            )
        return Store(path, index, {encoding: stored[encoding] for encoding in asked})


def fingerprint(structures: Sequence[Structure]) -> str:
    """A digest of structures: of everything that encodings may read, which is all but their names."""
    digest = hashlib.sha256()
    for s in structures:
        features = {f"feature {key}": value for key, value in sorted(s.features.items())}
        arrays = {"edges": s.edges, "order": s.order, "owner": s.owner} | features
        present = {k: np.asarray(v) for k, v in arrays.items() if v is not None}
        shapes = [(k, v.dtype.str, v.shape) for k, v in present.items()]
        digest.update(json.dumps([s.nodes, s.relations, s.directed, s.root, s.units, shapes]).encode())
        for array in present.values():
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def key(content: str, encoding: Encoding) -> str:
    """A key for the encoded values of structures with this :func:`fingerprint`.

    It covers the encoding with its options, its version, that of the library, and the layout of stores.
    """
    whole = [FORMAT, __version__, repr(encoding), encoding.versions(), content]
    return hashlib.sha256(json.dumps(whole).encode()).hexdigest()


def _growing(path: Path) -> Path:
    return Path(f"{os.path.abspath(path)}.tmp")


def _encode(
    path: Path,
    structures: Iterable[Structure],
    encodings: Sequence[Encoding],
    progress: Callable[[int], object],
    executor: Executor | None,
) -> None:
    """Fill the hidden folder. Its index lists the complete shards, so an interrupted run can be resumed."""
    growing, names, shards = _growing(path), [], []
    index: dict[str, Any] = {"format": FORMAT, "library": __version__, "encodings": _described(encodings)}
    before = _left(growing, index)
    files = (growing / f"{number:05}.safetensors" for number in count())
    pairs = zip(files, parts(structures), strict=False)
    tasks = ((file, some, encodings, before.get(file.name)) for file, some in pairs)
    for entry, some_names in in_order(_shard, tasks, executor):
        shards.append(entry)
        names += some_names
        _write_index(growing, {**index, "shards": shards})
        progress(len(names))
    if not names:
        raise StoreError(f"there is no structure to store in {path}")
    _write_index(growing, {**index, "shards": shards, "names": names})
    for name in {file.name for file in growing.iterdir()} - {_INDEX, *(shard["file"] for shard in shards)}:
        (growing / name).unlink()  # of an interrupted run, with more structures perhaps


def _left(growing: Path, index: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The shards of an interrupted run by file, if its index matches."""
    try:
        left = unsealed((growing / _INDEX).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    same = {key: left.get(key) for key in index} == json.loads(json.dumps(index))
    return {shard["file"]: shard for shard in left["shards"]} if same else {}


def _holds(file: Path, content: str, entry: dict[str, Any]) -> bool:
    """Whether a file is an undamaged shard with this content."""
    return bool(entry["content"] == content and file.is_file() and entry["sha256"] == sha256_of(file))


def _shard(
    file: Path, structures: Sequence[Structure], encodings: Sequence[Encoding], before: dict[str, Any] | None
) -> tuple[dict[str, Any], list[str]]:
    """Write a shard, unless an interrupted run has left it; its entry of the index, and names of the structures."""
    content = fingerprint(structures)
    if before is None or not _holds(file, content, before):
        file.parent.mkdir(exist_ok=True)
        before = _write_shard(file, content, structures, encodings)
    return before, [s.name for s in structures]


def _write_shard(
    file: Path, content: str, structures: Sequence[Structure], encodings: Sequence[Encoding]
) -> dict[str, Any]:
    check_pairs(structures, encodings)
    tensors = pack([encoding.many(structures) for encoding in encodings])
    hidden = file.with_name(f"{file.name}.{os.getpid()}")  # a cluster may give one shard to two workers
    save_file(tensors, hidden)
    os.replace(hidden, file)
    size = {"structures": len(structures), "bytes": file.stat().st_size}
    return {"file": file.name, **size, "sha256": sha256_of(file), "content": content}


def _write_index(folder: Path, index: dict[str, Any]) -> None:
    (folder / f"{_INDEX}.new").write_text(sealed(index), encoding="utf-8")
    os.replace(folder / f"{_INDEX}.new", folder / _INDEX)


def _same(
    path: Path, structures: Iterable[Structure], encodings: Sequence[Encoding], tell: Callable[[str], object]
) -> Store:
    """Open the existing store, if it equals the one that would be written. Damaged shards are encoded again.

    Raises:
        StoreError: it differs, its index is damaged, or a damaged shard cannot be made again byte by byte.
    """
    exists = f"{path} exists already; remove it, or choose another folder"
    if not (path / _INDEX).is_file():
        raise StoreError(exists)
    try:
        index = _read_index(path)
    except StoreError as error:
        raise StoreError(f"{exists}: {error}") from None
    if index["encodings"] != json.loads(json.dumps(_described(encodings))):
        stored = ", ".join(repr(_rebuilt(path, each)) for each in index["encodings"])
        raise StoreError(f"{exists}: it is a store of the encodings {stored}")
    names: list[str] = []
    entries = {entry["file"]: entry for entry in index["shards"]}
    for number, some in enumerate(parts(structures)):
        file = path / f"{number:05}.safetensors"
        entry = entries.pop(file.name, None)
        if entry is None or entry["content"] != fingerprint(some):
            raise StoreError(f"{exists}: it is a store of other structures")
        if not _holds(file, entry["content"], entry):
            tell(f"{file} is missing or damaged; it is encoded again")
            if _write_shard(file, entry["content"], some, encodings) != entry:
                raise StoreError(f"{exists}: {file} is damaged, and this machine does not give the same bytes again")
        names += [s.name for s in some]
    if entries or names != index["names"]:
        raise StoreError(f"{exists}: it is a store of other structures")
    return load(path)


def _read_index(path: Path) -> dict[str, Any]:
    if not (path / _INDEX).is_file():
        unfinished = _growing(path).exists()
        raise StoreError(
            f"there is no store at {path}"
            + (
                f", only an unfinished one at {_growing(path)}; run the same command again, it goes on where it stopped"
                if unfinished
                else f" (no {_INDEX}); give the folder that an encoding run has written"
            )
        )
    with undamaged(path / _INDEX, "encode again"):
        text = (path / _INDEX).read_text(encoding="utf-8")
        if (found := json.loads(text).get("format")) != FORMAT:
            raise StoreError(f"{path} has format {found}, this library reads {FORMAT}; encode again")
        index = unsealed(text)
        if index["library"] != __version__:
            raise StoreError(
                f"{path} was encoded by structpe {index['library']}, and this is structpe {__version__}, whose numbers "
                "may differ; encode again"
            )
        return {key: index[key] for key in ("encodings", "shards", "names")}


def _check_shards(path: Path, index: dict[str, Any]) -> None:
    """Raise an error unless all shards exist and hold as many structures as there are names."""
    for shard in index["shards"]:
        file = path / shard["file"]
        if file.parent != path or type(shard["structures"]) is not int or shard["structures"] < 1:
            raise ValueError(f"{shard!r} is no shard")
        if not file.is_file() or file.stat().st_size != shard["bytes"]:
            raise StoreError(f"{path} is incomplete: {shard['file']} is missing or cut off; encode again")
    if sum(shard["structures"] for shard in index["shards"]) != len(index["names"]):
        raise ValueError("its shards do not have as many structures as it has names")


def _described(encodings: Sequence[Encoding]) -> list[dict[str, Any]]:
    return [{"name": e.name, "options": e.options(), "versions": e.versions()} for e in encodings]


def _rebuilt(path: Path, described: dict[str, Any]) -> Encoding:
    try:
        encoding = ENCODINGS[described["name"]](**{k: _tuples(v) for k, v in described["options"].items()})
    except (EncodingError, TypeError) as error:
        raise StoreError(
            f"{path} has an encoding that this library does not know, {described}; encode again"
        ) from error
    if (now := encoding.versions()) != (then := described["versions"]):
        name = next(name for name in {**now, **then} if now.get(name) != then.get(name))
        raise StoreError(
            f"{path} was encoded by version {then.get(name)} of the encoding {name!r}, and this library has version "
            f"{now.get(name)}, which gives other numbers; encode again"
        )
    return encoding


def _tuples(value: Any) -> Any:
    """Lists of JSON as tuples: the options of an encoding are hashable."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _ignore(message: object) -> None:
    """Ignore a message."""

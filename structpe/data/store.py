"""Encoded structures on disk: computed once, read where and as often as they are needed.

::

    FOLDER/index.json           format, library version, encodings with options, shards with size and checksum, names
    FOLDER/00000.safetensors    a thousand structures or so; see :mod:`structpe.data._shard`

A store is written under another name, FOLDER.tmp, and gets its own when it is complete. What an interrupted run has
left there is taken over, shard by shard, as far as structures, encodings and library are still the same.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file

from structpe import __version__
from structpe.data._shard import Shard, pack
from structpe.data.encode import check_pairs, join
from structpe.encodings.base import ENCODINGS, Encoded, Encoding
from structpe.errors import EncodingError, StoreError, listed, undamaged
from structpe.positions.base import Positions
from structpe.structure import Structure

__all__ = ["FORMAT", "Store", "fingerprint", "load", "write"]

FORMAT = 1
"""Version of the layout; a store of another one is refused."""

_INDEX = "index.json"
_STRUCTURES = 1000  # of one shard,
_PAIRS = 1 << 24  # or fewer, where they have this many pairs of units: what bounds the memory


class Store:
    """A sequence of encoded structures on disk: ``store[i]`` reads the i-th, and nothing else.

    Made by :func:`load`. It can be pickled, and shared by the workers of a data loader.

    Args:
        path: its folder.
        index: what ``index.json`` says.
        encodings: those asked for, each with its number in the store.
    """

    def __init__(self, path: Path, index: dict[str, Any], encodings: dict[Encoding, int]) -> None:
        self.path, self.encodings, self.names = path, tuple(encodings), tuple(index["names"])
        self._numbers, self._files = encodings, [shard["file"] for shard in index["shards"]]
        self._checksums = {shard["file"]: shard["sha256"] for shard in index["shards"]}
        self._ends = np.cumsum([shard["structures"] for shard in index["shards"]])
        self._open: dict[int, Shard] = {}

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, item: int) -> dict[Encoding, Encoded]:
        if not -len(self) <= item < len(self):
            raise IndexError(f"structure {item} of a store of {len(self)}")
        item %= len(self)
        which = int(np.searchsorted(self._ends, item, side="right"))
        if which not in self._open:
            file = self.path / self._files[which]
            with undamaged(file, "encode again"):
                self._open[which] = Shard(file)
        row = item - int(self._ends[which - 1]) if which else item
        return {encoding: self._open[which].encoded(number, row) for encoding, number in self._numbers.items()}

    def __iter__(self) -> Iterator[dict[Encoding, Encoded]]:
        return (self[item] for item in range(len(self)))

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, {len(self)} structures, {list(self.encodings)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return load, (self.path, self.encodings)

    def positions(self, items: Sequence[int]) -> Positions:
        """The positions of a batch of structures, padded; what :func:`structpe.data.encode.encode` gives for them."""
        rows = [self[item] for item in items]
        return join({encoding: [row[encoding] for row in rows] for encoding in self.encodings})

    def verify(self) -> None:
        """Read every shard and compare its checksum.

        Raises:
            StoreError: one has been changed.
        """
        for file, checksum in self._checksums.items():
            if _checksum(self.path / file) != checksum:
                raise StoreError(f"{self.path / file} has been changed since it was written; encode again")


def write(
    path: str | Path,
    structures: Iterable[Structure],
    encodings: Sequence[Encoding],
    progress: Callable[[int], object] | None = None,
) -> Store:
    """Encode structures and store what comes out; at any time only one shard is in memory.

    Args:
        path: folder of the new store; it must not exist.
        structures: in this order they will be found again.
        encodings: already fitted, where they must be.
        progress: called after each shard with the number of structures that are done.

    Raises:
        StoreError: the folder exists, there is no structure or no encoding.
        EncodingError: a structure lacks what an encoding needs. What was done before stays for the next run.
    """
    path, encodings = Path(path), tuple(dict.fromkeys(encodings))
    if path.exists():
        raise StoreError(f"{path} exists already; remove it, or choose another folder")
    if not encodings:
        raise StoreError(f"there is no encoding to store in {path}; give one or more of: {', '.join(ENCODINGS)}")
    names: list[str] = []
    shards: list[dict[str, Any]] = []
    for number, some in enumerate(_shards(structures)):
        shards.append(_write_shard(_growing(path) / f"{number:05}.safetensors", some, encodings))
        names += [s.name for s in some]
        if progress is not None:
            progress(len(names))
    if not names:
        raise StoreError(f"there is no structure to store in {path}")
    _finish(path, {"encodings": _described(encodings), "shards": shards, "names": names})
    return load(path)


def load(path: str | Path, encodings: Sequence[Encoding] | None = None) -> Store:
    """Open a store.

    Args:
        path: its folder.
        encodings: those needed; None means all that it has.

    Raises:
        StoreError: there is no complete store, it has another format, or lacks an encoding.
    """
    path = Path(path)
    index = _read_index(path)
    for shard in index["shards"]:
        file = path / shard["file"]
        if not file.is_file() or file.stat().st_size != shard["bytes"]:
            raise StoreError(f"{path} is incomplete: {shard['file']} is missing or cut off; encode again")
    stored = {_rebuilt(path, each): number for number, each in enumerate(index["encodings"])}
    asked = tuple(stored) if encodings is None else tuple(dict.fromkeys(encodings))
    if lacking := [e for e in asked if e not in stored]:
        raise StoreError(
            f"{path} was not encoded by {listed(map(repr, lacking))}; it was by: {listed(map(repr, stored))}; "
            "ask for these, or encode again"
        )
    return Store(path, index, {encoding: stored[encoding] for encoding in asked})


def fingerprint(structures: Sequence[Structure]) -> str:
    """Tells apart lists of structures: a digest of all that encodings may look at, which is all but their names."""
    digest = hashlib.sha256()
    for s in structures:
        arrays = {"edges": s.edges, "order": s.order, "owner": s.owner} | dict(sorted(s.features.items()))
        present = {k: np.asarray(v) for k, v in arrays.items() if v is not None}
        shapes = [(k, v.dtype.str, v.shape) for k, v in present.items()]
        digest.update(json.dumps([s.nodes, s.relations, s.directed, s.root, s.units, shapes]).encode())
        for array in present.values():
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _growing(path: Path) -> Path:
    return path.with_name(path.name + ".tmp")


def _shards(structures: Iterable[Structure]) -> Iterator[list[Structure]]:
    some: list[Structure] = []
    pairs = 0
    for structure in structures:
        some.append(structure)
        pairs += structure.unit_count**2
        if len(some) == _STRUCTURES or pairs >= _PAIRS:
            yield some
            some, pairs = [], 0
    if some:
        yield some


def _write_shard(file: Path, structures: Sequence[Structure], encodings: Sequence[Encoding]) -> dict[str, Any]:
    whole = [FORMAT, __version__, _described(encodings), fingerprint(structures)]
    # One entry: safetensors writes several in any order, and the same run shall give the same bytes.
    made_from = {"made_from": json.dumps(whole)}
    if not _holds(file, made_from):
        check_pairs(structures, encodings)
        file.parent.mkdir(parents=True, exist_ok=True)
        half = file.with_suffix(".half")
        save_file(pack([encoding.many(structures) for encoding in encodings]), half, metadata=made_from)
        os.replace(half, file)
    size = file.stat().st_size
    return {"file": file.name, "structures": len(structures), "bytes": size, "sha256": _checksum(file)}


def _holds(file: Path, made_from: dict[str, str]) -> bool:
    """Whether an interrupted run has left this very shard."""
    try:
        return file.exists() and dict(Shard(file).metadata) == made_from
    except SafetensorError:
        return False


def _finish(path: Path, index: dict[str, Any]) -> None:
    growing = _growing(path)
    own = {shard["file"] for shard in index["shards"]}
    for file in growing.iterdir():
        if file.name not in own:  # of an interrupted run with more structures
            file.unlink()
    (growing / _INDEX).write_text(json.dumps({"format": FORMAT, "library": __version__, **index}), encoding="utf-8")
    os.rename(growing, path)


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
        index: dict[str, Any] = json.loads((path / _INDEX).read_text(encoding="utf-8"))
        if index.get("format") != FORMAT:
            raise StoreError(f"{path} has format {index.get('format')}, this library reads {FORMAT}; encode again")
        return {key: index[key] for key in ("encodings", "shards", "names")}


def _described(encodings: Sequence[Encoding]) -> list[dict[str, Any]]:
    return [{"name": e.name, "options": e.options()} for e in encodings]


def _rebuilt(path: Path, described: dict[str, Any]) -> Encoding:
    try:
        return ENCODINGS[described["name"]](**{k: _tuples(v) for k, v in described["options"].items()})
    except (EncodingError, TypeError) as error:
        raise StoreError(
            f"{path} has an encoding that this library does not know, {described}; encode again"
        ) from error


def _tuples(value: Any) -> Any:
    """JSON has lists only; the options of an encoding are hashable, so they were tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _checksum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

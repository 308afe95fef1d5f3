"""Fill a store: the worker that encodes a shard writes it, and one process enters it in the journal."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from structpe.data import store_index as store_index_module
from structpe.data.chunks import parts
from structpe.data.store_index import INDEX, JOURNAL, Entry, Journal, file_of, mark, named, pack
from structpe.encodings.base import Encoding, check_pairs
from structpe.encodings.graphs import concatenated_once
from structpe.errors import StoreError
from structpe.structure import Structure
from structpe.system.files import MARK, sha256_of
from structpe.system.workers import in_order

__all__ = ["content", "digests", "fill", "holds", "write_shard"]


def fill(
    growing: Path,
    head: dict[str, Any],
    structures: Iterable[Structure],
    encodings: Sequence[Encoding],
    progress: Callable[[int], object],
    executor: Executor | None,
) -> None:
    """Fill a folder. Its journal tells of the complete shards, so an interrupted run can be resumed.

    Args:
        growing: the folder, maybe of an interrupted run.
        head: the entries of its index besides the numbers of structures and shards.
        structures: in their order.
        encodings: fitted.
        progress: called after each shard with the number of encoded structures.
        executor: workers that encode; None encodes in this process.

    Raises:
        StoreError: there is no structure.
        EncodingError: a structure lacks what an encoding needs.
    """
    journal, entries, done = Journal(growing, head), list[Entry](), 0
    versions = [encoding.versions() for encoding in encodings]

    def tasks() -> Iterator[tuple[Any, ...]]:
        for number, some in enumerate(parts(structures)):
            if not number:
                mark(growing)
            file = growing / file_of(number)
            yield file, some, encodings, versions, journal.left.get(file.name)

    for entry in in_order(_shard, tasks(), executor):
        entries.append(entry)
        journal.add(entry)
        done += entry.structures
        progress(done)
    if not entries:
        raise StoreError(f"there is no structure to store in {growing.with_suffix('')}")
    kept = {MARK, INDEX, JOURNAL, *(entry.file for entry in entries)}
    for name in {file.name for file in growing.iterdir()} - kept:
        (growing / name).unlink()  # of an interrupted run, which may have had more structures
    store_index_module.write(growing, head, entries)
    journal.close()


def _shard(
    file: Path,
    structures: Sequence[Structure],
    encodings: Sequence[Encoding],
    versions: Sequence[dict[str, int | str]],
    before: Entry | None,
) -> Entry:
    """Write a shard, unless an interrupted run has left it.

    Raises:
        StoreError: the worker has imported other code of an encoding, as that of a cluster may have before an edit.
    """
    for encoding, version in zip(encodings, versions, strict=True):
        if encoding.versions() != version:
            raise StoreError(f"a worker has other code of {encoding.name!r}; start the workers again, and encode again")
    of_each = digests(structures)
    if before is not None and before.content == content(structures, of_each) and holds(file, before):
        return before
    return write_shard(file, structures, of_each, encodings)


def holds(file: Path, entry: Entry) -> bool:
    """Whether a file is an undamaged shard."""
    return file.is_file() and entry.sha256 == sha256_of(file)


def write_shard(
    file: Path, structures: Sequence[Structure], of_each: NDArray[np.uint8], encodings: Sequence[Encoding]
) -> Entry:
    """Encode structures, with the digest of each, and write them to a shard, which replaces an existing one."""
    check_pairs(structures, encodings)
    with concatenated_once():
        tensors = pack([encoding.many(structures) for encoding in encodings])
    tensors |= named([s.name for s in structures], of_each)
    hidden = file.with_name(f"{file.name}.{os.getpid()}")  # a cluster may give one shard to two workers
    save_file(tensors, hidden)
    os.replace(hidden, file)
    return Entry(file.name, len(structures), file.stat().st_size, sha256_of(file), content(structures, of_each))


def _digest(s: Structure) -> bytes:
    features = {f"feature {key}": value for key, value in sorted(s.features.items())}
    arrays = {"edges": s.edges, "order": s.order, "owner": s.owner} | features
    present = {k: np.asarray(v) for k, v in arrays.items() if v is not None}
    shapes = [(k, v.dtype.str, v.shape) for k, v in present.items()]
    root = None if s.root is None else int(s.root)
    digest = hashlib.sha256(json.dumps([s.nodes, s.relations, s.directed, root, s.units, shapes]).encode())
    for array in present.values():
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()[:16]


def content(structures: Sequence[Structure], of_each: NDArray[np.uint8]) -> str:
    """A digest of structures and their names, from the digest of each."""
    names = json.dumps([s.name for s in structures])
    return hashlib.sha256(of_each.tobytes() + names.encode()).hexdigest()


def digests(structures: Sequence[Structure]) -> NDArray[np.uint8]:
    """(n, 16) a digest of each structure: of everything that encodings may read, which excludes its name."""
    each = b"".join(_digest(structure) for structure in structures)
    return np.frombuffer(each, dtype=np.uint8).reshape(-1, 16)

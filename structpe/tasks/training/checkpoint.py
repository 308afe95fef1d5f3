"""Checkpoints: folders with safetensors, JSON and checksums, written atomically.

Types that JSON lacks are written as an object with one key that begins with ``$``::

    {"$tensor": name}     {"$array": name}        {"$tuple": [...]}
    {"$bytes": base64}    {"$float": "inf"}       {"$dict": [[key, value], ...]}

The last is for a dict with keys that are not strings, or that begin with ``$``.

Checksums are compared whenever a checkpoint is read: a flipped bit in the state of an optimiser shows nowhere else.
"""

from __future__ import annotations

import base64
import json
import math
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from structpe.errors import StoreError, undamaged
from structpe.system.files import SUMS, atomic_write_folder, sums_of, wrong

__all__ = ["drop_after", "flatten", "load", "name", "newest", "prune", "remove", "restore", "save"]


def flatten(state: Any) -> tuple[dict[str, Tensor], Any]:
    """Split a nested state into its tensors, named by their paths, and plain data for JSON.

    Raises:
        StoreError: the state has a value of a type that cannot be written without pickle.
    """
    tensors: dict[str, Tensor] = {}
    return tensors, _plain(state, "", tensors)


def restore(plain: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Rebuild a nested state; the inverse of :func:`flatten`."""
    if isinstance(plain, list):
        return [restore(each, tensors) for each in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) == 1 and (kind := next(iter(plain))) in _KINDS:
        return _special(kind, plain[kind], tensors)
    return {key: restore(value, tensors) for key, value in plain.items()}


_KINDS = ("$tensor", "$array", "$tuple", "$bytes", "$float", "$dict")


def _plain(value: Any, where: str, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, Tensor):
        return {"$tensor": _put(value.detach().cpu(), where, tensors)}
    if isinstance(value, np.ndarray):
        return {"$array": _put(torch.from_numpy(np.ascontiguousarray(value)).view(value.shape), where, tensors)}
    if isinstance(value, np.generic):
        return _plain(value.item(), where, tensors)
    if isinstance(value, Mapping):
        return _mapping(value, where, tensors)
    if isinstance(value, (list, tuple)):
        items = [_plain(each, f"{where}.{i}", tensors) for i, each in enumerate(value)]
        return {"$tuple": items} if isinstance(value, tuple) else items
    return _scalar(value, where)


def _mapping(value: Mapping[Any, Any], where: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    pairs = [(key, _plain(each, f"{where}.{key}", tensors)) for key, each in value.items()]
    if all(isinstance(key, str) and not key.startswith("$") for key in value):
        return dict(pairs)
    return {"$dict": [[_plain(key, where, tensors), each] for key, each in pairs]}


def _scalar(value: Any, where: str) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    raise StoreError(
        f"a checkpoint cannot hold {where.lstrip('.')!r}, which is of type {type(value).__name__}; "
        f"it holds tensors, arrays, numbers, strings, bytes, and lists, tuples and dicts of these"
    )


def _put(tensor: Tensor, where: str, tensors: dict[str, Tensor]) -> str:
    name = where.lstrip(".") or "state"
    while name in tensors:  # {"a.b": x, "a": {"b": y}} gives one path twice
        name += "'"
    # safetensors cannot store two tensors that share memory, so each is copied.
    tensors[name] = tensor.clone(memory_format=torch.contiguous_format)
    return name


def _special(kind: str, content: Any, tensors: Mapping[str, Tensor]) -> Any:
    if kind == "$tensor":
        return tensors[content]
    if kind == "$array":
        return tensors[content].numpy()
    if kind == "$tuple":
        return tuple(restore(each, tensors) for each in content)
    if kind == "$bytes":
        return base64.b64decode(content)
    if kind == "$float":
        return float(content)
    return {restore(key, tensors): restore(value, tensors) for key, value in content}


FORMAT = "structpe checkpoint"
VERSION = 5
"""Raised when older checkpoints can no longer be read, or would be read wrongly."""
STATE, TENSORS = "state.json", "tensors.safetensors"
OLDER = "remove this folder to go on from the one before, or train afresh"


def save(state: Any, folder: Path) -> None:
    """Write a nested state atomically: the folder is complete or absent, even if the process is killed.

    Raises:
        StoreError: the state has a value that cannot be written without pickle.
    """
    from safetensors.torch import save_file

    tensors, plain = flatten(state)

    def write(hidden: Path) -> None:
        save_file(tensors, hidden / TENSORS)
        content = {"format": FORMAT, "version": VERSION, "state": plain}
        (hidden / STATE).write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
        (hidden / SUMS).write_text(sums_of(hidden, (STATE, TENSORS)), encoding="utf-8")

    folder.parent.mkdir(parents=True, exist_ok=True)
    atomic_write_folder(folder, write)


def load(folder: Path) -> Any:
    """Read the state that :func:`save` wrote.

    Raises:
        StoreError: the checkpoint is missing, damaged, or has another version.
    """
    from safetensors.torch import load_file

    _check_version(folder)
    if damage := wrong(folder, (STATE, TENSORS)):
        raise StoreError(f"the checkpoint is damaged: {damage}; {OLDER}").at(folder)
    with undamaged(folder, OLDER):
        content = json.loads((folder / STATE).read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise StoreError(f"its {STATE} does not belong to a checkpoint; {OLDER}").at(folder)
        return restore(content["state"], load_file(folder / TENSORS))


def name(step: int) -> str:
    """The name of the checkpoint of a step."""
    return f"step-{step:08d}"


def newest(folder: Path, say: Callable[[str], None] = lambda line: None) -> Path | None:
    """The newest undamaged checkpoint in a folder; None without checkpoints.

    Args:
        folder: the folder of all checkpoints.
        say: called with a line for each damaged checkpoint that is skipped.

    Raises:
        StoreError: all checkpoints are damaged, or the newest has another version.
    """
    passed: list[str] = []
    for path in reversed(_all(folder)):
        _check_version(path)
        if not (damage := wrong(path, (STATE, TENSORS))):
            for line in passed:
                say(f"{folder}: {line}; it is passed over for {path.name}")
            return path
        passed.append(f"{path.name} is damaged: {damage}")
    if passed:
        raise StoreError(f"no checkpoint is whole: {'; '.join(passed)}; train afresh").at(folder)
    return None


def drop_after(folder: Path, step: int) -> None:
    """Remove the checkpoints after a step, from which training resumes."""
    for path in _all(folder):
        if _step(path) > step:
            remove(path)


def prune(folder: Path, keep: int) -> None:
    """Remove all but the newest checkpoints."""
    for path in _all(folder)[:-keep]:
        remove(path)


def remove(path: Path) -> None:
    """Remove a checkpoint; a file or a link is left alone."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)


def _all(folder: Path) -> list[Path]:
    return sorted((path for path in folder.glob("step-*") if re.fullmatch(r"step-\d{8,}", path.name)), key=_step)


def _step(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def _check_version(folder: Path) -> None:
    """Check the version of a checkpoint, if it can be read. One of another version is not damaged, and not skipped.

    Raises:
        StoreError: it has another version.
    """
    try:
        content = json.loads((folder / STATE).read_text(encoding="utf-8"))
        form, version = content["format"], content["version"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return  # it is damaged, which the checksums show
    foreign = form == FORMAT and isinstance(version, int) and version != VERSION
    if foreign and not ((folder / SUMS).exists() and wrong(folder, (STATE, TENSORS))):
        raise StoreError(
            f"the checkpoint has format version {version}, this structpe reads version {VERSION}; "
            f"go on with the structpe that wrote it, or train afresh"
        ).at(folder)

"""A checkpoint: a folder of safetensors, JSON and their checksums, written at one stroke; and finding the newest.

Checksums are compared whenever one is read: a bit that has flipped in the state of an optimiser shows nowhere else.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from structpe.checksums import SUMS, sums_of, wrong
from structpe.errors import StoreError, undamaged
from structpe.files import atomic_write_folder
from structpe.tasks.training.tree import flatten, restore

__all__ = ["drop_after", "load", "name", "newest", "prune", "remove", "save"]

FORMAT = "structpe checkpoint"
VERSION = 5
"""Raised when a checkpoint of before could not be read any more, or would be read wrongly."""
STATE, TENSORS = "state.json", "tensors.safetensors"
OLDER = "remove this folder to go on from the one before, or train afresh"


def save(state: Any, folder: Path) -> None:
    """Write a nested state; the folder appears whole or not at all, also when the process is killed meanwhile.

    Raises:
        StoreError: something in the state cannot be written without pickle.
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
    """The state that :func:`save` wrote.

    Raises:
        StoreError: the checkpoint is missing, damaged, or of another version.
    """
    from safetensors.torch import load_file

    _check_version(folder)
    if damage := wrong(folder, (STATE, TENSORS)):
        raise StoreError(f"the checkpoint is damaged: {damage}; {OLDER}").at(folder)
    with undamaged(folder, OLDER):
        content = json.loads((folder / STATE).read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise StoreError(f"its {STATE} is not that of a checkpoint; {OLDER}").at(folder)
        return restore(content["state"], load_file(folder / TENSORS))


def name(step: int) -> str:
    """What the checkpoint of a step is called."""
    return f"step-{step:08d}"


def newest(folder: Path, say: Callable[[str], None] = lambda line: None) -> Path | None:
    """The newest undamaged checkpoint in a folder; None if there is no checkpoint.

    Args:
        folder: of checkpoints.
        say: called with one line for each damaged checkpoint, which is skipped.

    Raises:
        StoreError: there are checkpoints, but not one is whole, or the newest is of another version.
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
    """Remove the checkpoints after a step: training resumes there and writes them again."""
    for path in _all(folder):
        if _step(path) > step:
            remove(path)


def prune(folder: Path, keep: int) -> None:
    """Remove all but the newest checkpoints."""
    for path in _all(folder)[:-keep]:
        remove(path)


def remove(path: Path) -> None:
    """Remove a checkpoint; what is no folder, such as a link to one, stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)


def _all(folder: Path) -> list[Path]:
    return sorted((path for path in folder.glob("step-*") if re.fullmatch(r"step-\d{8,}", path.name)), key=_step)


def _step(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def _check_version(folder: Path) -> None:
    """What a structpe of another version wrote is not damaged, and nothing to pass over.

    Raises:
        StoreError: another version wrote it.
    """
    try:
        content = json.loads((folder / STATE).read_text(encoding="utf-8"))
        form, version = content["format"], content["version"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return  # it is damaged, as its checksums say
    foreign = form == FORMAT and isinstance(version, int) and version != VERSION
    if foreign and not ((folder / SUMS).exists() and wrong(folder, (STATE, TENSORS))):
        raise StoreError(
            f"the checkpoint has format version {version}, this structpe reads version {VERSION}; "
            f"go on with the structpe that wrote it, or train afresh"
        ).at(folder)

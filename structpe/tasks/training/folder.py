"""The folder of a run: kept to one process, of one configuration, and emptied of nothing but the run.

Its manifest, ``structpe.json``, lists what the run writes: names, and patterns of names in folders that it makes. The
manifest is written before all else. What is not in it was there before or came from elsewhere, and is never replaced or
removed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import torch

from structpe.data.prepare import TRAIN_AFRESH
from structpe.errors import ConfigError, StoreError, listed, reason_of, undamaged
from structpe.system.files import SUMS, atomic_text, check, left_in, sealed, sweep, unsealed
from structpe.tasks.config import differences
from structpe.tasks.training.config import TrainingConfig

__all__ = [
    "CHECKPOINTS",
    "LOGS",
    "MANIFEST",
    "InUse",
    "check_devices",
    "check_free",
    "claim",
    "clear",
    "device_named",
    "device_of",
    "learned",
    "listing",
    "lock",
    "number",
    "same",
    "unbroken",
]


NAMES = ("NODE_RANK", "GROUP_RANK", "SLURM_NODEID")
"""Where the number of the machine stands: set by hand, by torchrun, by Slurm."""
MEETING = ("MASTER_ADDR", "MASTER_PORT")


def number(training: TrainingConfig) -> int:
    """Which of ``training.nodes`` machines this is, from 0. The first one writes the files of the run.

    Raises:
        ConfigError: there are several, and the environment does not say which this is, or where they meet.
    """
    if training.nodes == 1:
        return 0
    given = next((name for name in NAMES if name in os.environ), NAMES[0])
    found = os.environ.get(given, "")
    lacking = [name for name in MEETING if not os.environ.get(name)]
    if lacking or not found.isdecimal() or int(found) >= training.nodes:
        wrong = f"{lacking[0]} is not set" if lacking else f"{given} is {found!r}" if found else f"{given} is not set"
        raise ConfigError(
            f"training.nodes is {training.nodes}, and {wrong}; start one process on each machine, with its number from "
            f"0 to {training.nodes - 1} in NODE_RANK, and the address and a free port of the first in MASTER_ADDR and "
            f"MASTER_PORT"
        )
    return int(found)


C = TypeVar("C")
MANIFEST, FORMAT = "structpe.json", "structpe manifest"
CHECKPOINTS, LOGS = "checkpoints/step-*", ("tensorboard/events.out.tfevents.*", "tensorboard/hparams.yaml")
"""What a run writes into folders that it makes."""


class InUse(ConfigError):
    """Another process trains in the folder."""


@contextmanager
def lock(folder: Path, waits: bool = False) -> Iterator[None]:
    """Keep the folder to this process; the lock goes when the process does, however it ends.

    Args:
        folder: of a run.
        waits: whether to wait for a process that has it.

    Raises:
        InUse: another process is training in it.
        ConfigError: it is a file.
    """
    from filelock import FileLock, Timeout

    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}, where the run is to be, is a file; choose a folder (out)")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=-1 if waits else 0):
            sweep(*left_in(folder), *left_in(folder / "checkpoints"))
            yield
    except Timeout:
        raise InUse(f"another process is training in {folder}; wait for it, or choose another folder") from None


def same(folder: Path, config: C, load: Callable[[Path], C], free: Collection[str]) -> None:
    """Check that the run in the folder is one of this configuration.

    Args:
        folder: of the run.
        config: the configuration that is asked for.
        load: reads the one that was written.
        free: keys that may change when a run resumes.

    Raises:
        ConfigError: it is one of another.
        StoreError: it is not known of which.
    """
    written = folder / "config.yaml"
    if not written.exists():
        raise StoreError(f"{folder} holds what a training has made, but no config.yaml; {TRAIN_AFRESH}")
    if other := [key for key in differences(load(written), config) if key not in free]:
        raise ConfigError(
            f"{folder} holds a run of another configuration; they differ in {', '.join(other)}. Bring these back to go "
            f"on with that run, choose another folder (out), or train afresh (fresh), which removes that run"
        )


def unbroken(folder: Path, names: Sequence[str]) -> None:
    """Check that the files of a run that never change are as they were written, where a run is.

    Raises:
        StoreError: one is missing, or another now.
    """
    if (folder / SUMS).exists():  # a run that an older structpe began has no checksums
        check(folder, names, TRAIN_AFRESH)


def learned(folder: Path) -> bool:
    """Whether the folder holds anything that training has written. If not, there is nothing to resume or to lose."""
    return any((folder / name).exists() for name in ("checkpoints", "model.safetensors", "result.json"))


def listing(folder: Path) -> tuple[str, ...] | None:
    """What the manifest of a folder lists; None without a manifest.

    Raises:
        StoreError: it is damaged, or is no manifest of structpe.
    """
    file = folder / MANIFEST
    if not os.path.lexists(file):
        return None
    with undamaged(file, "move it and what is yours elsewhere, or choose another folder (out)"):
        found = unsealed(file.read_text(encoding="utf-8"))
        if found["format"] != FORMAT or any(".." in name or name.startswith("/") for name in found["files"]):
            raise ValueError("it is not a manifest of structpe")
        return tuple(found["files"])


def check_free(folder: Path, names: Iterable[str], owned: Iterable[str] | None = None) -> None:
    """Check that nothing in a folder would be replaced but what structpe has written there.

    Args:
        folder: of a run or a study.
        names: what is to be written, as in a manifest.
        owned: what is known to be structpe's; None for what the manifest lists.

    Raises:
        ConfigError: something else has one of these names.
    """
    owned = (listing(folder) or ()) if owned is None else owned
    taken = {_first(name) for name in names} - {_first(name) for name in owned}
    if found := sorted(name for name in taken if os.path.lexists(folder / name)):
        raise ConfigError(
            f"{folder} holds {listed(found)}, which structpe would replace and has not written, as no {MANIFEST} there "
            f"lists it; choose a folder of its own (out), or move what is there elsewhere"
        )


def claim(folder: Path, names: Sequence[str], owned: Sequence[str] | None = None) -> None:
    """Enter in the manifest of a folder what is to be written; see :func:`check_free`."""
    check_free(folder, names, owned)
    before = listing(folder)
    if after := [name for name in dict.fromkeys((*(before or owned or ()), *names)) if name not in (before or ())]:
        folder.mkdir(parents=True, exist_ok=True)
        atomic_text(folder / MANIFEST, sealed({"format": FORMAT, "files": [*(before or ()), *after]}))


def clear(folder: Path, names: Iterable[str]) -> None:
    """Remove what a manifest lists, and the folders that are empty then; no link is followed."""
    for name in names:
        inner = folder / _first(name)
        if "/" not in name:
            inner.unlink(missing_ok=True)
        elif not inner.is_symlink():
            for path in folder.glob(name):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
            with suppress(OSError):  # it is not empty, or not there
                inner.rmdir()


def _first(name: str) -> str:
    return name.partition("/")[0]


def check_devices(training: TrainingConfig) -> None:
    """Check that there are as many GPUs as are asked for, and that this is one of the machines.

    Raises:
        ConfigError: there are fewer, or it is not known which of several machines this is.
    """
    number(training)
    seen, asked = torch.accelerator.device_count(), training.devices
    if training.accelerator != "cpu" and seen < asked and (seen or training.accelerator == "gpu"):
        raise ConfigError(
            f"training.devices is {asked} and training.accelerator {training.accelerator!r}, but PyTorch sees {seen} "
            f"GPUs here; ask for no more than these, or set training.accelerator to cpu"
        )


def device_of(training: TrainingConfig) -> torch.device:
    """Where a training of this configuration computes, as Lightning chooses."""
    chosen = torch.accelerator.current_accelerator(check_available=True)
    return torch.device("cpu") if training.accelerator == "cpu" or chosen is None else chosen


def device_named(device: torch.device | str | None) -> torch.device:
    """The device that is asked for; with None a GPU where there is one.

    Raises:
        ConfigError: PyTorch does not have it here.
    """
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, TypeError) as error:  # also where PyTorch was built without CUDA
        raise ConfigError(
            f"the device {str(device)!r} cannot be used ({reason_of(error)}); give one that PyTorch has here, such as "
            f"'cpu', or none"
        ) from None

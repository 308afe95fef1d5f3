"""The folder of a run: locked by one process, and never cleared of files that the run did not write.

Its manifest, ``structpe.json``, lists what the run writes: names of files, and patterns of names in folders that it
makes. The manifest is written first. Files that it does not list are never replaced or removed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from structpe.data.prepare import TRAIN_AFRESH
from structpe.errors import ConfigError, listed, reason_of, undamaged
from structpe.system.files import SUMS, atomic_text, check, left_in, sealed, sweep, unsealed
from structpe.tasks.training.config import HardwareConfig

__all__ = [
    "CHECKPOINTS",
    "LOGS",
    "MANIFEST",
    "InUse",
    "check_devices",
    "check_free",
    "check_sums",
    "claim",
    "clear",
    "device_named",
    "device_of",
    "learned",
    "lock",
    "manifest_files",
    "number",
]


NAMES = ("NODE_RANK", "GROUP_RANK", "SLURM_NODEID")
"""Environment variables with the number of the machine, set by hand, by torchrun, or by Slurm."""
MEETING = ("MASTER_ADDR", "MASTER_PORT")


def number(hardware: HardwareConfig) -> int:
    """The number of this machine among ``nodes``, from 0. Machine 0 writes the files of the run.

    Raises:
        ConfigError: there are several machines, and the environment does not give the number of this one, or the
            address and port of the first.
    """
    if hardware.nodes == 1:
        return 0
    given = next((name for name in NAMES if name in os.environ), NAMES[0])
    found = os.environ.get(given, "")
    lacking = [name for name in MEETING if not os.environ.get(name)]
    if lacking or not found.isdecimal() or int(found) >= hardware.nodes:
        wrong = f"{lacking[0]} is not set" if lacking else f"{given} is {found!r}" if found else f"{given} is not set"
        raise ConfigError(
            f"training.hardware.nodes is {hardware.nodes}, and {wrong}; start one process on each machine, with its "
            f"number from 0 to {hardware.nodes - 1} in NODE_RANK, and the address and a free port of the first in "
            f"MASTER_ADDR and MASTER_PORT"
        )
    return int(found)


MANIFEST, FORMAT = "structpe.json", "structpe manifest"
CHECKPOINTS, LOGS = "checkpoints/step-*", ("tensorboard/events.out.tfevents.*", "tensorboard/hparams.yaml")
"""Patterns of the files that a run writes into folders that it makes."""


class InUse(ConfigError):
    """Another process trains in the folder."""


@contextmanager
def lock(folder: Path, waits: bool = False) -> Iterator[None]:
    """Lock the folder for this process. The lock is released when the process ends, however it ends.

    Args:
        folder: the folder of a run.
        waits: whether to wait for another process that holds the lock.

    Raises:
        InUse: another process is training in the folder.
        ConfigError: the folder is a file.
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


def check_sums(folder: Path, names: Sequence[str]) -> None:
    """Compare the constant files of a run with their checksums, if the folder holds a run.

    Raises:
        StoreError: a file is missing, or has changed.
    """
    if (folder / SUMS).exists():  # a run that an older structpe began has no checksums
        check(folder, names, TRAIN_AFRESH)


def learned(folder: Path) -> bool:
    """Whether the folder holds any output of training; if not, there is nothing to resume or to lose."""
    return any((folder / name).exists() for name in ("checkpoints", "model.safetensors", "result.json"))


def manifest_files(folder: Path) -> tuple[str, ...] | None:
    """The files that the manifest of a folder lists; None without a manifest.

    Raises:
        StoreError: the manifest is damaged, or is not one of structpe.
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
    """Check that writing files would replace only files that structpe has written.

    Args:
        folder: the folder of a run or a study.
        names: the files to be written, as in a manifest.
        owned: the files that structpe has written; by default those in the manifest.

    Raises:
        ConfigError: another file has one of these names.
    """
    owned = (manifest_files(folder) or ()) if owned is None else owned
    taken = {_first(name) for name in names} - {_first(name) for name in owned}
    if found := sorted(name for name in taken if os.path.lexists(folder / name)):
        raise ConfigError(
            f"{folder} holds {listed(found)}, which structpe would replace but has not written, as no {MANIFEST} there "
            f"lists it; choose another folder (out), or move these files elsewhere"
        )


def claim(folder: Path, names: Sequence[str], owned: Sequence[str] | None = None) -> None:
    """Add files to be written to the manifest of a folder, after :func:`check_free`."""
    check_free(folder, names, owned)
    before = manifest_files(folder)
    if after := [name for name in dict.fromkeys((*(before or owned or ()), *names)) if name not in (before or ())]:
        folder.mkdir(parents=True, exist_ok=True)
        atomic_text(folder / MANIFEST, sealed({"format": FORMAT, "files": [*(before or ()), *after]}))


def clear(folder: Path, names: Iterable[str]) -> None:
    """Remove files of a manifest, and the folders that are then empty; links are not followed."""
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


def check_devices(hardware: HardwareConfig) -> None:
    """Check that there are enough GPUs, and that the number of this machine is known.

    Raises:
        ConfigError: there are too few, or the number is unknown; see :func:`number`.
    """
    number(hardware)
    seen, asked = torch.accelerator.device_count(), hardware.devices
    if hardware.accelerator != "cpu" and seen < asked and (seen or hardware.accelerator == "gpu"):
        raise ConfigError(
            f"training.hardware.devices is {asked} and training.hardware.accelerator {hardware.accelerator!r}, but "
            f"PyTorch sees {seen} GPUs here; ask for no more than these, or set training.hardware.accelerator to cpu"
        )


def device_of(hardware: HardwareConfig) -> torch.device:
    """The device of a training, as Lightning chooses it."""
    chosen = torch.accelerator.current_accelerator(check_available=True)
    return torch.device("cpu") if hardware.accelerator == "cpu" or chosen is None else chosen


def device_named(device: torch.device | str | None) -> torch.device:
    """The given device; by default a GPU, if there is one.

    Raises:
        ConfigError: the device is not available.
    """
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, TypeError) as error:  # also if PyTorch was built without CUDA
        raise ConfigError(
            f"the device {str(device)!r} cannot be used ({reason_of(error)}); give one that PyTorch has here, such as "
            f"'cpu', or none"
        ) from None

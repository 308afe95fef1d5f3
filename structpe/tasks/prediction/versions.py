"""What a number was measured with."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

import torch

import structpe

__all__ = ["versions"]


def versions(device: torch.device) -> dict[str, str]:
    """Software, commit, machine and day.

    Args:
        device: what was computed on.
    """
    processor = f"{device.type.upper()}, {os.cpu_count()} cores"
    return {
        "structpe": structpe.__version__,
        "commit": _commit(),
        "torch": torch.__version__,
        "lightning": version("lightning"),
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else processor,
        "threads": str(torch.get_num_threads()),
        "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


@cache
def _commit() -> str:
    """Of the checkout that the library runs from, when it was first asked for; empty if installed from a package.

    Asked again, git might name a commit that was checked out since and that this process has not loaded.
    """
    here = Path(structpe.__file__)
    try:
        # The library may also lie, as no part of it, in somebody else's checkout.
        _git(here.parent, "ls-files", "--error-unmatch", here.name)
        return _git(here.parent, "describe", "--always", "--dirty", "--abbrev=12")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

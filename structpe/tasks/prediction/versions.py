"""What a number was measured with."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import torch

import structpe

__all__ = ["versions"]


def versions() -> dict[str, str]:
    """Software, commit, machine and day."""
    return {
        "structpe": structpe.__version__,
        "commit": _commit(),
        "torch": torch.__version__,
        "lightning": version("lightning"),
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {os.cpu_count()} cores",
        "threads": str(torch.get_num_threads()),
        "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def _commit() -> str:
    """Of the checkout that the library runs from; empty where it was installed from a package."""
    here = Path(structpe.__file__).parent
    command = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""

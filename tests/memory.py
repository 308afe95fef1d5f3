"""What a process that a test starts has had in memory at the most."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["peak"]


def peak() -> int:
    """KiB; Linux says so.

    ``getrusage`` begins with what the process had that started this one, so that nothing grows below that.
    """
    return int(re.findall(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[0])

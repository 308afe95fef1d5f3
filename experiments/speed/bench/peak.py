"""What a run takes of memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

__all__ = ["extra"]


def extra(run: Callable[[], object]) -> float:
    """MiB that a run takes at the most beyond what was there before; on other systems than Linux not a number."""
    peak = Path("/proc/self/clear_refs")
    if not peak.exists():
        run()
        return float("nan")
    ctypes.CDLL(None).malloc_trim(0)
    peak.write_text("5", encoding="ascii")
    before = _status("VmRSS")
    run()
    return (_status("VmHWM") - before) / 1024


def _status(name: str) -> int:
    """KiB, as the kernel counts them."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(each.split()[1]) for each in lines if each.startswith(name))

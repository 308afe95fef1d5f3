"""Times of ways to compute the same thing, in rounds in which they take turns, so that a busy machine slows all alike.

On a CPU with one thread the time is that of the processor, in which other programs do not count; with more threads, and
on a GPU, it is that of the wall clock.

What a script has measured it keeps with :func:`write`, or :func:`shown`, as ``results/NAME.md``: Markdown, first a line
that says how it was made. ``experiments/pages.py`` puts these files into docs/speed.md.
"""

from __future__ import annotations

import gc
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from importlib.metadata import version
from pathlib import Path

import torch

from structpe.system.files import atomic_text

__all__ = ["LIBRARIES", "clock", "made", "medians", "shown", "write"]

CPU = torch.device("cpu")
RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parents[2]
LOAD = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
"""How many processes ran when this one began."""
COMMIT = (
    subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    or "unknown"
)
"""Of the code that this process has imported."""
LIBRARIES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "networkx": "networkx",
    "PyTorch": "torch",
    "PyG": "torch_geometric",
    "DGL": "dgl",
    "spaCy": "spacy",
    "rustworkx": "rustworkx",
    "numba": "numba",
    "transformers": "transformers",
}
"""What tables call a library, and its module."""


def shown(name: str, lines: Iterable[str], keep: bool) -> None:
    """Print lines as they are made, then :func:`write` them if they are to be kept."""
    text = []
    for line in lines:
        print(line, flush=True)
        text.append(line)
    if keep:
        write(name, "\n".join(text))


def write(name: str, text: str, seed: int = 0) -> None:
    """Keep a result, Markdown, as ``results/NAME.md``, below a line that says how it was made."""
    atomic_text(RESULTS / f"{name}.md", f"{made(seed)}\n\n{text.strip()}\n")


def made(seed: int = 0) -> str:
    """The command (of paths the names), the day, the processor, and the versions of what this process imported."""
    words = [Path(word).name for word in sys.argv[1:]]
    command = " ".join([f"python experiments/speed/{Path(sys.argv[0]).name}", *words])
    threads = {1: "one thread"}.get(torch.get_num_threads(), f"{torch.get_num_threads()} threads")
    used = {called: module for called, module in LIBRARIES.items() if module in sys.modules}
    versions = ", ".join(f"{called} {version(module)}" for called, module in used.items())
    where = f"{threads} of {os.cpu_count()} cores of {processor()}, load {LOAD:.1f} at the beginning"
    versions = f"Python {platform.python_version()}, {versions}; seed {seed}."
    return f"`{command}`, {date.today().isoformat()}, commit {COMMIT}; {where}; {versions}"


def processor() -> str:
    """What it calls itself."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text(encoding="utf-8").splitlines() if described.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def medians(
    ways: Mapping[str, Callable[[], object]], rounds: int, device: torch.device = CPU, warm: int = 1
) -> dict[str, float]:
    """Seconds of each way, the medians of the rounds.

    Garbage is not collected meanwhile, because whose turn that would fall into is chance.

    Args:
        ways: by name.
        rounds: how many count.
        device: where they compute.
        warm: rounds before these, in which code is compiled and memory found.
    """
    times: dict[str, list[float]] = {name: [] for name in ways}
    collects = gc.isenabled()
    gc.disable()
    try:
        for number in range(warm + rounds):
            for name, way in ways.items():
                start = clock(device)
                way()
                if number >= warm:
                    times[name].append(clock(device) - start)
    finally:
        if collects:
            gc.enable()
    return {name: statistics.median(took) for name, took in times.items()}


def clock(device: torch.device = CPU) -> float:
    """Seconds since some moment; a GPU has done all that it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        return time.perf_counter()
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()

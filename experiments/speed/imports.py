"""How long ``import structpe`` and short commands take beside ``import torch``: CPU seconds of whole processes.

python experiments/speed/imports.py

A first ``structpe positions`` after a change of the library makes what others read, and is printed by itself.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 7
SAMPLE = str(Path(__file__).parents[2] / "datasets" / "diameters_sample" / "molecules.csv")
JOBS = {
    "import torch": ["-c", "import torch"],
    "import structpe": ["-c", "import structpe"],
    "from structpe import encode, attend, build": ["-c", "from structpe import attend, build, encode"],
    "structpe --help": ["-m", "structpe", "--help"],
    "structpe positions": ["-m", "structpe", "positions"],
    "structpe positions t5": ["-m", "structpe", "positions", "t5"],
    "structpe positions '*rope*' --sort cost": ["-m", "structpe", "positions", "*rope*", "--sort", "cost"],
    "structpe encodings": ["-m", "structpe", "encodings"],
    "structpe encode, molecules": ["-m", "structpe", "encode", SAMPLE, "--encoding", "undirected-distance", "--out"],
}


def main() -> None:
    """Median over rounds in which the jobs take turns."""
    times: dict[str, list[float]] = {name: [] for name in JOBS}
    first = seconds(JOBS["structpe positions"])
    for _ in range(ROUNDS):
        for name, job in JOBS.items():
            times[name].append(seconds(job))
    torch = statistics.median(times["import torch"])
    print(f"{'the first structpe positions':45} {first:6.2f} s")
    for name, mine in times.items():
        print(f"{name:45} {statistics.median(mine):6.2f} s  {statistics.median(mine) / torch:5.2f} of import torch")


def seconds(job: list[str]) -> float:
    """CPU seconds of a process; what it writes goes to a new folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        out = [str(Path(folder) / "store")] if job[-1] == "--out" else []
        subprocess.run([sys.executable, *job, *out], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()

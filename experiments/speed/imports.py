"""How long ``import structpe`` and ``structpe --help`` take beside ``import torch``: CPU seconds of whole processes.

python experiments/speed/imports.py
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

ROUNDS = 7
JOBS = {
    "import torch": ["-c", "import torch"],
    "import structpe": ["-c", "import structpe"],
    "from structpe import encode, attend, build": ["-c", "from structpe import attend, build, encode"],
    "structpe --help": ["-m", "structpe", "--help"],
}


def main() -> None:
    """Median over rounds in which the jobs take turns."""
    times: dict[str, list[float]] = {name: [] for name in JOBS}
    for _ in range(ROUNDS):
        for name, job in JOBS.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *job], check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    torch = statistics.median(times["import torch"])
    for name, mine in times.items():
        print(f"{name:45} {statistics.median(mine):6.2f} s  {statistics.median(mine) / torch:5.2f} of import torch")


if __name__ == "__main__":
    main()

"""What the first list of a process costs, with and without numba: CPU milliseconds, each in a process of its own.

    python experiments/speed/first.py MOLECULES.csv TREES.conllu

Of each encoding: NumPy's way for 1, 10, 100 and 1,000 structures, after what it imports; then the kernels, when numba
has to be imported and everything compiled (an empty folder for the cache), when the cache is there, and the third
time in the same process. `structpe.encodings.compiled` decides by these figures; the last column is what it does, in a
new environment.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

COUNTS = (1, 10, 100, 1000)
ENCODINGS = ("undirected-distance", "random-walk", "rrwp", "label-path", "spr-relative")
TREES = ("spr-relative",)

JOB = """
import sys, time
from contextlib import nullcontext
from itertools import islice
from structpe.encodings.base import as_encoding
from structpe.encodings.compiled import at_once, slow
from structpe.formats import stream
file, name, way, count, times = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
options = {"strict": False} if file.endswith(".csv") else {}
structures = [item.structure for item in islice(stream(file, skip=lambda bad: None, **options), count)]
encoding = as_encoding(name).fit(structures)
with {"numpy": slow, "kernels": at_once, "rule": nullcontext}[way]():
    for _ in range(times):
        began = time.thread_time()
        encoding.many(structures)
        print(1000 * (time.thread_time() - began))
"""


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("molecules")
    parser.add_argument("trees")
    given = parser.parse_args()
    heads = [f"NumPy, {count:,}" for count in COUNTS]
    print(f"{'encoding':20}", *(f"{head:>13}" for head in (*heads, "compiled", "from cache", "again", "by the rule")))
    for name in ENCODINGS:
        file = given.trees if name in TREES else given.molecules
        found = [first(file, name, "numpy", count) for count in COUNTS]
        with tempfile.TemporaryDirectory() as cache:
            found += [first(file, name, "kernels", COUNTS[-1], cache) for _ in range(2)]
            found.append(first(file, name, "kernels", COUNTS[-1], cache, times=3))
        with tempfile.TemporaryDirectory() as cache:
            found.append(first(file, name, "rule", COUNTS[-1], cache))
        print(f"{name:20}", *(f"{each:13.1f}" for each in found), flush=True)


def first(file: str, name: str, way: str, count: int, cache: str = "", times: int = 1) -> float:
    """Milliseconds of the first list, or of the last of several."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | ({"NUMBA_CACHE_DIR": cache} if cache else {})
    job = [sys.executable, "-c", JOB, file, name, way, str(count), str(times)]
    done = subprocess.run(job, check=True, capture_output=True, text=True, env=environment)
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    main()

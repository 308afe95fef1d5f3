"""Whether a file of a million graphs is read, and converted, in constant memory, and how long that takes.

    python experiments/speed/streaming.py FOLDER                 # writes about 500 MB there, and removes them again
    python experiments/speed/streaming.py FOLDER --graphs 10000

Graphs are drawn with a fixed seed: random graphs of 4 to 12 nodes in graph6, random trees of 4 to 12 words in CoNLL-U,
and entries of 1 to 4 facts in WebNLG's XML. Each job runs in a process of its own, with progress told. Its time is that
of the processor; its memory is the most that the process ever held, less what it held when everything was imported and
a file of a thousand graphs had been read.

On one core of a shared machine, Python 3.11, a million graphs each:

| format | file, MB | job | graphs | CPU s | graphs/s | memory before, MiB | more at the peak, MiB |
|---|---|---|---|---|---|---|---|
| graph6 | 8 | read | 1,000,000 | 64 | 15,745 | 30 | 0.0 |
| graph6 | 8 | convert | 1,000,000 | 93 | 10,785 | 38 | 0.0 |
| conllu | 250 | read | 1,000,000 | 63 | 15,760 | 30 | 1.5 |
| conllu | 250 | convert | 1,000,000 | 140 | 7,145 | 37 | 1.5 |
| webnlg | 235 | read | 1,000,000 | 48 | 20,759 | 31 | 0.2 |
| webnlg | 235 | convert | 1,000,000 | 86 | 11,568 | 39 | 0.2 |
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

FEW = 1000


def graph6(rng: random.Random, _: int) -> str:
    """A random graph in a line of graph6."""
    size = rng.randint(4, 12)
    count = size * (size - 1) // 2
    bits = rng.getrandbits(count) << -count % 6
    characters = [chr((bits >> 6 * place & 63) + 63) for place in range(-(-count // 6))]
    return chr(size + 63) + "".join(reversed(characters)) + "\n"


def conllu(rng: random.Random, number: int) -> str:
    """A random tree as a sentence of CoNLL-U."""
    size = rng.randint(4, 12)
    rows = [
        f"{word}\tw{rng.randint(0, 9999)}\t_\tNOUN\t_\t_\t{rng.randrange(word)}\tdep\t_\t_"
        if word > 1
        else "1\tw\t_\tVERB\t_\t_\t0\troot\t_\t_"
        for word in range(1, size + 1)
    ]
    rows = [row.replace("\t_\t_\t0\tdep", "\t_\t_\t1\tdep") for row in rows]
    return f"# sent_id = s{number}\n" + "\n".join(rows) + "\n\n"


def webnlg(rng: random.Random, number: int) -> str:
    """A random star of facts as an entry of WebNLG."""
    facts = "".join(
        f"<mtriple>Entity_{number} | relation{rng.randint(0, 99)} | Value_{place}</mtriple>"
        for place in range(rng.randint(1, 4))
    )
    return (
        f'<entry eid="Id{number}"><modifiedtripleset>{facts}</modifiedtripleset><lex lid="Id1">A text.</lex></entry>\n'
    )


FORMATS: dict[str, tuple[str, Callable[[random.Random, int], str], str, str]] = {
    "graph6": ("g6", graph6, "", ""),
    "conllu": ("conllu", conllu, "", ""),
    "webnlg": ("xml", webnlg, "<benchmark><entries>\n", "</entries></benchmark>\n"),
}
JOB = """
import resource, sys, time
from structpe.formats import stream
from structpe.formats import write
few, many, out = sys.argv[1:]
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
told = []
def tell(done, total):
    told[:] = done, total
def run(path):
    items = stream(path, progress=tell)
    return write(items, out) if out else sum(1 for _ in items)
run(few)
before, start = peak(), time.process_time()
count = run(many)
assert told[0] == told[1]
print(count, time.process_time() - start, before, peak() - before)
"""


def main() -> None:
    """Print a row of Markdown for each format, read alone and converted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--graphs", type=int, default=1_000_000)
    given = parser.parse_args()
    print("| format | file, MB | job | graphs | CPU s | graphs/s | memory before, MiB | more at the peak, MiB |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (suffix, make, head, foot) in FORMATS.items():
        files = []
        for count in (FEW, given.graphs):
            files.append(given.folder / f"streaming-{count}.{suffix}")
            rng = random.Random(0)
            with files[-1].open("w", encoding="utf-8") as file:
                file.write(head)
                file.writelines(make(rng, number) for number in range(count))
                file.write(foot)
        out = given.folder / f"streaming-out.{suffix}"
        for job, target in (("read", ""), ("convert", str(out))):
            command = [sys.executable, "-c", JOB, *map(str, files), target]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            count, seconds, before, more = map(float, done.stdout.split())
            size = files[1].stat().st_size / 1e6
            print(
                f"| {name} | {size:.0f} | {job} | {count:,.0f} | {seconds:.0f} | {count / seconds:,.0f} "
                f"| {before:.0f} | {more:.1f} |",
                flush=True,
            )
        for path in (*files, out):
            path.unlink()


if __name__ == "__main__":
    main()

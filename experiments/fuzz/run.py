"""Throws damaged inputs at all that takes something in: each ends in a result or in one named error, soon.

python experiments/fuzz/run.py --seed 7 --write                      # all, 1,000,000 inputs; the table of README.md
python experiments/fuzz/run.py --only conllu amr --inputs 100000     # readers, or classes, by name
python experiments/fuzz/run.py --only amr --seed 7 --number 4711     # that one input again, with its traceback

A find is an exception that is no StructPEError, a reader's error that does not say in which file, a control character
that is printed, more than 5 s of a processor or 512 MiB of memory, or a process that dies (of a crash, of 4 GiB, or of
20 s in code that hears no signal). Finds are made as short as they can be, and lie in runs/fuzz.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import random
import re
import resource
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from classes import CLASSES
from mutate import mutated

from structpe.errors import StructPEError
from structpe.formats import READERS, read

HERE = Path(__file__).parent
SAMPLES = HERE.parents[1] / "datasets"
CHUNK = 500
SECONDS, MIB = 5.0, 512
"""What one input may take, of a processor and of memory."""
DEADLY, BYTES = 20, 4 << 30
"""Seconds of one input, and bytes of a process, after which the system ends it."""
WARM = 20
"""Inputs that are not measured, since they import what the others need."""
ALL, EACH = 1_000_000, 50_000
"""Inputs in all, and those for each reader; the classes share the rest."""
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
HEADER = (
    "| what | inputs | good | named errors | kinds | finds | most s | most MiB | minutes |",
    "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
)
PART = re.compile(rb"^==> (set_\w{1,40}\.txt) <==\n", re.MULTILINE)
"""Stands before each file in a seed that ends in .parts: formats of several files are damaged as one."""
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where files are not on a disk, if there is such a place."""
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
FEW = 6_000
"""Bytes of a sample that are enough for a seed: short files are read often."""


class Find(NamedTuple):
    """An input that something did not survive."""

    reader: str
    number: int
    what: str
    suffix: str
    content: bytes


class Cost(NamedTuple):
    """Seconds of a processor, and MiB of memory more than before."""

    seconds: float = 0.0
    mib: float = 0.0

    def most(self, other: Cost) -> Cost:
        return Cost(*map(max, self, other))


class Chunk(NamedTuple):
    """What became of some files."""

    good: int
    named: int
    finds: list[Find]
    kinds: Counter[str]
    cost: Cost = Cost()


def main() -> None:
    """Fuzz what the command line says."""
    given = arguments()
    names = given.only or [*READERS, *CLASSES]
    if given.number is not None:
        for name in names:
            again(name, given.seed, given.number)
        return
    rows, finds = [*HEADER], []
    print(
        f"seed {given.seed}, Python {platform.python_version()}, {given.jobs} processes", *HEADER, sep="\n", flush=True
    )
    for name in names:
        row, found = fuzz(name, given)
        print(row, flush=True)
        rows.append(row)
        finds += found
    for find in finds:
        file = save(find, given.out)
        print(f"\n{find.reader} --seed {given.seed} --number {find.number}: {find.what}\n  {file}")
    if given.write:
        write([f"Run with seed {given.seed}, Python {platform.python_version()}, {given.jobs} processes:", "", *rows])
    raise SystemExit(bool(finds))


def arguments() -> argparse.Namespace:
    """The command line."""
    known = [*READERS, *CLASSES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=known, metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--inputs", type=int, help="for each; by default a million in all, 50,000 for each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, help="only this input")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("runs/fuzz"))
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    return parser.parse_args()


def count(name: str, given: argparse.Namespace) -> int:
    """How many inputs of a kind."""
    if given.inputs is not None:
        return int(given.inputs)
    return EACH if name in READERS else -(-(ALL - EACH * len(READERS)) // len(CLASSES))


def write(lines: list[str]) -> None:
    """Put the table into its place."""
    file = HERE / "README.md"
    before, _, rest = file.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    file.write_text("\n".join([before + BEGIN, *lines, END + after]), encoding="utf-8")


@cache
def seeds(reader: str) -> dict[str, list[bytes]]:
    """Good files of a format by the ends of their names: those beside this file, or the beginnings of the samples."""
    own = sorted(HERE.glob(f"seeds/{reader}-*"))
    files = own or [file for file in sorted(SAMPLES.rglob("*")) if file.suffix in READERS[reader].suffixes]
    if not files:
        raise SystemExit(f"there is no seed for reader {reader!r}; put a small good file into {HERE / 'seeds'}")
    found: dict[str, list[bytes]] = {}
    for file in files:
        found.setdefault(file.suffix, []).append(file.read_bytes()[:FEW])
    return found


def damaged(name: str, seed: int, number: int) -> tuple[str, bytes]:
    """The end of the name, and the content, of the input of a number; formats of several suffixes take turns."""
    if name in CLASSES:
        return "", CLASSES[name].make(random.Random(f"{name}:{seed}:{number}"))
    known = seeds(name)
    suffix = list(known)[number % len(known)]
    return suffix, mutated(known[suffix], seed, number)


def fuzz(name: str, given: argparse.Namespace) -> tuple[str, list[Find]]:
    """All inputs of one kind: a row of the table, and what was found."""
    start, good, named, finds, kinds, cost = time.monotonic(), 0, 0, [], Counter[str](), Cost()
    for chunk in chunks(name, given):
        cost = cost.most(chunk.cost)
        good, named = good + chunk.good, named + chunk.named
        finds += chunk.finds
        kinds += chunk.kinds
    unlike = {find.what: find for find in sorted(finds, key=lambda find: -len(find.content))}
    minutes = (time.monotonic() - start) / 60
    inputs = good + named + len(finds)
    counts = f"{inputs:,} | {good:,} | {named:,} | {len(kinds):,} | {len(finds)}"
    row = f"| `{name}` | {counts} | {cost.seconds:.2f} | {cost.mib:.0f} | {minutes:.1f} |"
    return row, [find._replace(content=shortest(find)) for find in unlike.values()]


def chunks(reader: str, given: argparse.Namespace) -> Iterator[Chunk]:
    """What became of chunk after chunk; where a process dies, each file of its chunk gets one of its own."""
    inputs = count(reader, given)
    starts = list(range(0, inputs, CHUNK))
    sizes = [min(CHUNK, inputs - start) for start in starts]
    while starts:
        with pool(given.jobs, reader) as workers:
            jobs = [workers.submit(work, reader, given.seed, *job) for job in zip(starts, sizes, strict=True)]
            dead = []
            for start, size, job in zip(starts, sizes, jobs, strict=True):
                try:
                    yield job.result()
                except BrokenProcessPool:
                    dead.append((start, size))
        first, dead = dead[:1], dead[1:]  # the first that is not done is the one that died, or beside it
        for start, size in first:
            for number in range(start, start + size):
                yield alone(reader, given.seed, number)
        starts, sizes = [start for start, _ in dead], [size for _, size in dead]


def pool(jobs: int, name: str) -> ProcessPoolExecutor:
    """Processes of little memory, for one kind of input."""
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), begin, (name,))


def begin(name: str) -> None:
    """Limit a process, and import what inputs of a kind need."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    for number in range(WARM):
        outcome(name, *damaged(name, -1, number))


def alone(reader: str, seed: int, number: int) -> Chunk:
    """One file in a process of its own."""
    with pool(1, reader) as worker:
        try:
            return worker.submit(work, reader, seed, number, 1).result()
        except BrokenProcessPool:
            find = Find(reader, number, "the process died", *damaged(reader, seed, number))
            return Chunk(0, 0, [find], Counter())


def work(reader: str, seed: int, first: int, many: int) -> Chunk:
    """Take in some inputs."""
    good, named, finds, kinds, cost = 0, 0, [], Counter[str](), Cost()
    for number in range(first, first + many):
        suffix, content = damaged(reader, seed, number)
        wrong, message, taken = measured(reader, suffix, content)
        cost = cost.most(taken)
        if wrong:
            finds.append(Find(reader, number, message, suffix, content))
        elif message:
            named += 1
            kinds[kind(message)] += 1
        else:
            good += 1
    return Chunk(good, named, finds, kinds, cost)


def measured(name: str, suffix: str, content: bytes) -> tuple[bool, str, Cost]:
    """The outcome of an input, which is a find if it takes more than it may, and what it takes."""
    before, began = memory(reset=True), time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(began) + DEADLY, resource.RLIM_INFINITY))
    wrong, message = outcome(name, suffix, content)
    cost = Cost(time.process_time() - began, memory() - before)
    for what, given, most in (("s of a processor", cost.seconds, SECONDS), ("MiB", cost.mib, MIB)):
        if given > most and not wrong:
            wrong, message = True, f"it took more than {most:g} {what}"
    return wrong, message, cost


def memory(reset: bool = False) -> float:
    """The most MiB that this process has had in memory; from now on, if it is to be reset. Linux only."""
    if reset:
        RESET.write_text("5")
    found = STATUS.read_bytes()
    return int(found[found.index(b"VmHWM:") + 6 :].split(None, 1)[0]) / 1024


def outcome(name: str, suffix: str, content: bytes) -> tuple[bool, str]:
    """Whether it is a find, and the error, of several the first; the empty text where all was well."""
    signal.signal(signal.SIGALRM, late)
    signal.alarm(2 * DEADLY)  # what waits takes no processor
    try:
        return taken(name, content) if name in CLASSES else reading(name, suffix, content)
    except MemoryError:
        return True, "MemoryError"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return True, f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"
    finally:
        signal.alarm(0)


def taken(name: str, content: bytes) -> tuple[bool, str]:
    """What a class makes of an input."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        try:
            CLASSES[name].take(content, Path(folder))
        except StructPEError as error:
            return False, str(error).replace(folder, "FOLDER")
    return False, ""


def reading(reader: str, suffix: str, content: bytes) -> tuple[bool, str]:
    """What a reader makes of a file."""
    with written(suffix, content) as file:
        try:
            skipped = read(file, reader, on_error="skip").skipped
        except StructPEError as error:
            return file not in str(error), str(error).replace(file, "FILE")
        first = ": ".join(skipped[0]) if skipped else ""
        return any(file not in place for place, _ in skipped), first.replace(file, "FILE")


@contextmanager
def written(suffix: str, content: bytes) -> Iterator[str]:
    """A file of that content, or the first of its parts, for a while; not on a disk, where that can be."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        first, *rest = PART.split(content) if suffix == ".parts" else [content]
        parts = {name.decode(): part for name, part in zip(rest[::2], rest[1::2], strict=True)} or {f"a{suffix}": first}
        for name, part in parts.items():
            (Path(folder) / name).write_bytes(part)
        yield str(Path(folder) / next(iter(parts)))


class Late(Exception):
    """A reader has not ended in time."""


def late(number: int, frame: object) -> None:
    """Called by the alarm."""
    del number, frame
    raise Late(f"no end after {2 * DEADLY} s")


def kind(message: str) -> str:
    """An error without what is different each time."""
    return "".join(letter for letter in message if letter.isalpha() or letter == " ")[-60:]


def shortest(find: Find) -> bytes:
    """The same find in fewer bytes: pieces are left out as long as it stays."""
    if any(each in find.what for each in ("died", "no end", "it took")):
        return find.content
    content, size = find.content, max(1, len(find.content) // 2)
    while size:
        at = 0
        while at < len(content):
            less = content[:at] + content[at + size :]
            wrong, what = outcome(find.reader, find.suffix, less)
            if wrong and what.partition(":")[0] == find.what.partition(":")[0]:
                content = less
            else:
                at += size
        size //= 2
    return content


def save(find: Find, folder: Path) -> Path:
    """Keep it, for a test."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{find.reader}-{find.number}{find.suffix}"
    file.write_bytes(find.content)
    return file


def again(name: str, seed: int, number: int) -> None:
    """One input, shown and taken in, with the traceback of what happens."""
    suffix, content = damaged(name, seed, number)
    print(repr(content))
    try:
        if name in CLASSES:
            with tempfile.TemporaryDirectory() as folder:
                CLASSES[name].take(content, Path(folder))
        else:
            with written(suffix, content) as file:
                print(read(file, name).structures)
    except Exception:
        traceback.print_exc()


if __name__ == "__main__":
    main()

"""Kills, signals, full disks, flipped bits, cut files and second writers, on commands that write; what survives.

python experiments/faults/run.py --write               # 240 faults, 150 of them kills; goes on if stopped
python experiments/faults/run.py --cases 20 --seed 7
python experiments/faults/run.py --number 42           # that one again, with what the processes said
python experiments/faults/run.py --kills --write       # 100 kills of encode with two jobs, generate, convert, predict

A case is a function of the seed and its number: a command on tiny inputs in a folder of its own, a fault at some
moment, then the same command again. It is survived if that goes on by itself, or refuses in a clear line and then
succeeds afresh, and what is there at the end is what an undisturbed run leaves: the same files, no others, the same
bytes where no clock decides them. No process may outlive a killed one, and files of a user that have names as of
temporary files must be as they were. Anything else is a find. With --write the table goes into results.md beside this
file when all are done.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from commands import CARD, COMMANDS, KILLED, Command
from processes import Blow, Ended, Process, outliving
from serving import FILES, serving

import structpe
import structpe.tasks.training.fit
from structpe.errors import StructPEError
from structpe.system.files import append_line

HERE = Path(__file__).parent
KINDS = [*["kill"] * 10, "SIGTERM", "SIGHUP", "SIGINT", "full disk", "damage", "two writers"]
"""Of sixteen cases ten are kills; which command it is, and when, is drawn."""
DAMAGES = ("flipped bit", "cut file")
ALL = {**COMMANDS, **KILLED}
SECTION = "\n## Kills\n\n"
"""What begins the table of kills on the page."""
IGNORED = re.compile(r"Exception ignored in: <function .*?\nSystemExit: \d+\n", re.DOTALL)
"""What Python prints where a signal meets a fork in hooks of libraries; in use, runs are spawned and not forked."""


class Case(NamedTuple):
    """What became of a fault: ``went on``, ``refused`` and then done afresh, ``untouched`` by it, or a find."""

    number: int
    command: str
    kind: str
    outcome: str
    detail: str = ""


def main() -> None:
    """Try what the command line says."""
    given = arguments()
    torch.set_num_threads(1)
    numbers = range(given.cases) if given.number is None else [given.number]
    file = given.out / f"{'kills' if given.kills else 'seed'}-{given.seed}.jsonl"
    done = {} if given.number is not None else known(file)
    began, todo = time.monotonic(), [number for number in numbers if number not in done]
    print(f"seed {given.seed}, {len(numbers)} cases, {len(done)} of them done", flush=True)
    with serving() as address:
        for count, number in enumerate(todo, 1):
            found = case(given.seed, number, address, given.number is not None, given.kills)
            done[number] = found
            minutes = (time.monotonic() - began) / 60
            line = f"{number}: {found.command}, {found.kind}: {found.outcome} {found.detail}".rstrip()
            print(f"[{count}/{len(todo)}, {minutes:.1f} min] {line}", flush=True)
            if given.number is None:
                given.out.mkdir(parents=True, exist_ok=True)
                append_line(file, json.dumps(found._asdict()))
    cases = [done[number] for number in numbers]
    print("\n" + table(cases))
    if given.number is None and given.write:
        results = HERE / "results.md"
        before, _, kills = results.read_text(encoding="utf-8").partition(SECTION)
        parts = (before, page(cases, given.seed, True)) if given.kills else (page(cases, given.seed), kills)
        results.write_text(SECTION.join(filter(None, parts)), encoding="utf-8")
    raise SystemExit(any(each.outcome == "FIND" for each in cases))


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, help="how many; 240 by default, of kills alone 100")
    parser.add_argument("--kills", action="store_true", help="nothing but kills, of commands that write one thing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, help="only this case")
    parser.add_argument("--out", type=Path, default=Path("runs/faults"), help="where cases that are done are kept")
    parser.add_argument("--write", action="store_true", help="write the table into results.md beside this file")
    given = parser.parse_args()
    given.cases = given.cases or (100 if given.kills else 240)
    return given


def known(file: Path) -> dict[int, Case]:
    """Cases that an earlier call has done; finds are tried again."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    cases = [Case(**json.loads(line)) for line in lines if line.endswith("}")]
    return {each.number: each for each in cases if each.outcome != "FIND"}


def drawn(seed: int, number: int, kills: bool = False) -> tuple[Command, str, random.Random]:
    """The command and the kind of a case, and what draws the rest of it."""
    numbers = random.Random(int.from_bytes(hashlib.sha256(f"{seed} {number}".encode()).digest()[:8]))
    if kills:
        return list(KILLED.values())[number % len(KILLED)], "kill", numbers
    kind = KINDS[number % len(KINDS)]
    suit = [each for each in COMMANDS.values() if kind != "damage" or each.guarded]
    return numbers.choice(suit), kind, numbers


def case(seed: int, number: int, address: str, loud: bool = False, kills: bool = False) -> Case:
    """Try one."""
    command, kind, numbers = drawn(seed, number, kills)
    expected, length = undisturbed(command.name, address)
    with place(command, address) as folder:
        said: list[Ended] = []
        kind, wrong = strike(command, kind, folder, numbers, length, said)
        if left := outliving(folder):
            wrong = wrong or f"{len(left)} processes outlive it"
        outcome, detail = ("FIND", wrong) if wrong else again(command, folder, expected, said)
    met = kind == "two writers" or (kind not in DAMAGES and any(each.code for each in said[:-1]))
    if outcome == "untouched" and met:
        outcome = "went on"
    if loud:
        print("\n".join(f"--- exit code {each.code}\n{each.said}" for each in said))
    return Case(number, command.name, kind, outcome, detail)


@contextmanager
def place(command: Command, address: str) -> Iterator[Path]:
    """A folder with the inputs of a command."""
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        folder = Path(name) / "work"
        folder.mkdir()
        lay(command, folder, address)
        yield folder


def lay(command: Command, folder: Path, address: str) -> None:
    """Put the inputs into a folder."""
    command.lay(folder)
    command.lay_foreign(folder)
    if command.name == "data":
        (folder / CARD).write_text(json.dumps(card(address)), encoding="utf-8")


def card(address: str) -> dict[str, Any]:
    """Of a data set that the server has."""
    files = [
        {"name": name, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in FILES.items()
    ]
    texts = {"description": "made up.", "licence": "MIT", "citation": "none.", "reader": "tokens"}
    return {"name": "faults", "kind": "sequences", **texts, "base": f"{address}/", "files": files,
            "splits": {"train": {"file": "train.txt"}, "test": {"file": "test.txt"}}}  # fmt: skip


@cache
def undisturbed(name: str, address: str) -> tuple[dict[str, Any], Ended]:
    """What a command leaves that nothing befalls, and how it went."""
    command = ALL[name]
    with place(command, address) as folder:
        ended = Process(command.run, folder).end()
        if ended.code:
            raise SystemExit(f"{name} does not work even undisturbed, exit code {ended.code}: {ended.said}")
        return command.result(folder), ended


def strike(
    command: Command, kind: str, folder: Path, numbers: random.Random, whole: Ended, said: list[Ended]
) -> tuple[str, str]:
    """Let the fault befall the command; its full name, and what was wrong with how the command took it."""
    if kind == "two writers":
        pair = [Process(command.run, folder) for _ in range(2)]
        ended = [each.end() for each in pair]
        said += ended
        return kind, next((wrong for each in ended if (wrong := unclear(each))), "")
    if kind == "full disk":
        with full(folder, numbers) as largest:
            ended_once = Process(command.run, folder, Blow(largest=largest)).end()
        said.append(ended_once)
        return f"{kind} ({'file limit' if largest else 'file system'})", unclear(ended_once)
    if kind == "damage":
        if numbers.random() < 0.6:  # amid its work; else when it is done
            said.append(Process(command.run, folder, moment(signal.SIGKILL, numbers, whole)).end())
        else:
            said.append(Process(command.run, folder).end())
        return damage(command, folder, numbers), ""
    number = signal.SIGKILL if kind == "kill" else signal.Signals[kind]
    said.append(Process(command.run, folder, moment(number, numbers, whole)).end())
    allowed = (0, -number) if kind == "kill" else (0, 128 + number, -number)
    if command.name == "study" and said[0].code == 1 and "failed" in said[0].said:
        return kind, ""  # the fault hit one of its processes, and it said so
    loud = "Traceback" in IGNORED.sub("", said[0].said)
    return kind, "" if said[0].code in allowed and not loud else f"exit code {said[0].code}: {said[0].said[-200:]!r}"


def moment(number: int, numbers: random.Random, whole: Ended) -> Blow:
    """A signal before some look at the disk, or at some time."""
    if numbers.random() < 0.6:
        return Blow(number, event=numbers.randint(1, max(1, whole.events)))
    return Blow(number, after=numbers.uniform(0, whole.seconds))


@contextmanager
def full(folder: Path, numbers: random.Random) -> Iterator[int]:
    """A file system with little room, where this process may make one; else the largest size of a file, in bytes."""
    room = int(numbers.choice([1, 2, 4, 16, 64]) * numbers.uniform(1, 2) * 4096)
    mounted = numbers.random() < 0.5 and mount(folder)
    if not mounted:
        yield room
        return
    filler = folder / "inputs" / "filler"
    try:
        free = shutil.disk_usage(folder).free
        filler.write_bytes(bytes(max(0, free - room)))
        yield 0
        filler.unlink()
    finally:
        inside = folder.parent / "kept"
        filler.unlink(missing_ok=True)
        shutil.copytree(folder, inside, symlinks=True)
        subprocess.run(["umount", str(folder)], check=True, capture_output=True)
        shutil.rmtree(folder)
        inside.rename(folder)


def mount(folder: Path) -> bool:
    """Put a small file system in the place of a folder, with the same inputs; False where that is not allowed."""
    inside = folder.parent / "inside"
    shutil.copytree(folder, inside, symlinks=True)
    words = ["mount", "-t", "tmpfs", "-o", "size=16m", "faults", str(folder)]
    try:
        done = subprocess.run(words, capture_output=True).returncode == 0
    except OSError:
        done = False
    if done:
        shutil.copytree(inside, folder, symlinks=True, dirs_exist_ok=True)
    shutil.rmtree(inside)
    return done


def damage(command: Command, folder: Path, numbers: random.Random) -> str:
    """Flip a bit in a file that the command has made, or cut it. Without such a file nothing is damaged."""
    files = sorted({path for each in command.guarded for path in folder.glob(each) if path.is_file()})
    files = [path for path in files if path.stat().st_size]
    kind = numbers.choice(DAMAGES)
    if files:
        path = numbers.choice(files)
        content = bytearray(path.read_bytes())
        at = numbers.randrange(len(content))
        if kind == "cut file":
            content = content[:at]
        else:
            content[at] ^= 1 << numbers.randrange(8)
        path.write_bytes(content)
    return kind


def again(command: Command, folder: Path, expected: dict[str, Any], said: list[Ended]) -> tuple[str, str]:
    """The same command after the fault; how it ends, and what is wrong."""
    before = said[-1]
    said.append(second := Process(command.run, folder).end())
    refused = bool(second.code)
    if refused and command.name == "encode" and before.code == 0 and "exists already" in second.said:
        refused = False  # it was done before the fault came, which is as it should be
    if refused:
        if wrong := unclear(second):
            return "FIND", wrong
    elif used(command, folder):
        refused = True
    if refused:
        command.afresh(folder)
        said.append(third := Process(command.run, folder).end())
        if third.code:
            return "FIND", f"not even afresh: {third.said[-200:]}"
    if differ := different(expected, command.result(folder)):
        return "FIND", differ
    untouched = before.code == 0 and not refused
    return ("untouched" if untouched else "refused" if refused else "went on"), ""


def used(command: Command, folder: Path) -> bool:
    """Whether reading what was made refuses it."""
    try:
        if command.use is not None:
            command.use(folder)
    except StructPEError:
        return True
    return False


def unclear(ended: Ended) -> str:
    """What is wrong with how a command has refused; the empty string where nothing is."""
    if ended.code == 0:
        return ""
    if ended.code not in (1, 2):
        return f"exit code {ended.code}: {ended.said[-200:]!r}"
    lines = [line for line in ended.said.splitlines() if line.startswith("structpe: ")]
    if "Traceback" in ended.said or "bug in structpe" in ended.said or len(lines) != 1:
        return f"no clear line: {ended.said[-300:]!r}"
    return ""


def different(expected: dict[str, Any], found: dict[str, Any]) -> str:
    """What is more, less or another than it should be."""
    parts = [("left behind", sorted(set(found) - set(expected))), ("missing", sorted(set(expected) - set(found)))]
    parts.append(("other content", [name for name in expected if name in found and expected[name] != found[name]]))
    return "; ".join(f"{what}: {', '.join(names[:3])}" for what, names in parts if names)


def table(cases: list[Case]) -> str:
    """Outcomes by command and kind."""
    lines = [
        "| command | fault | cases | went on | refused, then afresh | not hit | finds |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    rows: dict[tuple[str, str], Counter[str]] = {}
    for each in sorted(cases, key=lambda case: (list(ALL).index(case.command), case.kind)):
        rows.setdefault((each.command, each.kind), Counter())[each.outcome] += 1
    rows["all", ""] = Counter(each.outcome for each in cases)
    for (command, kind), counts in rows.items():
        numbers = [counts[name] for name in ("went on", "refused", "untouched", "FIND")]
        lines.append(f"| {command} | {kind} | {counts.total()} | " + " | ".join(map(str, numbers)) + " |")
    return "\n".join(lines) + "\n"


def page(cases: list[Case], seed: int, of_kills: bool = False) -> str:
    """The table, and what it was made with; a page of its own, or the section of kills."""
    day, kills = datetime.datetime.now(datetime.UTC).date(), sum(each.kind == "kill" for each in cases)
    made = f"structpe {structpe.__version__}, torch {torch.__version__}, Python {platform.python_version()}"
    alone = "--kills " if of_kills else ""
    command = f"`python experiments/faults/run.py {alone}--cases {len(cases)} --seed {seed} --write`"
    finds = [f"- {each.number}: {each.command}, {each.kind}: {each.detail}" for each in cases if each.outcome == "FIND"]
    return ("" if of_kills else "# Faults\n\n") + (
        f"{len(cases)} faults, {kills} of them kills; {command}, {day}, {made}, {platform.system()}.\n\n"
        + table(cases)
        + ("\n" + "\n".join(finds) + "\n" if finds else "")
    )


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()

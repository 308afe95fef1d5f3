"""Measure the cost columns of the published tables again, without training again: a few steps of each row.

    python experiments/benchmarks/costs.py CORPORA                     # all tables; about twenty minutes, one thread
    python experiments/benchmarks/costs.py CORPORA --only zinc cora --seconds 5
    python experiments/benchmarks/costs.py CORPORA --tables            # nothing measured; what there is into the tables

Nothing else should run meanwhile. Each row is measured in a process of its own: encodings are computed anew, then come
training steps until there are enough or the time is over, then one validation. Minutes are computed: all steps and
validations of the row's configuration, each as long as those measured. A row that was measured less than a day ago is
not measured again, so that a call which was stopped goes on; the largest tables come last.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

from costs_tables import Measured, kept, write

from structpe.tasks.prediction.study import Key, StudyConfig, load_study

HERE = Path(__file__).parent
CATALOGUE = "catalogue"
ORDER = ("csl", "cora", "minesweeper", "zinc", CATALOGUE, "molhiv", "tolokers")
"""The small first."""
MADE = (*ORDER, "knowledge", "order", "activation")
"""Tables that are written; of the last three, costs are those of their trainings."""
DAY = 24 * 3600


def main() -> None:
    """Measure, then write the tables."""
    given = arguments()
    if given.row:
        from costs_row import measured

        study = load_study(given.study, [f"root={given.root}"])
        print(json.dumps(measured(study, study.keys([given.row])[0], given.seconds, given.scratch)), flush=True)
        return
    end = time.monotonic() + 60 * given.minutes
    if not given.tables:
        if (load := os.getloadavg()[0]) > 0.5:
            print(
                f"the load of this machine is {load:.1f}: something else runs, and times will be too long", flush=True
            )
        for name in [name for name in ORDER if name in given.only]:
            measure(name, given, end)
    for name in given.only:
        if name != CATALOGUE and (given.results / name / "table.csv").exists():
            write(HERE / f"{name}.yaml", given.results / name)
    if CATALOGUE in given.only and given.results == HERE / "results":
        subprocess.run([sys.executable, str(HERE.parent / "catalogue" / "run.py"), "--table"], check=True)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", help="the folder of the corpora")
    parser.add_argument("--only", nargs="+", default=list(MADE), choices=MADE, help="these tables")
    parser.add_argument("--seconds", type=float, default=8.0, help="of steps for each row (default: 8)")
    parser.add_argument("--minutes", type=float, default=60.0, help="after which no further row is begun (default: 60)")
    parser.add_argument("--tables", action="store_true", help="measure nothing")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="where the tables lie")
    parser.add_argument("--scratch", type=Path, default=Path("runs/costs"), help="for what is removed afterwards")
    parser.add_argument("--study", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(name: str, given: argparse.Namespace, end: float) -> None:
    """All rows of a table that are not measured yet; prints a line for each."""
    if name == CATALOGUE:
        catalogue(end)
        return
    file = HERE / f"{name}.yaml"
    study = load_study(file, [f"root={given.root}"])
    known = kept(given.results / name)
    todo = [key for key in rows(study) if not recent(known.get(row_of(key)))]
    for count, key in enumerate(todo, 1):
        if time.monotonic() > end:
            print(f"{name}: no time for {len(todo) - count + 1} rows; the same command goes on with them", flush=True)
            return
        began, load = time.monotonic(), os.getloadavg()[0]
        found = in_a_process(file, key, given)
        known[row_of(key)] = {**found, **circumstances(), "load": round(load, 1)}
        text = json.dumps(known, indent=1) + "\n"
        (given.results / name / "costs.json").write_text(text, encoding="utf-8")
        told = f"{found['step_ms']:.1f} ms a step, {found['steps']} steps, {found['peak_mib']:.0f} MiB"
        print(f"[{name} {count}/{len(todo)}, {time.monotonic() - began:.0f} s] {row_of(key)}: {told}", flush=True)


def rows(study: StudyConfig) -> Iterator[Key]:
    """The first run of each row."""
    seen: dict[str, Key] = {}
    for key in list(study.keys()):
        seen.setdefault(row_of(key), key)
    yield from seen.values()


def row_of(key: Key) -> str:
    """A row is a run without its seed."""
    return f"{key.data}/{key.model}/{key.position}"


def recent(found: Measured | None) -> bool:
    """Whether that was measured less than a day ago."""
    return found is not None and time.time() - found["at"] < DAY


def in_a_process(file: Path, key: Key, given: argparse.Namespace) -> dict[str, Any]:
    """Measure a row in a fresh process, whose memory is its own."""
    shutil.rmtree(given.scratch, ignore_errors=True)
    words = [sys.executable, __file__, given.root, "--study", str(file), "--row", str(key)]
    words += ["--seconds", str(given.seconds), "--scratch", str(given.scratch)]
    done = subprocess.run(words, capture_output=True, text=True)
    shutil.rmtree(given.scratch, ignore_errors=True)
    if done.returncode:
        raise SystemExit(f"{key}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def circumstances() -> dict[str, Any]:
    """When, and of which commit."""
    words = ["git", "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(words, cwd=HERE, capture_output=True, text=True).stdout.strip()
    return {"at": time.time(), "day": datetime.datetime.now(datetime.UTC).date().isoformat(), "commit": commit}


def catalogue(end: float) -> None:
    """Costs of all position models, each in a fork of one process; those of today and of this commit stay."""
    import multiprocessing

    sys.path.insert(0, str(HERE.parent / "catalogue"))
    from run import COST, circumstances, jobs, one

    now = circumstances()
    todo = [job for job in jobs([COST], None, [1]) if not job.result.exists() or not same(job.result, now)]
    for count, job in enumerate(todo, 1):
        if time.monotonic() > end:
            print(f"{CATALOGUE}: no time for {len(todo) - count + 1} models; the same command goes on", flush=True)
            return
        with multiprocessing.get_context("fork").Pool(1) as pool:
            print(f"[{CATALOGUE} {count}/{len(todo)}] {pool.apply(one, (job, Path()))}", flush=True)


def same(result: Path, now: dict[str, str]) -> bool:
    """Whether that was measured today, and of this commit."""
    found = json.loads(result.read_text(encoding="utf-8"))
    return all(found.get(name) == now[name] for name in ("date", "commit"))


if __name__ == "__main__":
    main()

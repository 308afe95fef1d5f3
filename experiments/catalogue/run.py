"""Every position model that applies, on tasks of different structure, one budget; what is finished is not done again.

    python experiments/catalogue/run.py --data CORPORA                          # everything; hours on two cores
    python experiments/catalogue/run.py --data CORPORA --tasks csl --models rwse signnet
    python experiments/catalogue/run.py --data CORPORA --tasks scan-length cogs --seeds 0 1 2    # models of sequences
    python experiments/catalogue/run.py --table                                 # write docs/comparison.md and its plots

CORPORA is a folder that holds ``tinyshakespeare``, ``scan``, ``cogs``, ``listops`` and ``zinc12k``. Each finished
run adds a line to ``results/TASK.jsonl``. After an interruption, start the same command again: finished runs are not
repeated.
"""

from __future__ import annotations

import argparse
import datetime
import multiprocessing
import os
import platform
import subprocess
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import results
import torch
from longer import CHOSEN, LONGER
from tasks import TASKS

import structpe
from structpe.errors import StructPEError

HERE = Path(__file__).parent
COST = "cost"
ALL = {**TASKS, **LONGER}


@dataclass(frozen=True)
class Job:
    """One model on one task with one seed; the task ``cost`` measures time and memory."""

    task: str
    model: str
    config: Any
    seed: int


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the corpora")
    parser.add_argument("--tasks", nargs="+", default=[*TASKS, COST], choices=[*ALL, COST])
    parser.add_argument("--models", nargs="+", help="names as in the table; by default all, and for longer texts some")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="one model each, one thread each")
    parser.add_argument("--table", action="store_true", help="write docs/comparison.md from what is finished")
    given = parser.parse_args()
    if given.table:
        from table import write

        write(results.read(), HERE.parents[1] / "docs")
    elif given.data is None:
        parser.error("give --data, the folder of the corpora, or ask for --table")
    else:
        done = results.finished()
        todo = jobs(given.tasks, given.models, given.seeds)
        run([job for job in todo if (job.task, job.model, job.seed) not in done], given)


def jobs(tasks: list[str], models: list[str] | None, seeds: list[int]) -> Iterator[Job]:
    """In the order in which they are done: each seed of all tasks before the next."""
    from train import configs

    for seed in seeds:
        for task in tasks:
            if task == COST and seed != seeds[0]:
                continue
            of_task = configs(ALL["listops" if task == COST else task])
            chosen = models or (CHOSEN if task in LONGER else of_task)
            for model, config in of_task.items():
                if model in chosen:
                    yield Job(task, model, config, seed)


def run(todo: list[Job], given: argparse.Namespace) -> None:
    """Do the jobs, several at a time, and say how each has ended. Costs are measured alone, at the end."""
    start = time.monotonic()
    for part, processes in (
        ([j for j in todo if j.task != COST], given.processes),
        ([j for j in todo if j.task == COST], 1),
    ):
        with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
            futures = [pool.submit(one, job, given.data) for job in part]
            for done, future in enumerate(as_completed(futures), start=1):
                minutes = (time.monotonic() - start) / 60
                found = future.result()
                if "fault" not in found:
                    results.add(found)
                said = found.get("fault") or found.get("scores") or found.get("why not") or found["time"]
                name = f"{found['task']} {found['model']} {found['seed']}"
                print(f"[{done}/{len(part)}, {minutes:.1f} min] {name}: {said}", flush=True)


def one(job: Job, data: Path) -> dict[str, Any]:
    """Do one job. That a model does not apply is a result too; a fault of ours is not."""
    from cost import cost
    from train import measured

    torch.set_num_threads(1)
    with_what = circumstances()
    try:
        found = cost(job.config) if job.task == COST else measured(ALL[job.task](data), job.config, job.seed)
    except StructPEError as error:
        found = {"why not": str(error)}
    except Exception:  # shown and not stored, so that the other models still run
        return {**vars(job), "fault": traceback.format_exc()}
    return {**vars(job), **found, **with_what}


@cache  # after a long training the repository may be at another commit
def circumstances() -> dict[str, str]:
    """Where and with what a figure was made."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False
    )
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit.stdout.strip(),
        "structpe": structpe.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": f"one thread of a {os.cpu_count()}-core {platform.machine()} CPU",
    }


if __name__ == "__main__":
    main()

"""Every position model that applies, on tasks of different structure, one budget; what is finished is not done again.

    python experiments/catalogue/run.py --data CORPORA                          # everything; hours on two cores
    python experiments/catalogue/run.py --data CORPORA --tasks csl --models rwse signnet
    python experiments/catalogue/run.py --table                                 # write docs/comparison.md and its plots

CORPORA is a folder that holds ``tinyshakespeare``, ``scan``, ``listops`` and ``zinc12k``. Each finished run leaves one
JSON file under ``results/``; a run that was killed starts anew, those that were finished are kept.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import os
import platform
import subprocess
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tasks import TASKS

import structpe
from structpe.errors import StructPEError

HERE = Path(__file__).parent
COST = "cost"


@dataclass(frozen=True)
class Job:
    """One model on one task with one seed; the task ``cost`` measures time and memory."""

    task: str
    model: str
    config: Any
    seed: int

    @property
    def result(self) -> Path:
        return HERE / "results" / self.task / f"{self.model.replace(' ', '_')}.{self.seed}.json"


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the corpora")
    parser.add_argument("--tasks", nargs="+", default=[*TASKS, COST], choices=[*TASKS, COST])
    parser.add_argument("--models", nargs="+", help="names as in the table; by default all")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="one model each, one thread each")
    parser.add_argument("--table", action="store_true", help="write docs/comparison.md from what is finished")
    given = parser.parse_args()
    if given.table:
        from table import write

        write(HERE / "results", HERE.parents[1] / "docs")
    elif given.data is None:
        parser.error("give --data, the folder of the corpora, or ask for --table")
    else:
        run([job for job in jobs(given.tasks, given.models, given.seeds) if not job.result.exists()], given)


def jobs(tasks: list[str], models: list[str] | None, seeds: list[int]) -> Iterator[Job]:
    """In the order in which they are done: each seed of all tasks before the next."""
    from train import configs

    for seed in seeds:
        for task in tasks:
            if task == COST and seed != seeds[0]:
                continue
            of_task = configs(TASKS["listops" if task == COST else task])
            for model, config in of_task.items():
                if models is None or model in models:
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
                print(f"[{done}/{len(part)}, {minutes:.1f} min] {future.result()}", flush=True)


def one(job: Job, data: Path) -> str:
    """Do one job and keep what came out; a model that does not apply is a result too."""
    from cost import cost
    from train import measured

    torch.set_num_threads(1)
    try:
        found = cost(job.config) if job.task == COST else measured(TASKS[job.task](data), job.config, job.seed)
    except StructPEError as error:
        found = {"why not": str(error)}
    except Exception:  # a fault of ours: shown and left undone, so that the other models still run
        return f"{job.task} {job.model}: FAULT\n{traceback.format_exc()}"
    job.result.parent.mkdir(parents=True, exist_ok=True)
    half = job.result.with_suffix(".half")
    half.write_text(json.dumps({**vars(job), **found, **circumstances()}, indent=1) + "\n", encoding="utf-8")
    os.replace(half, job.result)
    return f"{job.task} {job.model} {job.seed}: {found.get('scores', found)}"


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

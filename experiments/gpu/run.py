"""All that awaits a GPU, in the order of its value, until the minutes are over.

    python experiments/gpu/run.py CORPORA --minutes 60
    python experiments/gpu/run.py CORPORA --device cpu --quick   # tries everything without a GPU, with a few steps each

1. ``kernels``: each kernel is compared with ``dense``, then timed (``experiments/speed/gpu.py``). If one differs,
   nothing else is run: what it computed would be worth nothing.
2. ``encodings``: those of a device are compared with those of the CPU, and timed (``experiments/speed/on_device.py``).
3. ``step``: a training step of GPS beside PyTorch Geometric's (``experiments/speed/gps.py``).
4. Studies (``experiments/benchmarks``): peptides, ZINC, molhiv, minesweeper, several trainings at a time. Then texts of
   WebNLG by three models (``experiments/graph_to_text/run.py``). Trainings share a GPU better where
   ``nvidia-cuda-mps-control -d`` was started before.

Each job is a process of its own, whose output is ``OUT/NAME.txt``. When the minutes are over, the one that runs is told
to end, which leaves a checkpoint; the same call goes on with it. What is done is not done again. A job whose data are
not in CORPORA is left out, and said to be. The exit status is 1 if a job failed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from structpe.system.files import atomic_text

__all__ = ["Job", "done", "jobs", "work"]

ROOT = Path(__file__).parents[2]
STUDIES = {
    "peptides-tuned": "peptides_func",
    "zinc-tuned": "zinc12k",
    "molhiv-tuned": "molecules/moleculenet",
    "minesweeper-tuned": "hetero",
}
"""The studies ``benchmarks/NAME.yaml``, and where their data are in CORPORA."""
MODELS = ("linearised", "graformer", "zhu-cnn")
JOBS = max(1, min(6, (os.cpu_count() or 1) // 2))
"""Trainings at a time: steps of small models wait for the host, where each has two cores then."""
QUICK = ["--training.steps", "2", "--training.validation.every", "2", "--seeds", "[0]"]
GRACE = 60.0
"""Seconds that a job gets to write its checkpoint."""


@dataclass(frozen=True)
class Job:
    """A process to be run.

    Attributes:
        name: of its output, and in the list of what is done.
        words: the command line.
        needs: a folder that must be there.
        first: whether nothing else may run if it fails.
    """

    name: str
    words: list[str]
    needs: Path | None = None
    first: bool = False


def jobs(given: argparse.Namespace) -> Iterator[Job]:
    """All jobs, the most valuable first."""
    speed, device = ROOT / "experiments" / "speed", str(given.device)
    quick, minutes = ["--quick"] if given.quick else [], ["--minutes", str(max(1.0, given.minutes / 4))]
    corpora = [str(given.corpora)] if (given.corpora / "zinc12k").is_dir() and not given.quick else []
    yield Job("kernels", [str(speed / "gpu.py"), *corpora, "--device", device, *quick, *minutes], first=True)
    yield Job("encodings", [str(speed / "on_device.py"), "--device", device, *quick])
    rounds = ["--rounds", "1", "--batch", "8"] if given.quick else []
    words = [str(speed / "gps.py"), str(given.corpora), "--device", device, "--threads", "1", *rounds]
    yield Job("step", words, given.corpora / "peptides_func")
    accelerator = ["--training.hardware.accelerator", "cpu" if given.device.type == "cpu" else "gpu"]
    for name, folder in STUDIES.items():
        words = ["-m", "structpe", "study", str(ROOT / "experiments" / "benchmarks" / f"{name}.yaml")]
        words += ["--root", str(given.corpora), "--jobs", str(JOBS)]
        words += ["--out", str(given.out / name), *accelerator, *(QUICK if given.quick else [])]
        yield Job(name.partition("-")[0], words, given.corpora / folder)
    yield from texts(given)


def texts(given: argparse.Namespace) -> Iterator[Job]:
    """Texts of WebNLG, seed by seed."""
    changed: dict[str, Any] = {"training.hardware.accelerator": "cpu" if given.device.type == "cpu" else "gpu"}
    if given.quick:
        changed |= {"training.steps": 2, "training.validation.every": 2, "dev_texts": 4, "search.longest": 4}
    for seed in [1] if given.quick else [1, 2, 3]:
        words = [str(ROOT / "experiments" / "graph_to_text" / "run.py"), "webnlg", "--base", "gpu"]
        words += ["--data", str(given.corpora), "--models", *MODELS, "--seeds", str(seed)]
        words += ["--out", str(given.out / "texts")]
        words += ["--results", str(given.out / "texts"), "--set", *(f"{key}={value}" for key, value in changed.items())]
        yield Job(f"webnlg-{seed}", words, given.corpora / "webnlg" / "challenge2017")


def done(out: Path) -> dict[str, Any]:
    """What became of each job so far."""
    file = out / "jobs.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def work(todo: list[Job], out: Path, end: float, grace: float = GRACE) -> dict[str, str]:
    """Run the jobs that are not done, one after the other, until a moment; how each ended, in words.

    Args:
        todo: jobs.
        out: folder for outputs and the list of what is done.
        end: as ``time.monotonic`` tells it.
        grace: seconds that a job gets to end.
    """
    out.mkdir(parents=True, exist_ok=True)
    told: dict[str, str] = {}
    for job in todo:
        known = done(out)
        if known.get(job.name, {}).get("state") == "done":
            told[job.name] = f"done before, in {known[job.name]['minutes']:.1f} min"
        elif job.needs is not None and not job.needs.is_dir():
            told[job.name] = f"left out: there is no {job.needs}"
        elif time.monotonic() >= end:
            told[job.name] = "no time left; the same call goes on with it"
        else:
            print(f"{job.name}: {' '.join(job.words)}", flush=True)
            state, minutes = _run(job, out / f"{job.name}.txt", end, grace)
            minutes += known.get(job.name, {}).get("minutes", 0.0)
            known[job.name] = {"state": state, "minutes": minutes, "device": where()}
            atomic_text(out / "jobs.json", json.dumps(known, indent=1) + "\n")
            told[job.name] = f"{state}, {minutes:.1f} min; {out / job.name}.txt"
        print(f"{job.name}: {told[job.name]}", flush=True)
        if job.first and told[job.name].startswith("failed"):
            print("nothing else is run: what it would compute is not to be trusted", flush=True)
            break
    return told


def _run(job: Job, log: Path, end: float, grace: float) -> tuple[str, float]:
    """How it ended, ``done``, ``stopped`` or ``failed``, and the minutes that it took."""
    began = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    with log.open("a", encoding="utf-8") as stream:
        process = subprocess.Popen(
            [sys.executable, *job.words], stdout=stream, stderr=subprocess.STDOUT, cwd=ROOT, env=environment
        )
        state = "failed"
        try:
            state = "done" if process.wait(max(0.0, end - time.monotonic())) == 0 else "failed"
        except subprocess.TimeoutExpired:
            state = "stopped"
        finally:
            if process.poll() is None:  # also where this process is interrupted
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(grace)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
    return state, (time.monotonic() - began) / 60


def where() -> str:
    """The device, in words."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"


def main() -> int:
    """Run what is left; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0, help="after which all is stopped (default: 60)")
    parser.add_argument("--out", type=Path, default=Path("runs/gpu"))
    parser.add_argument("--only", nargs="+", help="these jobs")
    parser.add_argument("--device", type=torch.device, default=torch.device("cuda"))
    parser.add_argument("--quick", action="store_true", help="a few steps of each, to try the script")
    given = parser.parse_args()
    given.corpora, given.out = given.corpora.resolve(), given.out.resolve()
    if given.device.type == "cuda" and not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU; run it on a machine with CUDA, or try the script with --device cpu --quick")
    all_jobs = list(jobs(given))
    if unknown := set(given.only or []) - {job.name for job in all_jobs}:
        sys.exit(f"there is no job {', '.join(sorted(unknown))}; there are {', '.join(job.name for job in all_jobs)}")
    end = time.monotonic() + 60 * given.minutes
    print(f"{where()}, torch {torch.__version__}, {given.minutes:g} minutes, results in {given.out}", flush=True)
    told = work([job for job in all_jobs if given.only is None or job.name in given.only], given.out, end)
    print("\n" + "\n".join(f"{name:10} {how}" for name, how in told.items()))
    return int(any(how.startswith("failed") for how in told.values()))


if __name__ == "__main__":
    sys.exit(main())

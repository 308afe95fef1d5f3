"""Runs: one training each, in a folder, begun, interrupted, gone on with and finished; one file per kind."""

from structpe.tasks.runs.base import RUNS, Run, load, load_run, run_of, train

__all__ = ["RUNS", "Run", "load", "load_run", "run_of", "train"]

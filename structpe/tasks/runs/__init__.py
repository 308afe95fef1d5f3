"""Runs: trainings in a folder, which can be interrupted and resumed; one file per kind."""

from structpe.tasks.runs.base import RUNS, Run, load, load_config, load_run, run_of, train

__all__ = ["RUNS", "Run", "load", "load_config", "load_run", "run_of", "train"]

"""Benchmarks: graphs with targets, official splits and official metrics."""

from structpe.benchmarks.base import BENCHMARKS, Benchmark, Objective, Split, load

__all__ = ["BENCHMARKS", "Benchmark", "Objective", "Split", "load"]

"""Data sets: what they are, how to get them, what reads them, their official splits and metrics.

A card per set, in ``cards/``; a folder per family of sets that are more than items to be read one by one.
"""

from structpe.datasets.base import BENCHMARKS, Benchmark, Split, load
from structpe.datasets.catalogue import Card, Corpus, CorpusError, card, cards, read_card
from structpe.datasets.fetching import Hooks, find, get
from structpe.datasets.records import Report, verify
from structpe.datasets.samples import sample

__all__ = [
    "BENCHMARKS",
    "Benchmark",
    "Card",
    "Corpus",
    "CorpusError",
    "Hooks",
    "Report",
    "Split",
    "card",
    "cards",
    "find",
    "get",
    "load",
    "read_card",
    "sample",
    "verify",
]

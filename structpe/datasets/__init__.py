"""Data sets: cards that describe them, how to get and read them, their official splits and metrics.

Each set has a card in ``cards/``. Benchmarks, which are more than items to be read one by one, have a file per family.
"""

from structpe.datasets.base import BENCHMARKS, Benchmark, Split, benchmark, load
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
    "benchmark",
    "card",
    "cards",
    "find",
    "get",
    "load",
    "read_card",
    "sample",
    "verify",
]

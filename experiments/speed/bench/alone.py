"""The second table: every encoding of the registry, on each of several samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from samples import sample
from tables import MISSING, Row, Table, number
from turns import medians

from structpe.encodings import ENCODINGS, Encoding
from structpe.errors import StructPEError

__all__ = ["TABLE"]

SAMPLES = ("200 parses", "600 AMR graphs", "160 knowledge graphs", "1,000 molecules", "32 drawn trees")


def _measure(name: str, rounds: int) -> Iterator[Sequence[str]]:
    """One line: microseconds per graph of each sample, and in its own words why it does not take one."""
    encodings, reasons = {}, []
    for graphs in SAMPLES:
        try:
            encodings[graphs] = _tried(name, graphs)
        except StructPEError as error:
            reasons.append(str(error))
    took = medians({graphs: partial(each.many, sample(graphs)) for graphs, each in encodings.items()}, rounds)
    cells = [number(took[graphs] / len(sample(graphs)) * 1e6) if graphs in took else MISSING for graphs in SAMPLES]
    yield [name, *cells, reasons[0] if reasons else ""]


def _tried(name: str, graphs: str) -> Encoding:
    """It with its defaults, and with the labels of a sample, which it has encoded once: that warms it up.

    Raises:
        StructPEError: it cannot.
    """
    encoding = ENCODINGS[name]().fit(sample(graphs))
    encoding.many(sample(graphs))
    return encoding


TABLE = Table(
    "Every encoding",
    ("encoding", *(f"{graphs.split(maxsplit=1)[1]}, µs each" for graphs in SAMPLES), "why not"),
    [Row(name, "samples", partial(_measure, name)) for name in ENCODINGS],
    rounds=3,
)

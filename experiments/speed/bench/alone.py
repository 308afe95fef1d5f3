"""The second table: every encoding of the registry, on each of several samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from quantities import flat, padded, without
from samples import sample
from tables import MISSING, Row, Table, number
from turns import medians

from structpe.encodings import ENCODINGS, Encoding
from structpe.errors import StructPEError

__all__ = ["TABLE"]

SAMPLES = ("parses", "AMR graphs, directed", "knowledge graphs", "molecules", "drawn trees")
OTHERS = {"flat": flat, "without numba": without}
"""How the last sample, which nearly all encodings take, is encoded besides."""


def _measure(name: str, rounds: int) -> Iterator[Sequence[str]]:
    """One line: microseconds per graph of each sample, and in its own words why it does not take one."""
    encodings, reasons = {}, []
    for graphs in SAMPLES:
        try:
            encodings[graphs] = _tried(name, graphs)
        except StructPEError as error:
            reasons.append(str(error))
    runs = {graphs: partial(padded, [each], sample(graphs)) for graphs, each in encodings.items()}
    if last := encodings.get(SAMPLES[-1]):
        runs |= {way: partial(run, [last], sample(SAMPLES[-1])) for way, run in OTHERS.items()}
    took = medians(runs, rounds)
    counts = [(way, len(sample(way if way in SAMPLES else SAMPLES[-1]))) for way in (*SAMPLES, *OTHERS)]
    cells = [number(took[way] / count * 1e6) if way in took else MISSING for way, count in counts]
    yield [name, *cells, reasons[0] if reasons else ""]


def _tried(name: str, graphs: str) -> Encoding:
    """It with its defaults, and with the labels of a sample, which it has encoded once: that warms it up.

    Raises:
        StructPEError: it cannot.
    """
    encoding = ENCODINGS[name]().fit(sample(graphs))
    padded([encoding], sample(graphs))
    return encoding


TABLE = Table(
    "every-encoding",
    "Every encoding",
    (
        "encoding",
        *(f"{graphs.partition(',')[0]}, µs each" for graphs in SAMPLES),
        *(f"{SAMPLES[-1]}, {way}, µs each" for way in OTHERS),
        "why not",
    ),
    [Row(name, "samples", partial(_measure, name)) for name in ENCODINGS],
    rounds=3,
)

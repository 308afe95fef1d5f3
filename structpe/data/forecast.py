"""A forecast of the time and the bytes that encoding a list of structures takes, from a sample."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from structpe.data.store_index import pack
from structpe.encodings.base import Encoding
from structpe.structure import Structure
from structpe.system.progress import duration

__all__ = ["Forecast", "forecast"]

_SAMPLE = 200


@dataclass(frozen=True)
class Forecast:
    """The cost of encoding.

    Attributes:
        seconds: of one process.
        size: bytes on disk.
    """

    seconds: float
    size: int

    def text(self, jobs: int = 1) -> str:
        """Such as ``about 3 min and 1.2 GiB``, for a number of processes that do not wait for each other."""
        units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")]
        scale, name = next((each for each in units if self.size >= each[0]), (1, "bytes"))
        return f"about {duration(self.seconds / jobs)} and {self.size / scale:.3g} {name}"


def forecast(
    structures: Sequence[Structure], encodings: Sequence[Encoding], times: float = 1.0, reading: float = 0.0
) -> Forecast:
    """Encode structures at equal distances in the list, and scale time and bytes by units or pairs of units.

    Args:
        structures: one or more.
        encodings: fitted, if they need to be.
        times: size of the whole data set, as a multiple of the given structures.
        reading: seconds that reading the given structures took.

    Raises:
        EncodingError: a structure of the sample lacks what an encoding needs.
    """
    sample = structures[:: max(1, len(structures) // _SAMPLE)]
    seconds, size = reading * times, 0.0
    for encoding in encodings:
        encoding.many(sample[:1])  # work that is done once per process, such as compilation, does not count
        began = time.perf_counter()
        column = encoding.many(sample)
        took = time.perf_counter() - began
        power = 2 if encoding.arity == 2 and not encoding.sparse else 1
        scale = times * sum(s.unit_count**power for s in structures) / sum(s.unit_count**power for s in sample)
        seconds += took * scale
        size += scale * sum(array.nbytes for array in pack([column]).values())
    return Forecast(seconds, int(size))

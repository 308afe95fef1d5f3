"""The samples that structpe ships: small files of each kind of structure, in the public domain."""

from __future__ import annotations

from pathlib import Path

from structpe.datasets.card import CorpusError
from structpe.errors import listed

__all__ = ["sample"]

PACKAGE = Path(__file__).parents[1]
PLACES = (PACKAGE / "samples", PACKAGE.parent / "datasets")
"""Where they are in an installed wheel, and in a checkout."""


def sample(name: str) -> Path:
    """Path of a sample or of a file in it, such as ``amr_sample/test.txt``.

    The samples are ``amr_sample``, ``kg_sample``, ``trees_sample``, ``molecules_sample`` and ``diameters_sample``: for
    first steps and tests, not benchmarks.

    Raises:
        CorpusError: there is no such sample.
    """
    for place in PLACES:
        if (place / name).exists():
            return place / name
    known = sorted({folder.name for place in PLACES for folder in place.glob("*_sample")})
    raise CorpusError(f"there is no sample {name!r}; give one of {listed(known)}, or a file in it")

"""The samples that structpe ships: small files of each kind of structure, in the public domain."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from structpe.datasets.catalogue import CorpusError
from structpe.errors import listed
from structpe.system.files import atomic_write

__all__ = ["sample", "write_samples"]

PACKAGE = Path(__file__).parents[1]
PLACES = (PACKAGE / "samples", PACKAGE.parent / "datasets")
"""The folders of samples in an installed wheel, and in a checkout."""
EXAMPLES = (PACKAGE / "samples" / "examples", PACKAGE.parent / "examples")
"""The folders of configurations that read them, likewise."""


def sample(name: str) -> Path:
    """Path of a sample or of a file in it, such as ``amr_sample/test.txt``.

    The samples are ``amr_sample``, ``kg_sample``, ``trees_sample``, ``molecules_sample`` and ``diameters_sample``, for
    first steps and tests, ``roles_sample``, for lesson 7 of the course, and ``drugs_sample`` and ``long_amr_sample``,
    whose graphs are of a usual size. They are not benchmarks.

    Raises:
        CorpusError: there is no such sample.
    """
    for place in PLACES:
        if (place / name).exists():
            return place / name
    known = sorted({folder.name for place in PLACES for folder in place.glob("*_sample")})
    raise CorpusError(f"there is no sample {name!r}; give one of {listed(known)}, or a file in it")


def write_samples(folder: Path) -> list[Path]:
    """Write the samples to ``folder/datasets`` and the example configurations to ``folder/examples``.

    Raises:
        CorpusError: one of these folders exists.
    """
    parts = {folder / "datasets": sample("amr_sample").parent, folder / "examples": next(filter(Path.is_dir, EXAMPLES))}
    for part in parts:
        if part.exists():
            raise CorpusError(f"{part} exists already, and nothing was written; give another folder")
    files = []
    for part, source in parts.items():
        inside = source.glob("*_sample/*") if part.name == "datasets" else source.glob("*")
        for file in sorted(each for each in inside if each.is_file() and each.suffix != ".py"):
            files.append(part / file.relative_to(source))
            files[-1].parent.mkdir(parents=True, exist_ok=True)
            atomic_write(files[-1], partial(shutil.copyfile, file))
    return files

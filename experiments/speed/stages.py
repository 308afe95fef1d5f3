"""From a file to a batch: microseconds per structure of each stage, of the time of the processor, on one thread.

    python experiments/speed/stages.py                                  # molecules, AMR graphs and parses of datasets/
    python experiments/speed/stages.py FILE.csv FILE.txt FILE.conllu    # or your files: SMILES, PENMAN, CoNLL-U

read     the file, with everything that the reader does, the check included
check    ``Structure(...)`` of fields that are there: conversion and checks
encode   :data:`ENCODINGS`, all structures at once; per encoding, and together
batch    encoded structures to batches of 32, with the positions of these encodings
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path

import torch
from threadpoolctl import threadpool_limits

import structpe
from structpe.data.batch import Example, collate
from structpe.encodings import Encoding, LabelPath, Laplacian, RandomWalk, UndirectedDistance
from structpe.structure import Structure

SAMPLES = ("diameters_sample/molecules.csv", "amr_sample/train.txt", "trees_sample/sample.conllu")
FORMATS: Mapping[str, str | None] = {".txt": "amr"}
ENCODINGS: tuple[Encoding, ...] = (UndirectedDistance(), LabelPath(), Laplacian(), RandomWalk())
COUNT, BATCH, ROUNDS = 2000, 32, 5


def main() -> None:
    """Print a line for each file."""
    torch.set_num_threads(1)
    folder = Path(__file__).parents[2] / "datasets"
    files = [Path(each) for each in sys.argv[1:]] or [folder / each for each in SAMPLES]
    names = [each.name for each in ENCODINGS]
    print(f"structures {COUNT}, median of {ROUNDS} rounds; microseconds per structure")
    print("| file | nodes | read | check |", " | ".join(names), "| encode | batch |")
    print("|---" * (6 + len(names)) + "|")
    with threadpool_limits(1):
        for file in files:
            found = list(read(file))
            structures = list(islice(cycle(found), COUNT))  # all again from the first, if there are fewer
            once = median(lambda file=file: list(read(file)), len(found))  # type: ignore[misc]
            check, *encode, batch = [median(stage, len(structures)) for stage in stages(structures)]
            nodes = statistics.mean(each.size for each in structures)
            cells = [once, check, *encode, sum(encode), batch]
            print(f"| {file.name} | {nodes:.1f} |", " | ".join(f"{cell:.3g}" for cell in cells), "|", flush=True)


def read(file: Path) -> Iterator[Structure]:
    """The structures of a file, :data:`COUNT` at the most."""
    return (item.structure for item in islice(structpe.read(file, FORMATS.get(file.suffix)), COUNT))


def stages(structures: Sequence[Structure]) -> Iterator[Callable[[], object]]:
    """What is timed after the file is read, in the order of the columns."""
    fitted = [each.fit(structures) for each in ENCODINGS]
    columns = {each: each.many(structures) for each in fitted}
    parts = [range(first, min(first + BATCH, len(structures))) for first in range(0, len(structures), BATCH)]

    def batches() -> None:
        for part in parts:
            collate([Example.of(structures[i], {e: column[i] for e, column in columns.items()}) for i in part])

    yield lambda: [made_again(each) for each in structures]
    for encoding in fitted:
        yield lambda encoding=encoding: encoding.many(structures)  # type: ignore[misc]
    yield batches


def made_again(given: Structure) -> Structure:
    """An equal structure."""
    return Structure(
        given.nodes,
        given.edges,
        given.relations,
        given.directed,
        given.order,
        given.root,
        given.units,
        given.owner,
        given.features,
        given.name,
    )


def median(stage: Callable[[], object], count: int) -> float:
    """Microseconds per structure."""
    stage()
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        stage()
        times.append(time.process_time() - start)
    return statistics.median(times) / count * 1e6


if __name__ == "__main__":
    main()

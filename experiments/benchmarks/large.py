"""A graph as large as ogbn-arxiv, made up, in OGB's format: what a node benchmark of that size takes.

    python experiments/benchmarks/large.py runs/large/data
    structpe study experiments/benchmarks/large.yaml --root runs/large --jobs 1 --threads 2

169,343 papers of 40 fields and 400 topics, 1,166,243 citations of earlier papers, 128 numbers for each paper, and the
sizes of ogbn-arxiv's split by year. Half of the citations stay within a topic, some within a field; a few papers are
cited often. What a paper's numbers say of its field is weak, so that citations are needed. Accuracies on it say nothing
of ogbn-arxiv; time and memory do, as they follow from the sizes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from structpe.datasets.ogb import safe_loaders

PAPERS, CITATIONS, NUMBERS, FIELDS, TOPICS = 169_343, 1_166_243, 128, 40, 400
TRAIN, VALID = 90_941, 29_799
WITHIN_TOPIC, WITHIN_FIELD = 0.5, 0.2
SIGNAL = 0.12
"""Deviation of the means of fields; that of papers around them is 1."""
WRONG = 0.1
"""Share of papers whose field is given wrongly."""

Ids = NDArray[np.int64]


def made_up(seed: int = 0) -> tuple[Ids, NDArray[np.float32], Ids]:
    """(2, e) citations, (n, 128) numbers and (n,) fields."""
    generator = np.random.default_rng(seed)
    shares = generator.dirichlet(np.full(TOPICS, 2.0))
    topic = np.sort(generator.choice(TOPICS, PAPERS, p=shares))  # papers in a row by topic; by time, shuffled, below
    field = topic % FIELDS
    by_field = np.argsort(field, kind="stable")
    ends = citations(topic, field, by_field, generator)
    means = SIGNAL * generator.standard_normal((FIELDS, NUMBERS))
    numbers = (means[field] + generator.standard_normal((PAPERS, NUMBERS))).astype(np.float32)
    given = np.where(generator.random(PAPERS) < WRONG, generator.integers(0, FIELDS, PAPERS), field)
    time = generator.permutation(PAPERS)
    order = np.argsort(time)
    ends = np.sort(time[ends], axis=0)[::-1]  # the later paper cites the earlier
    return np.ascontiguousarray(ends), numbers[order], given[order]


def citations(topic: Ids, field: Ids, by_field: Ids, generator: np.random.Generator) -> Ids:
    """(2, e) different pairs of papers."""
    pairs = np.zeros((0, 2), dtype=np.int64)
    while len(pairs) < CITATIONS:
        count = int(1.1 * (CITATIONS - len(pairs))) + 100
        first, near = generator.integers(0, PAPERS, count), generator.random(count)
        skewed = generator.random(count) ** 1.5  # the first papers of a group are cited more often
        of_topic = drawn(topic, topic[first], skewed)
        of_field = by_field[drawn(field[by_field], field[first], skewed)]
        anyone = generator.integers(0, PAPERS, count)
        second = np.select([near < WITHIN_TOPIC, near < WITHIN_TOPIC + WITHIN_FIELD], [of_topic, of_field], anyone)
        more = np.column_stack([np.minimum(first, second), np.maximum(first, second)])[first != second]
        pairs = np.unique(np.concatenate([pairs, more]), axis=0)
    return generator.permutation(pairs)[:CITATIONS].T


def drawn(groups: Ids, which: Ids, share: NDArray[np.float64]) -> Ids:
    """Places in ascending groups: of the group that is asked for, the one at a share of its length."""
    start, end = np.searchsorted(groups, which), np.searchsorted(groups, which, side="right")
    return start + (share * (end - start)).astype(np.int64)


def main() -> None:
    """Write the data set to the folder that is named."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    if folder.exists():
        sys.exit(f"{folder} is there already; remove it first")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with safe_loaders():
        from ogb.io import DatasetSaver
    edges, numbers, fields = made_up()
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        (Path(place) / "mapping").mkdir()
        (Path(place) / "mapping" / "README.md").write_text("Made up by experiments/benchmarks/large.py.\n")
        saver = DatasetSaver("ogbn-large", False, 1, root=f"{place}/made")
        saver.save_graph_list([{"edge_index": edges, "num_nodes": PAPERS, "node_feat": numbers}])
        saver.save_target_labels(fields[:, None])
        train, valid, test = np.split(np.arange(PAPERS), [TRAIN, TRAIN + VALID])
        saver.save_split({"train": train, "valid": valid, "test": test}, "time")
        saver.copy_mapping_dir(f"{place}/mapping")
        saver.save_task_info("multiclass classification", "acc", FIELDS)
        saver.get_meta_dict()
        (Path(place) / "made_ogbn_large").rename(folder)


if __name__ == "__main__":
    main()

"""Citation graphs: subjects of papers from their words and citations (Yang et al. 2016; Sen et al. 2008)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from structpe.data.features import Numbers
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.datasets.files.arrays import indices
from structpe.datasets.files.pickled import pickled_array, pickled_lists, pickled_matrix
from structpe.errors import ConfigError, ReadError, listed
from structpe.objectives.classification import Multiclass
from structpe.structure import Ids, Structure

__all__ = ["PUBLISHED"]

EACH, VALID, TEST = 20, 500, 1000


PUBLISHED = {
    "cora": "Cora: seven subjects of 2,708 papers; the public split of 140, 500 and 1,000.",
    "citeseer": """CiteSeer: six subjects of 3,327 papers; the public split of 120, 500 and 1,000.

    The words and subjects of 15 papers are unknown: their features are 0, and they are in no part of the split.""",
    "pubmed": "PubMed: three subjects of 19,717 papers; the public split of 60, 500 and 1,000.",
}


def published(name: str) -> Callable[..., Benchmark]:
    """Make the loader of one of :data:`PUBLISHED`."""
    title = PUBLISHED[name].partition(":")[0]

    def load(folder: Path, normalise: bool = True, drawn: int | None = None) -> Benchmark:
        return _planetoid(folder, name, title, normalise, drawn)

    load.__doc__ = f"""{PUBLISHED[name]}

    Files: ``ind.{name}.allx``, ``.ally``, ``.tx``, ``.ty``, ``.y``, ``.graph`` and ``.test.index`` of Yang et al.

    Args:
        folder: folder with the files.
        normalise: whether to divide the features of each paper by their sum, as is usual.
        drawn: seed of a random split instead of the public one: 20 papers of each subject, then 500 and 1,000 others.
            123 gives the split of Luo et al. (2024), whose results are not comparable with those of the public split.
    """
    return load


for _name in PUBLISHED:
    benchmark(_name)(published(_name))


def _planetoid(folder: Path, name: str, title: str, normalise: bool, drawn: int | None) -> Benchmark:
    file = {part: folder / f"ind.{name}.{part}" for part in ("allx", "ally", "tx", "ty", "y", "graph", "test.index")}
    edges, size = _edges(file["graph"])
    tested = indices(file["test.index"], size, "papers")
    words, tested_words = (pickled_matrix(file[part]).toarray().astype(np.float32) for part in ("allx", "tx"))
    features = _placed(words, tested_words, tested, size, file["tx"])
    known, asked = (_subjects(file[part]) for part in ("ally", "ty"))
    if len(known) != len(words):
        wrong = f"there are subjects of {len(known)} papers, and the words of {len(words)}"
        raise ReadError(f"{wrong}; bring back files that belong together").at(str(file["ally"]))
    classes = _placed(known, asked, tested, size, file["ty"])
    trained = _trained(file["y"], known)
    if normalise:
        sums = features.sum(axis=1, keepdims=True)
        features = features / np.where(sums, sums, 1)
    subjects = np.where(classes.any(axis=1), classes.argmax(axis=1), -1)
    public = Split(np.arange(trained), np.arange(trained, trained + VALID), np.sort(tested))
    split, said = (
        (public, "the public split") if drawn is None else (_drawn(subjects, drawn), f"split drawn with {drawn}")
    )
    return Benchmark(
        name=title,
        graphs=[Structure(("",) * size, edges, directed=False, features={"x": features}, name=title)],
        targets=subjects,
        splits=(split,),
        nodes=Numbers(features.shape[1]),
        objective=Multiclass("node", classes.shape[1], "accuracy"),
        note=said + ("; features of a paper are divided by their sum" if normalise else ""),
    )


def _drawn(subjects: Ids, seed: int) -> Split:
    """Draw 20 papers of each subject, then 500 and 1,000 of all others, in the order of Luo et al. (2024).

    Their code, like that of NodeFormer (Wu et al. 2022), shuffles the papers of one subject after the other with
    ``torch.randperm``, then the remaining papers.

    Raises:
        ConfigError: there are not enough papers.
    """
    generator = torch.Generator().manual_seed(seed)

    def shuffled(papers: Ids) -> Ids:
        return np.take(papers, torch.randperm(len(papers), generator=generator).numpy())

    each = [shuffled(np.flatnonzero(subjects == subject)) for subject in range(subjects.max() + 1)]
    rest = shuffled(np.concatenate([papers[EACH:] for papers in each]))
    if min(map(len, each)) < EACH or len(rest) < VALID + TEST:
        raise ConfigError(
            f"a drawn split takes {EACH} papers of each subject, then {VALID} and {TEST}; there are "
            f"{listed(len(papers) for papers in each)} of the subjects; leave out drawn, for the public split"
        )
    return Split(np.concatenate([papers[:EACH] for papers in each]), rest[:VALID], rest[VALID : VALID + TEST])


def _edges(file: Path) -> tuple[Ids, int]:
    """Read the citations and the number of papers, without repetitions and papers that cite themselves.

    Raises:
        ReadError: papers are not numbered 0, 1, 2 and so on.
    """
    lists = pickled_lists(file)
    size = len(lists)
    cited = [other for others in lists.values() for other in others]
    if not size or set(lists) != set(range(size)) or min(cited, default=0) < 0 or max(cited, default=0) >= size:
        raise ReadError(f"{size} papers are not numbered 0..{size - 1}; bring back the original").at(file)
    citing = np.repeat(list(lists), [len(others) for others in lists.values()])
    pairs = np.sort(np.stack([citing, np.array(cited, dtype=np.int64)], axis=1), axis=1)
    return np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0), size


def _subjects(file: Path) -> NDArray[Any]:
    """Read the subjects: (n, classes), one 1 in each row.

    Raises:
        ReadError: the file is missing or damaged, or a row has not one 1.
    """
    rows = pickled_array(file)
    marks = rows.ndim == 2 and bool(np.isin(rows, (0, 1)).all())
    if not marks or (wrong := np.flatnonzero(rows.sum(axis=1) != 1)).size:
        named = f"paper {wrong[0]} has not one subject" if marks else "none is so"
        raise ReadError(f"a 1 in each row is needed, and 0 elsewhere; {named}; bring back the original").at(file)
    return rows


def _trained(file: Path, known: NDArray[Any]) -> int:
    """Number of training papers: the first ones, whose subjects are repeated in a file."""
    again = _subjects(file)
    if not np.array_equal(again, known[: len(again)]):
        raise ReadError("the subjects are not those of the first papers of .ally; bring back the original").at(file)
    return len(again)


def _placed(first: NDArray[Any], tested: NDArray[Any], numbers: Ids, size: int, file: Path) -> NDArray[Any]:
    """Rows of the first papers and, by their numbers, of the tested papers: (size, k), 0 for papers without a row."""
    if tested.shape != (len(numbers), first.shape[1]) or len(first) > numbers.min():
        raise ReadError(
            f"rows of shape {tested.shape} after {first.shape} do not fit {len(numbers)} tested papers from number "
            f"{numbers.min()} on; bring back the original"
        ).at(file)
    rows = np.zeros((size, first.shape[1]), dtype=first.dtype)
    rows[: len(first)], rows[numbers] = first, tested
    return rows

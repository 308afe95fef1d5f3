"""Citation graphs: the subjects of papers, from their words and what they cite (Yang et al. 2016; Sen et al. 2008)."""

from __future__ import annotations

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
from structpe.objectives.multiclass import Multiclass
from structpe.structure import Ids, Structure

__all__ = ["citeseer", "cora", "pubmed"]

EACH, VALID, TEST = 20, 500, 1000


@benchmark("cora")
def cora(folder: Path, normalise: bool = True, drawn: int | None = None) -> Benchmark:
    """Cora: seven subjects of 2,708 papers; the public split of 140, 500 and 1,000.

    Files: ``ind.cora.allx``, ``.ally``, ``.tx``, ``.ty``, ``.y``, ``.graph`` and ``.test.index`` of Yang et al.

    Args:
        folder: where the files are.
        normalise: whether the features of a paper are divided by their sum, as is usual.
        drawn: seed of a drawn split in place of the public one: 20 papers of each subject, 500 and 1,000 of the others.
            With 123 it is the one split of Luo et al. 2024, whose numbers are not those of the public split.
    """
    return _planetoid(folder, "cora", "Cora", normalise, drawn)


@benchmark("citeseer")
def citeseer(folder: Path, normalise: bool = True, drawn: int | None = None) -> Benchmark:
    """CiteSeer: six subjects of 3,327 papers; the public split of 120, 500 and 1,000.

    Of 15 papers neither words nor subject are known: their features are 0, and they are in no part of the split.

    Files: ``ind.citeseer.allx``, ``.ally``, ``.tx``, ``.ty``, ``.y``, ``.graph`` and ``.test.index`` of Yang et al.

    Args:
        folder: where the files are.
        normalise: whether the features of a paper are divided by their sum, as is usual.
        drawn: seed of a drawn split in place of the public one: 20 papers of each subject, 500 and 1,000 of the others.
            With 123 it is the one split of Luo et al. 2024, whose numbers are not those of the public split.
    """
    return _planetoid(folder, "citeseer", "CiteSeer", normalise, drawn)


@benchmark("pubmed")
def pubmed(folder: Path, normalise: bool = True, drawn: int | None = None) -> Benchmark:
    """PubMed: three subjects of 19,717 papers; the public split of 60, 500 and 1,000.

    Files: ``ind.pubmed.allx``, ``.ally``, ``.tx``, ``.ty``, ``.y``, ``.graph`` and ``.test.index`` of Yang et al.

    Args:
        folder: where the files are.
        normalise: whether the features of a paper are divided by their sum, as is usual.
        drawn: seed of a drawn split in place of the public one: 20 papers of each subject, 500 and 1,000 of the others.
            With 123 it is the one split of Luo et al. 2024, whose numbers are not those of the public split.
    """
    return _planetoid(folder, "pubmed", "PubMed", normalise, drawn)


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
        edges=None,
        objective=Multiclass("node", classes.shape[1], "accuracy"),
        note=said + ("; features of a paper are divided by their sum" if normalise else ""),
    )


def _drawn(subjects: Ids, seed: int) -> Split:
    """20 papers of each subject, then 500 and 1,000 of all others, in the order in which Luo et al. 2024 draw.

    Their code, as that of NodeFormer (Wu et al. 2022) before it, orders the papers of one subject after the other by
    ``torch.randperm``, then those that are left.

    Raises:
        ConfigError: there are not so many papers.
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
    """Each citation once, and the number of papers; the files have some of them twice, and papers that cite themselves.

    Raises:
        ReadError: papers are not numbered 0, 1, 2 and so on.
    """
    lists = pickled_lists(file)
    size = len(lists)
    cited = [other for others in lists.values() for other in others]
    if not size or set(lists) != set(range(size)) or min(cited, default=0) < 0 or max(cited, default=0) >= size:
        raise ReadError(f"{size} papers are not numbered 0..{size - 1}; bring back the original").at(str(file))
    citing = np.repeat(list(lists), [len(others) for others in lists.values()])
    pairs = np.sort(np.stack([citing, np.array(cited, dtype=np.int64)], axis=1), axis=1)
    return np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0), size


def _subjects(file: Path) -> NDArray[Any]:
    """(n, classes) one 1 in each row.

    Raises:
        ReadError: the file is missing or damaged, or a row is not so.
    """
    rows = pickled_array(file)
    if rows.ndim != 2 or not np.isin(rows, (0, 1)).all() or (wrong := np.flatnonzero(rows.sum(axis=1) != 1)).size:
        named = (
            f"paper {wrong[0]} has not one subject" if rows.ndim == 2 and np.isin(rows, (0, 1)).all() else "none is so"
        )
        raise ReadError(f"a 1 in each row is needed, and 0 elsewhere; {named}; bring back the original").at(str(file))
    return rows


def _trained(file: Path, known: NDArray[Any]) -> int:
    """How many papers are trained on: the first ones, whose subjects are given once more."""
    again = _subjects(file)
    if not np.array_equal(again, known[: len(again)]):
        raise ReadError("the subjects are not those of the first papers of .ally; bring back the original").at(
            str(file)
        )
    return len(again)


def _placed(first: NDArray[Any], tested: NDArray[Any], numbers: Ids, size: int, file: Path) -> NDArray[Any]:
    """(size, k): rows of the first papers, then those of the tested by their numbers, 0 for papers without a row."""
    if tested.shape != (len(numbers), first.shape[1]) or len(first) > numbers.min():
        raise ReadError(
            f"rows of shape {tested.shape} after {first.shape} do not fit {len(numbers)} tested papers from number "
            f"{numbers.min()} on; bring back the original"
        ).at(str(file))
    rows = np.zeros((size, first.shape[1]), dtype=first.dtype)
    rows[: len(first)], rows[numbers] = first, tested
    return rows

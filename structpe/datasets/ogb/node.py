"""Node property prediction of the Open Graph Benchmark (Hu et al. 2020), and your own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from structpe.datasets.base import Benchmark, benchmark
from structpe.datasets.ogb._official import official, own
from structpe.datasets.ogb._structures import benchmark_of

__all__ = ["PUBLISHED", "ogb_node"]

PUBLISHED = {
    "ogbn-arxiv": "the subject, of 40, of 169,343 papers; a directed edge for each citation, split by year",
    "ogbn-products": "the category, of 47, of 2.4 million products; edges join those bought together; split by sales",
    "ogbn-proteins": "112 functions of 132,534 proteins; 40 million associations of 8 numbers each; split by species",
}


def published(name: str) -> Callable[..., Benchmark]:
    """Make the loader of one of :data:`PUBLISHED`."""

    def load(folder: Path, download: bool = False) -> Benchmark:
        return benchmark_of("node", official("node", name, folder, download))

    place = name.replace("-", "_")
    load.__doc__ = f"""{name}: {PUBLISHED[name]}.

    Files: ``{place}/raw`` and ``split`` as OGB provides them; ``download`` lets ``ogb`` fetch them.
    """
    return load


for _name in PUBLISHED:
    benchmark(_name)(published(_name))


@benchmark("ogb-node")
def ogb_node(folder: Path) -> Benchmark:
    """Your own graph for node prediction, as written by OGB's ``DatasetSaver``.

    Files: ``meta_dict.pt``, and the folder (or the unpacked archive) of the data in the same folder.
    """
    return benchmark_of("node", own("node", folder))

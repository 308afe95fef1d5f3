"""Node property prediction of the Open Graph Benchmark (Hu et al. 2020), and your own."""

from __future__ import annotations

from pathlib import Path

from structpe.datasets.base import Benchmark, benchmark
from structpe.datasets.ogb._official import Raw, official, own
from structpe.datasets.ogb._structures import features_of, numbered, structures, targets_of

__all__ = ["ogb_node", "ogbn_arxiv", "ogbn_products", "ogbn_proteins"]


@benchmark("ogbn-arxiv")
def ogbn_arxiv(folder: Path, download: bool = False) -> Benchmark:
    """ogbn-arxiv: the subject, of 40, of 169,343 papers; a directed edge for each citation, split by year.

    Files: ``ogbn_arxiv/raw`` and ``split`` as OGB gives them; ``download`` lets ``ogb`` fetch them.
    """
    return _benchmark(official("node", "ogbn-arxiv", folder, download))


@benchmark("ogbn-products")
def ogbn_products(folder: Path, download: bool = False) -> Benchmark:
    """ogbn-products: the category, of 47, of 2.4 million products that are bought together; split by sales.

    Files: ``ogbn_products/raw`` and ``split`` as OGB gives them; ``download`` lets ``ogb`` fetch them (1.4 GB).
    """
    return _benchmark(official("node", "ogbn-products", folder, download))


@benchmark("ogbn-proteins")
def ogbn_proteins(folder: Path, download: bool = False) -> Benchmark:
    """ogbn-proteins: 112 functions of 132,534 proteins; 8 numbers for each of 40 million associations, by species.

    Files: ``ogbn_proteins/raw`` and ``split`` as OGB gives them; ``download`` lets ``ogb`` fetch them.
    """
    return _benchmark(official("node", "ogbn-proteins", folder, download))


@benchmark("ogb-node")
def ogb_node(folder: Path) -> Benchmark:
    """A graph of your own whose nodes are predicted, as OGB's ``DatasetSaver`` writes it.

    Files: ``meta_dict.pt``, and beside it the folder (or the unpacked archive) of the data.
    """
    return _benchmark(own("node", folder))


def _benchmark(raw: Raw) -> Benchmark:
    (objective, targets), graphs = targets_of("node", raw), structures(raw, numbered, lambda _: ())
    return Benchmark(
        name=raw.name,
        graphs=graphs,
        targets=targets,
        splits=(raw.split,),
        nodes=features_of(graphs, "x", None),
        edges=features_of(graphs, "edge_x", None),
        objective=objective,
    )

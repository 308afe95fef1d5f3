"""How the time of encodings grows with the size of a graph, and how long rustworkx and SciPy take for the largest.

    python experiments/speed/growth.py                   # two minutes
    python experiments/speed/growth.py --without-numba

Graphs are drawn with a fixed seed: for small ones 2,000 of n nodes and mean degree 2.2 at once, else one of mean degree
10. Times are CPU time of one thread, the best of three. The exponent is the slope of log time against log n.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from structpe.encodings import RRWP, Encoding, Laplacian, RandomWalk, UndirectedDistance
from structpe.encodings.compiled import at_once, slow
from structpe.structure import Structure

SMALL, LARGE = (8, 16, 32, 64), (500, 1000, 2000, 4000)
ENCODINGS: tuple[Encoding, ...] = (UndirectedDistance(), RandomWalk(16), RRWP(8), Laplacian(8))
COUNT, LARGEST = 2000, 10_000


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--without-numba", action="store_true")
    with slow() if parser.parse_args().without_numba else at_once():
        for sizes, count, degree in ((SMALL, COUNT, 2.2), (LARGE, 1, 10.0)):
            print(f"| {count} of mean degree {degree} |", " | ".join(f"n = {n}, ms" for n in sizes), "| exponent |")
            print("|---" * (len(sizes) + 2) + "|")
            for encoding in ENCODINGS if count > 1 else (ENCODINGS[0], ENCODINGS[1], ENCODINGS[3]):
                row(encoding.name, list(times(encoding, sizes, count, degree)), sizes)
        largest()


def row(name: str, seconds: Sequence[float], sizes: Sequence[int]) -> None:
    """Print it."""
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    print(f"| {name} |", " | ".join(f"{1e3 * each:,.3g}" for each in seconds), f"| {slope:.1f} |", flush=True)


def times(encoding: Encoding, sizes: Sequence[int], count: int, degree: float) -> Iterator[float]:
    """Seconds for all graphs of each size."""
    for n in sizes:
        graphs = [drawn(n, degree, seed) for seed in range(count)]
        encoding.many(graphs[:2])
        yield best(lambda graphs=graphs: encoding.many(graphs))  # type: ignore[misc]


def drawn(nodes: int, degree: float, seed: int) -> Structure:
    """A connected graph: a random tree and further edges."""
    random = np.random.default_rng(seed)
    parents = (random.random(nodes - 1) * np.arange(1, nodes)).astype(np.int64)
    more = random.integers(0, nodes, (max(0, round(degree * nodes / 2) - nodes + 1), 2))
    return Structure(("",) * nodes, np.concatenate([np.stack([parents, np.arange(1, nodes)], 1), more]), directed=False)


def best(run: Callable[[], object], rounds: int = 3) -> float:
    """Seconds of CPU time."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return min(found)


def largest() -> None:
    """Distances of one large graph, from its edges to narrow integers."""
    import rustworkx

    graph = drawn(LARGEST, 10.0, 0)
    edges = graph.edges.tolist()

    def by_rustworkx() -> object:
        made = rustworkx.PyGraph()
        made.add_nodes_from(range(LARGEST))
        made.add_edges_from_no_data([(a, b) for a, b in edges])
        return rustworkx.distance_matrix(made, parallel_threshold=LARGEST + 1, null_value=-1).astype(np.int16)

    def by_scipy() -> object:
        matrix = csr_array((np.ones(len(edges)), graph.edges.T), shape=(LARGEST, LARGEST))
        return shortest_path(matrix, directed=False, unweighted=True).astype(np.int16)

    mine = best(lambda: UndirectedDistance().many([graph]))
    theirs = {"rustworkx": best(by_rustworkx, 1), "scipy": best(by_scipy, 1)}
    print(f"\none graph of {LARGEST:,} nodes: {1e3 * mine:,.0f} ms;", end=" ")
    print("; ".join(f"{name} {1e3 * each:,.0f} ms, {each / mine:.1f} times" for name, each in theirs.items()))


if __name__ == "__main__":
    main()

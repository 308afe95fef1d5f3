"""What docs/speed.md has of the results of the bench besides: where others are faster, and which models take long.

Each is made from the file of a table, so that it changes with it; why a model takes long is written here, by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

__all__ = ["heavy", "kept", "slower"]

RESULTS = Path(__file__).parent / "results"
LIMIT, FLOOR = 3.0, "products / none"
WHY = {
    "b-pearl": "a graph network for the unit vector of each node: n² times its width",
    "basisnet": "a network for each eigenspace, of three layers with batch normalisation: many small products and sums",
    "cai": "a recurrent network along each distinct path of labels; nearly all paths of these trees differ",
    "code-transformer": "five encodings of pairs, each with vectors and a bias: five models at once",
    "complex": "complex scores: four products of matrices in place of one, and a root for each pair",
    "composite": "a bias, and vectors of offsets at queries and at keys",
    "comrope": "an exponential of a matrix for each unit, head and block of channels",
    "cope": "a gate for each pair, their sums, and products with vectors that are interpolated",
    "dape": "a network over the scores and biases of each pair",
    "dape-v2": "two convolutions over the scores and biases of all pairs",
    "deberta": "vectors of offsets at queries and at keys: two more products as large as the scores",
    "deberta-v2": "as `deberta`",
    "disan-block": "a softmax per channel in place of one per head",
    "exphormer": "a product of three vectors for each listed pair",
    "fire": "a network for each pair",
    "floater": "a solver of differential equations, five steps of order 4 for each place",
    "floater-convolution": "as `floater`",
    "floater-input": "as `floater`",
    "forgetting-attention": "sums of gates for each pair and head",
    "graphormer": "sums along the labels of each distinct path",
    "graphormer-3d": "a network 128 wide for each distinct distance, and a sum of its 128 numbers over all pairs",
    "graphormer-gd": "networks over Gaussians for each distance, and a factor after the softmax",
    "graphormer-gps": "as `graphormer`, also of steps that a path lacks",
    "grit": "a network for each pair: its vectors of pairs change from layer to layer",
    "huang-m3": "a product of three vectors for each pair, which no product of matrices computes",
    "lap-pe-transformer": "a Transformer for each node over its 8 eigenvectors, 2,048 wide inside, and its dropout",
    "liere": "as `comrope`",
    "magnetic-laplacian": "attention for each node over its 8 eigenvectors: more scores than in the model's own",
    "mlp-bias": "a network for each value of a pair",
    "path-attention": "inverses of triangular matrices for blocks of 64 units",
    "peng": "a network over the ways of units, another over relations, and vectors at both keys and queries",
    "ppgt": "a network for each pair, and a factor after the softmax",
    "r-pearl": "a graph network for each of many random vectors of the nodes, and drawing them",
    "rbf-bias": "Gaussians and a network for each value of a pair",
    "rnn": "one state after the other",
    "rr": "one state after the other",
    "san": "the Transformer of `lap-pe-transformer`, then two attentions",
    "sat-subgraph": "a graph network in the subgraph around each node by itself",
    "shaw": "vectors of offsets at keys and at values",
    "shaw-absolute": "vectors of each two places",
    "signnet": "a graph network 64 wide for 8 eigenvectors and both signs: 16 times the units",
    "spe-conv": "draws normal numbers for each place and filters them",
    "spe-conv-gated": "as `spe-conv`",
    "spe-gated": "queries and keys become 256 wide, here 16 times as wide as a head",
    "spe-sine": "as `spe-gated`",
    "stable-expressive": "a network over vectors of pairs",
    "stable-expressive-gin": "a graph network over vectors of pairs",
    "zhu-avg": "nearly all pairs have a vector, a path and a place of their own",
    "zhu-cnn": "as `zhu-avg`, and a convolution over the labels of each path",
    "zhu-feature": "as `zhu-avg`",
    "zhu-self": "as `zhu-avg`, and attention and a convolution over the labels of each path",
    "zhu-sum": "as `zhu-avg`",
}
"""What takes the time of models that are, or were, above the limit."""


def kept(name: str) -> str:
    """The file of a result."""
    return (RESULTS / f"{name}.md").read_text(encoding="utf-8").strip()


def rows(name: str) -> Iterator[dict[str, str]]:
    """The rows of the table of a file, by column."""
    lines = [line for line in kept(name).splitlines() if line.startswith("|")]
    columns, _, *found = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    for cells in found:
        yield dict(zip(columns, cells, strict=True))


def number(cell: str) -> float:
    """The number of a cell, or NaN for a cell without one."""
    return float("nan") if cell == "-" else float(cell.replace(",", ""))


def slower() -> str:
    """Rows in which another library is faster than the padded end, or than that without numba."""
    columns = ("peer / padded", "peer / without numba")
    text = [f"| encoding | graphs | peer | {' | '.join(columns)} |\n|---|---|---|--:|--:|"]
    for row in rows("encodings"):
        if any(number(row[column]) < 1 for column in columns):
            text.append("| " + " | ".join(row[each] for each in ("encoding", "graphs", "peer", *columns)) + " |")
    return "\n".join(text)


def heavy() -> str:
    """Models that take more than three times as long as none, with 128 units or as many as were measured.

    With what their products alone take, if ``models.py`` has measured it.
    """
    measured = list(rows("every-model"))
    ratios = [column for column in measured[0] if column.endswith("/ none")]
    floors = {row["model"]: row[FLOOR] for row in rows("models")} if (RESULTS / "models.md").exists() else {}
    above = []
    for row in measured:
        last = [number(row[column]) for column in ratios[:2] if row[column] != "-"]
        if last and last[-1] > LIMIT:
            name = row["model"]
            floor = [floors.get(name, "-")] if floors else []
            cells = [name, *(row[column] for column in ratios), *floor, WHY.get(name, "")]
            above.append((last[-1], f"| {' | '.join(cells)} |"))
    numbers = ratios + ([FLOOR] if floors else [])
    head = f"| model | {' | '.join(numbers)} | what takes the time |\n|---{'|--:' * len(numbers)}|---|"
    return "\n".join([head, *(line for _, line in sorted(above, reverse=True))])

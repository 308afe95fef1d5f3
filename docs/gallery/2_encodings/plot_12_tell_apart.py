"""
What one encoding cannot tell apart, another can
================================================

Each row has two graphs that are not the same. A square is filled if the values of an encoding, sorted, differ between
them. Message passing without positions sees no more than Weisfeiler-Leman.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import structpe
from structpe.encodings import Motifs, RandomWalk, UndirectedDistance, WeisfeilerLehman

around = [((a, b), ((a + x) % 4, (b + y) % 4)) for a in range(4) for b in range(4) for x, y in ((0, 1), (1, 0), (1, 1))]
pairs = {
    "triangles, hexagon": (nx.circulant_graph(6, [2]), nx.cycle_graph(6)),
    "skips of 2, of 3": (nx.circulant_graph(8, [1, 2]), nx.circulant_graph(8, [1, 3])),
    "rook, Shrikhande": (nx.line_graph(nx.complete_bipartite_graph(4, 4)), nx.Graph(around)),
}
encodings = {
    "Weisfeiler-\nLeman": WeisfeilerLehman(iterations=5),
    "distances": UndirectedDistance(),
    "random\nwalks": RandomWalk(),
    "cliques\nof four": Motifs(("clique-4",)),
}


def rows(encoding, structure):
    """The values of all nodes, those of pairs as a sorted row, in a sorted list."""
    encoded = encoding.one(structure)
    values = np.sort(encoded.pairs(), axis=1) if encoding.arity == 2 else encoded.values
    return sorted(map(tuple, values.reshape(structure.size, -1).round(6).tolist()))


figure, axes = plt.subplots(3, 6, figsize=(8.5, 4.4), layout="constrained")
figure.set_label(
    "A table of three pairs of graphs and four encodings. Weisfeiler-Leman tells none apart, distances the first "
    "pair, random walks the first two, and counts of cliques the last."
)
for number, (row, (name, graphs)) in enumerate(zip(axes, pairs.items(), strict=True)):
    two = [structpe.as_structure(nx.convert_node_labels_to_integers(graph)) for graph in graphs]
    for axis, graph in zip(row, graphs, strict=False):
        nx.draw(graph, nx.circular_layout(graph), ax=axis, node_size=18, node_color="#1f2933", edge_color="#6b7785")
        axis.set_aspect("equal")
    row[0].set_title(name)
    for axis, (title, encoding) in zip(row[2:], encodings.items(), strict=True):
        differ = rows(encoding.fit(two), two[0]) != rows(encoding.fit(two), two[1])
        axis.text(
            0.5, 0.5, "differ" if differ else "same", ha="center", va="center", color="white" if differ else "#1f2933"
        )
        axis.set(xticks=[], yticks=[], facecolor="#0072b2" if differ else "#eef1f4")
        if number == 0:
            axis.set_title(title)

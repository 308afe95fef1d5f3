"""
Laplacian eigenvectors are the slow waves of a graph
====================================================

Each picture is one eigenvector, a number for each node of a street map of 60 crossings: the first divides the graph
into two halves, later ones into more and more parts. Near nodes have like numbers.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import structpe
from structpe.encodings import Laplacian

streets = nx.grid_2d_graph(10, 6)
places = dict(enumerate(streets))
graph = structpe.as_structure(nx.convert_node_labels_to_integers(streets))
vectors = Laplacian(k=8).one(graph).values

figure, axes = plt.subplots(1, 4, figsize=(10, 2.1), layout="constrained")
figure.set_label(
    "Four drawings of a grid graph of ten by six nodes, coloured by Laplacian eigenvectors 1, 2, 3 and 8: the first "
    "is red on one side and blue on the other, the last has several patches of each."
)
ends = np.array([[places[a], places[b]] for a, b in graph.edges])
for axis, k in zip(axes, (1, 2, 3, 8), strict=True):
    axis.plot(*ends.transpose(2, 1, 0), color="#9aa5b1", linewidth=0.8, zorder=1)
    axis.scatter(
        *zip(*places.values(), strict=True), c=vectors[:, k - 1], cmap="coolwarm", edgecolor="#6b7785", zorder=2
    )
    axis.set(title=f"eigenvector {k}", aspect="equal")
    axis.axis("off")

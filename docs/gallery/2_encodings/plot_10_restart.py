"""
A walk that often restarts stays near home
==========================================

Personalised PageRank says how often a walk is at each node if it goes home with some probability at each step. The
more often it goes home, the smaller the part of the graph that it sees.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import structpe
from structpe.encodings import PersonalizedPageRank

drawn = nx.random_geometric_graph(80, 0.19, seed=4)
drawn = nx.convert_node_labels_to_integers(drawn.subgraph(max(nx.connected_components(drawn), key=len)))
places = np.array([drawn.nodes[node]["pos"] for node in drawn])
graph = structpe.Structure(("",) * len(places), list(drawn.edges), directed=False)
home = int(np.abs(places - 0.5).sum(1).argmin())

figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
figure.set_label(
    "Three drawings of a graph, coloured by how often a walk is at each node: with a restart at every second step it "
    "is at home and beside it, with rare restarts all over its part of the graph."
)
for axis, restart in zip(axes, (0.5, 0.15, 0.02), strict=True):
    surprise = PersonalizedPageRank(restart=restart, threshold=None).one(graph).pairs()[home]  # minus the logarithm
    axis.plot(*places[graph.edges].transpose(2, 1, 0), color="#c9d0d8", linewidth=0.8, zorder=1)
    shown = axis.scatter(*places.T, c=np.exp(-surprise), cmap="viridis", s=40, zorder=2)
    axis.scatter(*places[home], s=160, facecolor="none", edgecolor="#d55e00", linewidth=2, zorder=3)
    axis.set(title=f"home at {restart:.0%} of steps", aspect="equal")
    axis.axis("off")
    figure.colorbar(shown, ax=axis, shrink=0.7)

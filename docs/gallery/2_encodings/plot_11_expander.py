"""
A few random edges bring all nodes close
========================================

From one side of a ring of 60 nodes to the other are 30 steps, so attention along its edges needs 30 layers. Exphormer
(Shirzad et al. 2023) adds a random graph in which each node has a few edges: the pairs stay few, and no node is far.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import structpe
from structpe.encodings import Expander, UndirectedDistance

ring = structpe.as_structure(nx.cycle_graph(60))
graphs = {"the ring": ring}
for degree in (1, 2):
    pairs = Expander(degree=degree).one(ring).listed  # those of edges, and random ones
    graphs[f"and {2 * degree} random edges at each node"] = structpe.Structure(ring.nodes, pairs, directed=False)

figure, axes = plt.subplots(1, 4, figsize=(11, 2.9), width_ratios=(1, 1, 1, 1.5), layout="constrained")
figure.set_label(
    "A ring of 60 nodes, the same with two and with four random edges at each node, and a curve of how many nodes are"
    " within reach after each layer: all 60 after 30 layers in the ring, and after 6 and 4 with random edges."
)
for axis, (name, graph), colour in zip(axes, graphs.items(), ("#0072b2", "#d55e00", "#009e73"), strict=False):
    drawn = nx.Graph(graph.edges.tolist())
    nx.draw(drawn, nx.circular_layout(drawn), ax=axis, node_size=12, node_color=colour, edge_color="#9aa5b1", width=0.6)
    axis.set(title=name, aspect="equal")
    steps = UndirectedDistance().one(graph).pairs()
    print(f"{name}: {len(graph.edges)} pairs, farthest {steps.max()}")
    axes[3].plot(np.bincount(steps.ravel()).cumsum() / 60, ".-", color=colour)
axes[3].set(xlabel="layers", ylabel="nodes within reach")

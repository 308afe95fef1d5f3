"""
Three steps tell two triangles from a hexagon
=============================================

In both graphs each node has two neighbours, so message passing sees the same everywhere. A walk in a triangle can be
home after three steps, a walk in a hexagon never after an odd number.
"""

import matplotlib.pyplot as plt
import networkx as nx

import structpe
from structpe.encodings import RandomWalk

graphs = {"two triangles": nx.circulant_graph(6, [2]), "a hexagon": nx.cycle_graph(6)}
figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), width_ratios=(1, 1, 2), layout="constrained")
figure.set_label(
    "Drawings of two triangles and of a hexagon, and two lines of the probability to be back after 1 to 8 steps: that"
    " of the triangles is a quarter at step 3, that of the hexagon is zero at odd steps."
)
for axis, (name, graph), colour in zip(axes, graphs.items(), ("#0072b2", "#d55e00"), strict=False):
    places = nx.circular_layout(graph)
    nx.draw(graph, places, ax=axis, node_size=120, node_color=colour)
    axis.set(title=name, aspect="equal")
    home = RandomWalk(steps=8).one(structpe.as_structure(graph)).values[0]
    axes[2].plot(range(1, 9), home, "o-", color=colour, label=name)
axes[2].set(xlabel="steps", ylabel="probability to be back")
axes[2].legend()

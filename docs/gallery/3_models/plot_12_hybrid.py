"""
Messages reach the neighbours, attention reaches everyone
=========================================================

How much the vector of one crossing, after two layers, depends on the input of each other: the size of the gradient.
Two layers of message passing see two steps. A layer that also has attention sees all nodes.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import torch

import structpe

streets = nx.grid_2d_graph(9, 9)
places = np.array(streets)
graph = structpe.as_structure(nx.convert_node_labels_to_integers(streets))
middle = 40
cases = {
    "messages": {"attention": None, "message_passing": "gin"},
    "attention": {"message_passing": None},
    "messages and attention": {"message_passing": "gin"},
}
figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.2), layout="constrained")
figure.set_label(
    "Three drawings of a grid of nine by nine nodes, coloured by influence on the node in the middle: with messages "
    "only those within two steps, with attention all, with both all and more of each."
)
for axis, (title, options) in zip(axes, cases.items(), strict=True):
    torch.manual_seed(0)
    stack = structpe.Stack(structpe.StackConfig(width=32, layers=2, **options), []).eval()
    units = torch.randn(graph.size, 32, requires_grad=True)
    stack(units, structpe.Batch.of([graph], []))[middle].square().sum().backward()
    influence = units.grad.norm(dim=1).clamp(min=1e-6).log10()
    shown = axis.scatter(
        *places.T, c=influence, cmap="viridis", vmin=-4, vmax=1, s=70, edgecolor="#9aa5b1", linewidth=0.5
    )
    axis.plot(*places[middle], "o", markersize=13, fillstyle="none", color="#d55e00", markeredgewidth=2)
    axis.set(title=title, aspect="equal")
    axis.axis("off")
figure.colorbar(shown, ax=axes, label="size of the gradient, log10", shrink=0.8, extend="min")

"""
Each round of Weisfeiler-Leman sees one step further
====================================================

All nodes of a path begin with one colour. In each round the new colour of a node is made of its own and those of its
neighbours. So it takes five rounds until the middle knows how far the ends are, as a message-passing network needs
five layers.
"""

import matplotlib.pyplot as plt
import numpy as np

import structpe
from structpe.encodings import WeisfeilerLehman

path = structpe.Structure(("a",) * 13, [(node, node + 1) for node in range(12)], directed=False)
figure, axes = plt.subplots(6, 1, figsize=(7.5, 3.8), layout="constrained")
figure.set_label(
    "A path of 13 nodes, six times, one for each round. In each round the nodes next to those that differ get a "
    "colour of their own, from both ends to the middle."
)
for rounds, axis in enumerate(axes, 1):
    encoding = WeisfeilerLehman(iterations=rounds).fit([path])
    roles = encoding.one(path).values.ravel()
    first = [int(np.flatnonzero(roles == role)[0]) for role in roles]  # the first node of the same colour
    axis.plot(range(13), np.zeros(13), color="#9aa5b1", zorder=1)
    axis.scatter(range(13), np.zeros(13), c=first, cmap="turbo", vmin=0, vmax=6, s=150, edgecolor="#1f2933", zorder=2)
    axis.text(-0.9, 0, f"round {rounds}: {len(set(first))} colours", ha="right", va="center")
    axis.set(xlim=(-4.5, 12.5), ylim=(-1, 1))
    axis.axis("off")

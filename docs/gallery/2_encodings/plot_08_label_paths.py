"""
A label path says what a distance leaves out
============================================

*The dog bit the man*: dog and man are both one step from the verb. The labels on the way, with the direction of each
step, say who bit whom. In the map on the right each way of labels has a colour of its own.
"""

import matplotlib.pyplot as plt
import numpy as np

from structpe.encodings import PathToken, UndirectedDistance
from structpe.formats import amr

meaning = amr.graph("(b / bite-01 :ARG0 (d / dog) :ARG1 (m / man :mod (o / old)))")
distances = UndirectedDistance().one(meaning).pairs()
tokens = PathToken().fit([meaning]).one(meaning).pairs()
_, ways = np.unique(tokens, return_inverse=True)
ways = ways.reshape(tokens.shape)
print("distances:", len(np.unique(distances)), "label paths:", ways.max() + 1)

figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
figure.set_label(
    "Two maps of the pairs of bite-01, dog, man and old. Distances are the same from the verb to dog and to man; "
    "label paths have a different colour for nearly every pair."
)
named = range(meaning.size), meaning.nodes
for axis, values, colours, title in zip(
    axes, (distances, ways), ("viridis", "tab20"), ("distance", "label path"), strict=True
):
    axis.imshow(values, cmap=colours)
    axis.set_title(title)
    axis.set_xticks(*named, rotation=40, ha="right")
    axis.set_yticks(*named)
    for row, column in np.ndindex(values.shape):
        box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
        axis.text(column, row, values[row, column], ha="center", va="center", bbox=box)

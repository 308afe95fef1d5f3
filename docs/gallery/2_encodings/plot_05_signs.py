"""
Signs and rotations of eigenvectors are arbitrary, what they span is not
========================================================================

A ring of eight nodes has each eigenvalue twice but for two. The same ring, stored with other numbers of nodes, gets
other eigenvectors: a model that reads them sees another graph. The matrix of inner products of the two vectors of one
eigenvalue is the same again; models such as ``stable-expressive`` and ``basisnet`` read only such functions.
"""

import matplotlib.pyplot as plt
import numpy as np

import structpe
from structpe.encodings import Laplacian

order = np.array([3, 0, 6, 1, 7, 4, 2, 5])  # the number that each node has in the second copy
edges = np.array([(node, (node + 1) % 8) for node in range(8)])
ring = structpe.Structure(tuple("abcdefgh"), edges, directed=False)
again = structpe.Structure(tuple(np.array(ring.nodes)[np.argsort(order)]), order[edges], directed=False)

first = Laplacian(k=2).one(ring).values
second = Laplacian(k=2).one(again).values[order]  # rows in the order of the first

figure, axes = plt.subplots(2, 2, figsize=(7, 5), layout="constrained")
figure.set_label(
    "Above, the two eigenvectors of a ring of eight nodes in two numberings: the curves differ. Below, the inner "
    "products of their rows: the two maps are the same."
)
for column, (title, vectors) in enumerate({"one numbering": first, "another numbering": second}.items()):
    axes[0, column].plot(vectors, "o-", label=["first", "second"])
    axes[0, column].set(title=title, xticks=range(8), xticklabels=ring.nodes, ylim=(-0.6, 1), xlabel="node")
    axes[1, column].imshow(vectors @ vectors.T, cmap="coolwarm", vmin=-0.25, vmax=0.25)
    axes[1, column].set(title="inner products", xticks=range(8), xticklabels=ring.nodes)
    axes[1, column].set_yticks(range(8), ring.nodes)
axes[0, 0].legend(title="eigenvector", loc="upper right", ncols=2)
print("vectors differ by", np.abs(first - second).max().round(2))
print("products differ by", np.abs(first @ first.T - second @ second.T).max().round(6))

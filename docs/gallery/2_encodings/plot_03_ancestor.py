"""
The deeper two words meet, the closer they belong together
==========================================================

The lowest common ancestor of two words is where their ways to the root meet. It is deep for words of one phrase, and
the root for words of different phrases. The squares along the diagonal are the phrases.
"""

import matplotlib.pyplot as plt

import structpe
from structpe.encodings import Depth, LowestCommonAncestor

words = "the keeper of the old light saw a ship in the bay".split()
tree = structpe.tree(words, heads=[2, 7, 6, 6, 6, 2, 0, 9, 7, 12, 12, 7])
up = LowestCommonAncestor().one(tree).pairs()[..., 0]  # steps from the query up to the ancestor
depth = Depth().one(tree).values[:, None] - up

figure, axis = plt.subplots(figsize=(5.6, 4.8), layout="constrained")
figure.set_label(
    "A map of twelve by twelve words: how deep their lowest common ancestor is. The words of each phrase make a "
    "square of higher numbers; between phrases the number is 0, the root."
)
shown = axis.imshow(depth, cmap="YlGnBu")
axis.set_xticks(range(len(words)), words, rotation=60, ha="right")
axis.set_yticks(range(len(words)), words)
for (row, column), value in zip(((r, c) for r in range(12) for c in range(12)), depth.flat, strict=True):
    axis.text(column, row, value, ha="center", va="center", color="white" if value > 1 else "black")
figure.colorbar(shown, label="depth of the lowest common ancestor", ticks=range(depth.max() + 1), shrink=0.8)

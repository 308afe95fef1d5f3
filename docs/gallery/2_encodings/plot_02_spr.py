"""
SPR counts steps in the tree and keeps the order of the text
============================================================

Structural position representations (Wang X. et al. 2019) tell a word on the left from one on the right: the steps
between two words of different branches have the sign of their order. The undirected distance does not know the order.
"""

import structpe
from structpe.encodings import SPRRelative, UndirectedDistance

sentence = structpe.tree(
    "the keeper of the light saw a ship".split(),
    heads=[2, 6, 5, 5, 2, 0, 8, 6],
    labels="det nsubj case det nmod root det obj".split(),
)
picture = structpe.show(sentence, [UndirectedDistance(), SPRRelative()])
picture.set_label(
    "A parse of eight words, a map of the steps between them, which is symmetric, and a map of relative SPR, with "
    "positive numbers on one side of the diagonal and negative ones on the other."
)

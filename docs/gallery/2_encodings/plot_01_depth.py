"""
Words of one depth have different ways to the root
==================================================

A depth alone does not name a place in a tree: four words here have depth 2. The branches on the way from the root do:
at each step, which child it is. Each step has three columns, one for each child.
"""

import structpe
from structpe.encodings import BranchPath, Depth

sentence = structpe.tree(
    "the old keeper of the light saw a ship".split(),
    heads=[3, 3, 7, 6, 6, 3, 0, 9, 7],
    labels="det amod nsubj case det nmod root det obj".split(),
)
print("depths:", *Depth().one(sentence).values)

picture = structpe.show(sentence, [Depth(), BranchPath(depth=3, width=3)])
picture.set_label(
    "A parse of nine words; a column of their depths, in which four words have 2; and a map of their branches from "
    "the root, in which no two rows are alike."
)

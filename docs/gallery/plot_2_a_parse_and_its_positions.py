"""
A parse and its positions
=========================

The figures of ``structpe show``, from Python: the structure, the values of encodings, and the heads of a position model
before training.
"""

import structpe
from structpe.encodings import BranchPath, Distance, SPRRelative
from structpe.formats import tree
from structpe.pictures import begin, show

sentence = tree(
    "the keeper of the light saw a ship".split(),
    heads=[2, 6, 5, 5, 2, 0, 8, 6],
    labels="det nsubj case det nmod root det obj".split(),
)

# %%
# SPR counts the steps between two words along the tree, with the sign of their order; a branch path lists the index of
# the child at each step down from the root.

positions = show(sentence, [SPRRelative(), BranchPath(depth=4, width=3)])

# %%
# Graformer has one number per head and distance, random before training. ``load`` shows those of a trained run.

graformer = begin(
    {"name": "graformer", "encoding": Distance(max_distance=4)}, structpe.Dims(64, 4, 1), lambda: [sentence]
)
heads = show(sentence, [graformer])

"""
In a parse, related words are one step apart
============================================

*lamp* and *shone* belong together. They are eight words apart in the text and one step apart in the parse. The maps
have a row and a column for each word.
"""

import structpe
from structpe.encodings import Offset, UndirectedDistance

sentence = structpe.tree(
    "the lamp that the keeper of the island lit shone".split(),
    heads=[2, 10, 9, 5, 9, 8, 8, 5, 2, 0],
    labels="det nsubj obj det nsubj case det nmod acl root".split(),
)
offset, distance = (each.one(sentence).pairs()[1, 9] for each in (Offset(), UndirectedDistance()))
print(f"lamp to shone: {offset} words, {distance} step")

# %%
# ``show`` draws a structure and the values of encodings.

picture = structpe.show(sentence, [Offset(), UndirectedDistance()])
picture.set_label(
    "A sentence of ten words with arcs from each word to its dependents; below, a map of offsets, which grow with the"
    " distance to the diagonal, and a map of steps in the parse, where lamp and shone are 1 apart."
)

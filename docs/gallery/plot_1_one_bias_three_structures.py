"""
One position model, three structures
====================================

ALiBi's bias needs a number for each pair of units: the offset in a sentence, the distance along edges in a parse or an
AMR graph. The model is the same; only the encoding changes.
"""

import matplotlib.pyplot as plt

import structpe
from structpe.encodings import Offset, UndirectedDistance
from structpe.formats import amr, tree

words = "the keeper lit the old lamp".split()
cases = {
    "sequence, offset": (structpe.path(words), Offset()),
    "parse, distance": (tree(words, [2, 3, 0, 6, 6, 3]), UndirectedDistance()),
    "AMR, distance": (
        amr.graph("(l / light :ARG0 (k / keeper) :ARG1 (m / lamp :mod (o / old)))"),
        UndirectedDistance(),
    ),
}

# %%
# The first of eight heads has the steepest slope, 1/2: each step of distance lowers the score by 0.5.

dims = structpe.Dims(width=64, heads=8, layers=1)
figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
for axis, (title, (structure, encoding)) in zip(axes, cases.items(), strict=True):
    model = structpe.build({"name": "alibi", "encoding": encoding}, dims)
    prepared = model.prepare(structpe.encode([structure], [encoding]))
    bias = model.terms(prepared, structpe.Site(layer=0)).bias[0].dense()[0, ..., 0]
    shown = axis.imshow(bias, cmap="viridis")
    axis.set_title(title)
    axis.set_xticks(range(structure.size), structure.nodes, rotation=60, ha="right")
    axis.set_yticks(range(structure.size), structure.nodes)
figure.colorbar(shown, ax=axes, label="bias", shrink=0.8)

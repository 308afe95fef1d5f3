"""
One position model reads a text, a parse and a meaning graph
============================================================

ALiBi's bias needs a number for each pair of units: the offset in a sentence, the distance along edges in a parse or
an AMR graph. The model is the same; only the encoding changes.
"""

import matplotlib.pyplot as plt

import structpe
from structpe.formats import amr

words = "the keeper lit the old lamp".split()
cases = {
    "text, offset": (structpe.path(words), "offset"),
    "parse, distance": (structpe.tree(words, [2, 3, 0, 6, 6, 3]), "undirected-distance"),
    "AMR, distance": (
        amr.graph("(l / light :ARG0 (k / keeper) :ARG1 (m / lamp :mod (o / old)))"),
        "undirected-distance",
    ),
}

# %%
# The first of eight heads has the steepest slope, 1/2: each step of distance lowers the score by 0.5.

dims = structpe.Dims(width=64, heads=8, layers=1)
figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.8), layout="constrained")
figure.set_label(
    "Three maps of ALiBi's bias: in the text it falls with the distance to the diagonal; in the parse and in the "
    "meaning graph it is high where words are joined, wherever they stand."
)
for axis, (title, (structure, encoding)) in zip(axes, cases.items(), strict=True):
    model = structpe.build({"name": "alibi", "encoding": encoding}, dims)
    prepared = model.prepare(structpe.encode([structure], model.encodings))
    bias = model.terms(prepared, structpe.Site(layer=0)).bias[0].dense()[0, ..., 0]
    shown = axis.imshow(bias, cmap="viridis")
    axis.set_title(title)
    axis.set_xticks(range(structure.size), structure.nodes, rotation=60, ha="right")
    axis.set_yticks(range(structure.size), structure.nodes)
figure.colorbar(shown, ax=axes, label="bias", shrink=0.8)

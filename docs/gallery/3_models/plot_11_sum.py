"""
Positions in the text and in the parse add up
=============================================

A list of position models is their sum. ALiBi on offsets keeps near words, ALiBi on distances in the parse keeps
related words, and both together keep what is near in both ways. The maps show logarithms, which add up but for a
number for each row.
"""

import matplotlib.pyplot as plt
import torch

import structpe

words = "the lamp that the keeper of the island lit shone".split()
sentence = structpe.tree(words, heads=[2, 10, 9, 5, 9, 8, 8, 5, 2, 0])
parse = {"name": "alibi", "encoding": "undirected-distance"}
nothing = torch.zeros(1, 8, len(words), 8)  # queries and keys: the content says nothing

figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
figure.set_label(
    "Three maps of the logarithm of attention among ten words: high near the diagonal for offsets, between heads and "
    "dependents for the parse, and where both are high for their sum."
)
for axis, (title, position) in zip(
    axes, {"text": ["alibi"], "parse": [parse], "sum of both": ["alibi", parse]}.items(), strict=True
):
    model = structpe.build(position, structpe.Dims(width=64, heads=8, layers=1))
    terms = model.terms(model.prepare(structpe.encode([sentence], model.encodings)), structpe.Site(layer=0))
    axis.imshow(structpe.attention.weights(nothing, nothing, terms)[0, 0].log(), cmap="viridis", vmin=-7)
    axis.set_title(title)
    axis.set_xticks(range(len(words)), words, rotation=60, ha="right")
    axis.set_yticks(range(len(words)), words)

"""
Read line by line, an image loses its columns
=============================================

An image of 15 x 15 patches. ALiBi lowers scores with a distance. If patches are numbered line by line, the patch
below is 15 steps away, as far as the end of the line and farther than its neighbour's neighbour; on the grid it is
one step away. The maps show attention from the patch in the middle, when all patches have the same content.
"""

import matplotlib.pyplot as plt
import torch

import structpe

image = structpe.grid((15, 15))
dims = structpe.Dims(width=32, heads=4, layers=1)
nothing = torch.zeros(1, 4, image.size, 8)  # queries and keys: the content says nothing
middle = image.size // 2

figure, axes = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
figure.set_label(
    "Two maps of 15 by 15 patches. By the number of the patch, attention from the middle stays in its line. By steps "
    "on the grid, it falls off alike to all sides."
)
for axis, encoding, title in zip(
    axes, ("offset", "undirected-distance"), ("numbered line by line", "steps on the grid"), strict=True
):
    model = structpe.build({"name": "alibi", "encoding": encoding}, dims)
    terms = model.terms(model.prepare(structpe.encode([image], model.encodings)), structpe.Site(layer=0))
    attention = structpe.attention.weights(nothing, nothing, terms)[0, 0, middle].reshape(15, 15)
    shown = axis.imshow(attention, cmap="viridis")
    axis.set(title=title, xticks=[], yticks=[])
    figure.colorbar(shown, ax=axis, label="attention", shrink=0.8)

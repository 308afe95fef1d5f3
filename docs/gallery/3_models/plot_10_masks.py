"""
Some position models say whom a unit may see at all
===================================================

A mask removes pairs. Only the next few words; only those to the left; on an image only the patches of the same
window; in a graph its edges and some random ones. What is left can be computed in less time.
"""

import matplotlib.pyplot as plt
import torch

import structpe
from structpe.encodings import Expander, Window

text, image = structpe.path(["word"] * 36), structpe.grid((6, 6))
cases = {
    "a window of three words": ({"name": "sliding-window", "encoding": Window(max_distance=3)}, text),
    "only to the left": ("alibi-causal", text),
    "windows of 3 x 3 patches": ({"name": "swin-windows", "window": [3, 3]}, image),
    "edges of the grid, random ones": ({"name": "exphormer", "encoding": Expander(degree=1)}, image),
}
nothing = torch.zeros(1, 4, 36, 8)
figure, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained")
figure.set_label(
    "Four maps of 36 by 36 units; pairs that are left are blue: a band along the diagonal, a triangle, blocks of nine"
    " patches, and three diagonals with scattered pairs."
)
for axis, (title, (position, structure)) in zip(axes, cases.items(), strict=True):
    model = structpe.build(position, structpe.Dims(width=32, heads=4, layers=1))
    prepared = model.prepare(structpe.encode([structure], model.encodings))
    left = structpe.attention.weights(nothing, nothing, model.terms(prepared, structpe.Site(layer=0)))[0, 0] > 0
    axis.imshow(left, cmap="Blues", vmax=1.4)
    axis.set_title(f"{title}\n{left.float().mean():.0%} of pairs")
    axis.set(xticks=[], yticks=[])

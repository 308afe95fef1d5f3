"""
Rotary positions turn the first columns fast and the last ones slowly
=====================================================================

Each pair of columns of queries and keys is turned by an angle that grows with the place, so their product is a cosine
of the offset. Here each head has content in one pair of columns only; the black line is all 32 pairs together.
"""

import matplotlib.pyplot as plt
import torch

import structpe

length, width = 400, 64
text = structpe.path(["word"] * length)
shown = (0, 8, 16, 24)  # pairs of columns
content = torch.zeros(1, 5, length, width)
for head, pair in enumerate(shown):
    content[0, head, :, 2 * pair : 2 * pair + 2] = 2  # so that the product at offset 0 is 1 after division by sqrt(64)
content[0, 4] = 2 / 32**0.5

model = structpe.build("rotary", structpe.Dims(width=5 * width, heads=5, layers=1))
terms = model.terms(model.prepare(structpe.encode([text], model.encodings)), structpe.Site(layer=0))
logs = (
    structpe.attention.weights(content, content, terms)[0, :, -1].log().flip(-1)
)  # of the last word; scores but for a constant
scores = 1 + logs - logs[:, :1]

figure, axes = plt.subplots(5, 1, figsize=(8, 5), sharex=True, layout="constrained")
figure.set_label(
    "Five curves of the score by offset, up to 400 words: cosines of pairs of columns 0, 8, 16 and 24, from many "
    "waves to a line that hardly falls, and the mean of all pairs, which falls in ripples."
)
for axis, curve, name in zip(
    axes, scores, [f"columns {2 * pair}, {2 * pair + 1}" for pair in shown] + ["all columns"], strict=True
):
    axis.plot(curve, color="black" if name.startswith("all") else "#0072b2", linewidth=1)
    axis.set(ylim=(-1.2, 1.2), xlim=(0, length), yticks=(-1, 0, 1))
    axis.set_title(name, fontsize=8.5, pad=2)
axes[2].set_ylabel("score")
axes[-1].set_xlabel("words to the left")

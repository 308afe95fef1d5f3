"""
A shift changes scores with absolute positions, and not with relative ones
==========================================================================

The same sixteen words stand at the beginning of a text and again 48 words later. Each map has their scores among each
other, above at the beginning, below after the shift. With positions at the input the two differ; rotary positions and
T5's bias see offsets only.
"""

import matplotlib.pyplot as plt
import torch

import structpe

torch.manual_seed(0)
words = torch.randn(1, 16, 64).repeat(1, 4, 1)  # 64 words: the same 16 four times
text = structpe.path(["word"] * 64)
blocks = slice(0, 16), slice(48, 64)
figure, axes = plt.subplots(2, 4, figsize=(9.5, 4.8), layout="constrained")
figure.set_label(
    "Two rows of four maps of scores. With a learned table and with sinusoids the upper and the lower map differ; "
    "with rotary positions and with T5 they are the same."
)
for column, name in zip(axes.T, ("learned", "sinusoidal", "rotary", "t5"), strict=True):
    model = structpe.build(name, structpe.Dims(width=64, heads=1, layers=1))
    for table in model.parameters():
        torch.nn.init.normal_(table)
    prepared = model.prepare(structpe.encode([text], model.encodings))
    units = model.inputs(words, prepared)[:, None]  # queries and keys, of one head
    logs = structpe.attention.weights(units, units, model.terms(prepared, structpe.Site(layer=0)))[0, 0].log().detach()
    two = [logs[block, block] - logs[block, block].mean(1, keepdim=True) for block in blocks]
    column[0].set_title(f"{name}\nchanges by up to {(two[0] - two[1]).abs().max():.1f}")
    for axis, scores in zip(column, two, strict=True):
        shown = scores.masked_fill(torch.eye(16, dtype=torch.bool), torch.nan)  # a word with itself: far larger
        axis.imshow(shown, cmap="coolwarm", vmin=-7, vmax=7)
        axis.set(xticks=[], yticks=[])
axes[0, 0].set_ylabel("words 1 to 16")
axes[1, 0].set_ylabel("words 49 to 64")

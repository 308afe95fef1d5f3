"""
To read longer texts, slow columns are slowed down and fast ones are not
========================================================================

Rotary models see angles in a text of four times the length that no training showed them. Position interpolation turns
all columns four times as slowly, which blurs near words. NTK-aware scaling and YaRN leave the fast columns, which
tell near words apart, as they are.
"""

import matplotlib.pyplot as plt
import torch

import structpe

pairs, width = 32, 64
text = structpe.path(["one", "two"])
content = torch.zeros(1, pairs, 2, width, dtype=torch.float64)
for pair in range(pairs):
    content[0, pair, :, [pair, pair + pairs]] = 2  # head p has content in pair p only, columns p and p + 32


def turn(name):
    """The angle between two neighbours in each pair of columns."""
    model = structpe.build(name, structpe.Dims(width=pairs * width, heads=pairs, layers=1))
    terms = model.terms(model.prepare(structpe.encode([text], model.encodings)), structpe.Site(layer=0))
    logs = structpe.attention.weights(content, content, terms)[0, :, 0].log()
    return (1 + logs[:, 1] - logs[:, 0]).acos()


figure, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
figure.set_label(
    "Three lines over 32 pairs of columns, from fast to slow: position interpolation is at a quarter everywhere, NTK-"
    "aware scaling falls slowly from one to a quarter, YaRN stays at one for the fast columns and falls to a quarter "
    "for the slow ones."
)
plain = turn("rotary-half")
axis.plot(turn("position-interpolation") / plain, label="position interpolation")
axis.plot(turn("ntk-aware") / plain, label="NTK-aware")
axis.plot(turn({"name": "yarn", "attention_factor": 1.0}) / plain, label="YaRN")
axis.set(xlabel="pair of columns, from fast to slow", ylabel="turn per word,\npart of rotary's", ylim=(0, 1.1))
axis.legend(loc="upper right")

"""
A position model enters a trained network without changing what it computes
===========================================================================

The distances of a parse are added to the attention of PyTorch's own encoder. Their bias begins at zero, and the
network computes what it did before, for each word. The further training moves the bias from zero, the more changes.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

import structpe

torch.manual_seed(0)
words = "the lamp that the keeper of the island lit shone".split()
sentence = structpe.tree(words, heads=[2, 10, 9, 5, 9, 8, 8, 5, 2, 0])
layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
x = torch.randn(1, len(words), 32)
before = encoder(x).detach()

handle = structpe.inject(encoder, {"name": "t5", "encoding": "undirected-distance"})  # start="zero" by default
table = handle.position.table.weight
learned = torch.randn_like(table)
sizes = torch.linspace(0, 3, 25)
changes = []
for size in sizes:
    table.data = size * learned
    changes.append((encoder(x, structpe=[sentence]) - before).detach().norm(dim=-1)[0])
print(f"with a bias of zero: {changes[0].max():.1g}")

figure, axis = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
figure.set_label(
    "A line for each of ten words: how much its vector changes, from nothing at a bias of zero, upwards with the bias."
)
axis.plot(sizes, torch.stack(changes), color="#9aa5b1", linewidth=0.8)
axis.plot(sizes, torch.stack(changes).mean(1), color="#0072b2", linewidth=2, label="mean of the words")
axis.set(xlabel="size of the bias", ylabel="change of a word's vector", xlim=0, ylim=0)
axis.legend()

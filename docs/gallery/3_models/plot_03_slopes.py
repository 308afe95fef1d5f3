"""
Each head of ALiBi looks twice as far as the one before
=======================================================

The slopes of eight heads are 1/2, 1/4, 1/8 and so on. If all words have the same content, a head's attention is these
decaying weights: the first sees a few words, the last hundreds.
"""

import matplotlib.pyplot as plt
import torch

import structpe

length = 1024
text = structpe.path(["word"] * length)
model = structpe.build("alibi-causal", structpe.Dims(width=64, heads=8, layers=1))
terms = model.terms(model.prepare(structpe.encode([text], model.encodings)), structpe.Site(layer=0))
nothing = torch.zeros(1, 8, length, 8)  # queries and keys: the content says nothing
attention = structpe.attention.weights(nothing, nothing, terms)[0, :, -1].flip(-1)  # of the last word, from itself back

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=(3, 2), layout="constrained")
figure.set_label(
    "Left, eight curves of attention by the distance to the left, each flatter and wider than the one before. Right, "
    "how many words have half of a head's attention: two for the first head and nearly 200 for the last."
)
for head, curve in enumerate(attention):
    left.plot(curve, color=plt.get_cmap("viridis")(head / 8), label=f"{head + 1}")
left.set(xlabel="words to the left", ylabel="attention", xlim=(0, 400), yscale="log", ylim=(1e-5, 1))
left.legend(title="head", ncols=2)
half = (attention.cumsum(-1) < 0.5).sum(-1) + 1
right.bar(range(1, 9), half, color=[plt.get_cmap("viridis")(head / 8) for head in range(8)])
right.set(xlabel="head", ylabel="words with half of its attention", xticks=range(1, 9))

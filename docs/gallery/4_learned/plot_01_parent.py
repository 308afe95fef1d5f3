"""
A head learns to look one step up
=================================

Each node of a random tree must predict the label of its parent. Attention has no content here, only a bias per signed
distance (Graformer's, one head), so the bias must learn that the parent is the node at distance -1.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import structpe
from structpe.encodings import Distance

LABELS = 5
chance = np.random.default_rng(0)


def drawn(size):
    parents = [int(chance.integers(0, node)) for node in range(1, size)]
    edges = np.stack([parents, np.arange(1, size)], axis=1)
    return structpe.Structure(tuple(chance.choice(list("abcde"), size)), edges, order=np.arange(size), root=0)


trees = [drawn(12) for _ in range(64)]
labels = torch.tensor([["abcde".index(label) for label in each.nodes] for each in trees])
parents = torch.tensor(np.array([each.parents() for each in trees]))
wanted = labels.gather(1, parents.clamp(min=0))[:, 1:]  # the root has none

# %%
# Queries and keys are zero and values are the labels, so the output is a mixture of labels with weights from the bias.

torch.manual_seed(0)
distance = Distance(max_distance=4)
model = structpe.build({"name": "graformer", "encoding": distance}, structpe.Dims(width=LABELS, heads=1, layers=1))
positions = structpe.encode(trees, [distance])
nothing = torch.zeros(len(trees), 1, 12, LABELS)
v = torch.nn.functional.one_hot(labels, LABELS)[:, None].float()
optimizer = torch.optim.Adam(model.parameters(), lr=0.3)
learned = []
for step in range(61):
    terms = model.terms(model.prepare(positions), structpe.Site(layer=0))
    mixed = structpe.attend(nothing, nothing, v, terms)[:, 0, 1:]
    loss = torch.nn.functional.nll_loss(mixed.clamp(min=1e-6).log().flatten(0, 1), wanted.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        learned.append((step, terms.bias[0].dense()[0, ..., 0].detach()))
print(f"{(mixed.argmax(-1) == wanted).float().mean():.0%} of nodes name their parent's label")

# %%
# The bias of each distance, from one pair each, as training goes on.

values = positions[distance].dense()[0]
seen = [value for value in values.unique().tolist() if abs(value) <= 4]
figure, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
figure.set_label(
    "Groups of bars by signed distance, after 0, 20, 40 and 60 steps: the bias at -1 grows, all others fall."
)
for number, (step, bias) in enumerate(learned):
    heights = [bias[values == value][0].item() for value in seen]
    axis.bar(
        np.array(seen) + 0.2 * (number - 1.5),
        heights,
        0.2,
        color=plt.get_cmap("viridis")(number / 4),
        label=f"step {step}",
    )
axis.set(xlabel="signed distance to the key (-1: the parent)", ylabel="bias", xticks=seen)
axis.legend()

"""
A head that learns where to look
================================

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
q = k = torch.zeros(len(trees), 1, 12, LABELS)
v = torch.nn.functional.one_hot(labels, LABELS)[:, None].float()
optimizer = torch.optim.Adam(model.parameters(), lr=0.3)
losses = []
for _ in range(60):
    terms = model.terms(model.prepare(positions), structpe.Site(layer=0))
    mixed = structpe.attend(q, k, v, terms)[:, 0, 1:]
    loss = torch.nn.functional.nll_loss(mixed.clamp(min=1e-6).log().flatten(0, 1), wanted.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
named = (mixed.argmax(-1) == wanted).float().mean().item()
print(f"{named:.0%} of nodes name their parent's label")

# %%
# The bias of each distance, from one pair each: the head has learned "one step up".

values = positions[distance].dense()[0]
bias = model.terms(model.prepare(positions), structpe.Site(layer=0)).bias[0].dense()[0, ..., 0].detach()
seen = [value for value in sorted(set(values.flatten().tolist())) if abs(value) <= 4]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.plot(losses)
left.set(xlabel="step", ylabel="cross entropy")
right.bar(seen, [bias[values == value][0].item() for value in seen], color="#0072b2")
right.set(xlabel="signed distance to the key (-1: the parent)", ylabel="bias")

"""
T5 tells near words apart and puts far ones together
====================================================

T5 learns a number for each of 32 buckets of offsets, 16 to each side. Up to 7 words each offset has a bucket of its
own; then buckets grow, and all words from 91 on share the last. Here each bucket's number is its rank, to make them
visible.
"""

import matplotlib.pyplot as plt
import torch

import structpe

model = structpe.build("t5", structpe.Dims(width=16, heads=1, layers=1))
with torch.no_grad():
    model.table.weight[:] = torch.arange(32.0)[:, None]
text = structpe.path(["word"] * 321)
terms = model.terms(model.prepare(structpe.encode([text], model.encodings)), structpe.Site(layer=0))
buckets = terms.bias[0].dense()[0, 160, :, 0].detach()  # of the word in the middle
offsets = torch.arange(-160, 161)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
figure.set_label(
    "Two step curves of the bucket by offset. From -160 to 160 steps get wider away from the middle; from -24 to 24 "
    "each offset up to 7 has a step of its own."
)
for axis, most in ((left, 160), (right, 24)):
    for side in (offsets <= 0, offsets > 0):
        inside = side & (offsets.abs() <= most)
        axis.step(offsets[inside], buckets[inside], where="mid")
    axis.set(xlabel="offset of the key", title=f"up to {most} words")
left.set_ylabel("bucket")

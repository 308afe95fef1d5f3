"""
A bias that is read from its table takes little memory, however long the text
=============================================================================

Attention with a learned bias per pair, in training: the bias written out for each head and pair, as an embedding or
in full, and read from its table by structpe. Ratios to PyTorch's fused attention without any bias. The numbers are
those of the last ``make bench``, on the page of speed.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import structpe

file = Path(structpe.__file__).parents[1] / "experiments" / "speed" / "results" / "kernels.md"
said, *lines = file.read_text(encoding="utf-8").splitlines()
rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| attention-bias")]
none = "none: fused kernel"
sizes = [row[1] for row in rows if row[2] == none]
names = {"embedding, permute, fused": "an embedding", "explicit": "in full", "structpe": "structpe"}
print(said.partition(";")[0])

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
figure.set_label(
    "Lines over four sizes, from 64 texts of 24 units to one of 2,048. Left, the time of a training step: structpe "
    "takes about twice that of no bias at most, the other two about four times. Right, extra memory: structpe stays "
    "below 70 MiB, the others grow to about 400."
)
for way, name in names.items():
    mine = [row for row in rows if row[2] == way]
    left.plot(sizes, [float(row[6]) for row in mine], "o-", label=name)
    right.plot(sizes, [float(row[7]) for row in mine], "o-", label=name)
right.plot(sizes, [float(row[7]) for row in rows if row[2] == none], "o--", color="#6b7785", label="no bias")
left.axhline(1, color="#6b7785", linestyle="--")
left.set(ylabel="time of a step, times that of no bias", xlabel="texts of so many units", ylim=0)
right.set(ylabel="extra memory, MiB", xlabel="texts of so many units", ylim=0)
right.legend()

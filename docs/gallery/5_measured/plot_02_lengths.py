"""
Who is good at the length of training need not be good beyond it
================================================================

One dot for each of the position models that were trained on 64 letters of Shakespeare: bits per letter there, and on
texts eight times as long. Below the line a model gains from more text. One seed and a small budget: the page of the
comparison has all rows and says what they do not show.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt

import structpe

file = Path(structpe.__file__).parents[1] / "experiments" / "catalogue" / "results" / "shakespeare.jsonl"
found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
bits = {each["model"]: each["scores"] for each in found if {"bits 64", "bits 512"} <= each.get("scores", {}).keys()}
print(len(bits), "position models")

figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
figure.set_label(
    "Dots of bits at 64 letters and at 512. Models with the same bits at 64, about 3, lie between 2.9 and 5.7 at 512:"
    " KERPLE, Transformer-XL and ALiBi on the line, rotary far above it."
)
axis.plot([2.7, 3.7], [2.7, 3.7], color="#9aa5b1", linestyle="--")
axis.scatter([each["bits 64"] for each in bits.values()], [each["bits 512"] for each in bits.values()], s=18, alpha=0.6)
places = {
    "alibi": (4, -12),
    "kerple-power": (-66, 8),
    "transformer-xl": (10, 4),
    "rotary": (6, 2),
    "sinusoidal": (6, 2),
    "learned": (6, -3),
    "nope": (6, -12),
    "t5": (6, 0),
    "yarn": (6, 2),
    "rr": (-12, 6),
}
for name, place in places.items():
    where = bits[name]["bits 64"], bits[name]["bits 512"]
    axis.plot(*where, "o", color="#d55e00")
    axis.annotate(name, where, place, textcoords="offset points")
axis.set(xlabel="bits per letter, texts of 64 letters", ylabel="bits per letter, texts of 512")

"""
After a training on meaning graphs, each head prefers distances of its own
==========================================================================

A small network learns for some seconds to write sentences for AMR graphs, with T5's bias on signed distances in the
graph. Then it is shown on a graph that it has not seen: what its heads have learned to prefer, for each pair of units
and by distance.
"""

import tempfile
from contextlib import chdir

import structpe
from structpe.datasets import sample
from structpe.pictures import load

train, dev = (str(sample(f"amr_sample/{part}.txt")) for part in ("train", "dev"))
config = {
    "data": {"train": train, "dev": dev},
    "prepare": {"graph": "levi", "vocabulary": 800},
    "model": {"width": 32, "heads": 4, "encoder_layers": 1, "decoder_layers": 1, "feedforward": 64, "copy_units": True},
    "position": {"name": "t5", "encoding": "distance"},
    "training": {
        "steps": 50,
        "batch_size": 16,
        "optimiser": {"learning_rate": 0.01, "warmup": 10},
        "validation": {"every": 50},
    },
    "out": "runs/amr",
}

# %%
# ``load`` opens a run for ``show``.

item = min(structpe.read(sample("amr_sample/test.txt")), key=lambda each: each.structure.size)
with chdir(tempfile.mkdtemp()):
    structpe.train(config)
    picture = structpe.show(item.structure, [load("runs/amr", item)])
picture.set_label(
    "A meaning graph with relations as nodes, its signed distances, the biases of four heads, and their mean by "
    "distance: lines that differ from head to head."
)

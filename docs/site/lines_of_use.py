"""A position model in a Transformer, and an encoding of a structure, in a few lines of Python."""

from __future__ import annotations

__all__ = ["encode_lines", "lines"]

MADE = {
    "a sequence": 'structpe.path("the keeper lit lamps".split())',
    "a tree": 'tree("the keeper lit lamps".split(), heads=[2, 3, 0, 3], labels=["det", "nsubj", "root", "obj"])',
    "a graph": 'structpe.Structure(("C", "C", "O"), [[0, 1], [1, 2]], ("bond", "bond"), directed=False)',
    "a grid": "grid((2, 2))",
}
"""A structure of each kind in a line of Python."""
IMPORTED = {
    "a tree": "from structpe.formats import tree\n",
    "a grid": "from structpe.transforms.grids import grid\n",
}
PROGRAM = """\
import torch

import structpe
from structpe.nn import Stack, StackConfig
{imported}
structure = {structure}
model = structpe.build("{name}", structpe.Dims(width=32, heads=4, layers=1))
positions = structpe.encode([structure], model.encodings)
transformer = Stack(StackConfig.transformer(model.dims, feedforward=64), model)
x = torch.randn(1, structure.unit_count, 32)
out = transformer.padded(x, positions)  # one structure; a vector per unit
"""


def lines(name: str, kind: str) -> str:
    """The program for a model and a kind of structure."""
    return PROGRAM.format(name=name, imported=IMPORTED.get(kind, ""), structure=MADE[kind])


ENCODED = """\
import structpe
{imported}
structure = {structure}
positions = structpe.encode([structure], ["{name}"])
print(positions["{name}"])
"""


def encode_lines(name: str, kind: str) -> str:
    """The program for an encoding and a kind of structure."""
    return ENCODED.format(name=name, imported=IMPORTED.get(kind, ""), structure=MADE[kind])

"""A position model in a Transformer, and an encoding of a structure, in a few lines of Python, with what they print."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache
from typing import Any

import torch

import structpe
from structpe.errors import StructPEError
from structpe.positions import MODELS

__all__ = ["MADE", "encode_lines", "lines", "ran"]

MADE = {
    "sequence": ['structpe.path("the keeper lit lamps".split())'],
    "tree": [
        """\
structpe.tree(
    "the keeper lit lamps".split(), heads=[2, 3, 0, 3], labels="det nsubj root obj".split()
)"""
    ],
    "graph": [
        'structpe.Structure(("C", "C", "O"), [[0, 1], [1, 2]], ("bond", "bond"), directed=False)',
        """\
structpe.Structure(  # atoms with their places in space
    ("H", "O", "H"), [[0, 1], [1, 2]],
    features={"coordinates": [[0.76, 0.59, 0], [0, 0, 0], [-0.76, 0.59, 0]]},
)""",
        """\
structpe.Structure(  # "the boy wants to go", as an AMR
    ("want", "boy", "go"), [[0, 1], [0, 2], [2, 1]], (":ARG0", ":ARG1", ":ARG0"),
    order=[1, 0, 2], root=0,
)""",
    ],
    "grid": [
        "structpe.grid((2, 2))",
        """\
structpe.Structure(  # latitudes and longitudes of three cities
    ("Oslo", "Lima", "Osaka"), [[0, 1], [1, 2]],
    features={"degrees": [[59.9, 10.8], [-12.0, -77.0], [34.7, 135.5]]},
)""",
        """\
structpe.Structure(  # a number of each node that a reader brings along
    ("Oslo", "Lima", "Osaka"), [[0, 1], [1, 2]], features={"feature": [47, 51, 81]}
)""",
    ],
}
"""Structures of each kind in lines of Python; those after the first for what does not take the first."""
PROGRAM = """\
import torch

import structpe

structure = {structure}
dims = structpe.Dims(width=32, heads=4, layers=1)
model = structpe.build("{name}", dims{fit})
positions = structpe.encode([structure], model.encodings)
transformer = structpe.Stack(structpe.StackConfig.transformer(dims, feedforward=64), model)
out = transformer.padded(torch.randn(1, structure.unit_count, 32), positions)

print("it reads:", ", ".join(encoding.name for encoding in model.encodings) or "nothing")
print("parameters:", sum(parameter.numel() for parameter in model.parameters()))
print("a vector for each unit:", tuple(out.shape))
"""
ENCODED = """\
import structpe

structure = {structure}
positions = structpe.encode([structure], ["{name}"])
print(positions["{name}"])
"""


def _made(first: str) -> Iterator[str]:
    """The structures, those of one kind first."""
    for kind in sorted(MADE, key=lambda kind: kind != first):
        yield from MADE[kind]


@cache
def _structure(made: str) -> Any:
    return eval(made, {"structpe": structpe})


def lines(name: str) -> str:
    """The program for a model, on a structure of the kind that it was made for, or that it takes.

    Raises:
        StructPEError: it takes none of the structures.
    """
    for made in _made(MODELS[name].spec.structure):
        structure = _structure(made)
        model = structpe.build(name, structpe.Dims(width=32, heads=4, layers=1))
        learns = any(each.learns for each in model.encodings)
        try:
            structpe.encode([structure], model.fit([structure]).encodings)
        except StructPEError:
            continue
        return PROGRAM.format(name=name, structure=made, fit=", fit=[structure]" if learns else "")
    raise StructPEError(f"position model {name!r} takes no structure of {__file__}; add one that it takes")


def encode_lines(name: str) -> str:
    """The program for an encoding, on a structure that it takes.

    Raises:
        StructPEError: it takes none of the structures.
    """
    for made in _made("sequence"):
        try:
            structpe.encode([_structure(made)], [name])
        except StructPEError:
            continue
        return ENCODED.format(name=name, structure=made)
    raise StructPEError(f"encoding {name!r} takes no structure of {__file__}; add one that it takes")


def ran(program: str) -> str:
    """What a program prints."""
    with redirect_stdout(io.StringIO()) as printed, torch.random.fork_rng(devices=[]):
        exec(program, {})
    return printed.getvalue()

"""Pickles and files of arrays, with operations and lengths changed."""

from __future__ import annotations

import io
import pickle
import random
import struct
from pathlib import Path

import numpy as np
from mutate import mutated

from structpe.datasets.arrays import arrays
from structpe.datasets.pickles import pickled_array, pickled_lists, pickled_numbers
from structpe.errors import StructPEError

__all__ = ["make", "take"]


def _npz() -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, a=np.arange(20), b=np.zeros((3, 4), dtype=bool))
    return buffer.getvalue()


PICKLES = [
    *(pickle.dumps({"train": list(range(30)), "valid": np.arange(5)}, protocol) for protocol in (0, 2, 4)),
    *(pickle.dumps(np.eye(3, dtype=np.int32), protocol) for protocol in (2, 4)),
    pickle.dumps({number: [number, 2, 300] for number in range(5)}, 2),
    _npz(),
]


def make(chance: random.Random) -> bytes:
    """A pickle, or a file of arrays, with operations and lengths changed."""
    content = bytearray(chance.choice(PICKLES))
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(content))
        piece = chance.choice(
            (
                b"r",
                b"q",
                b"\x95",
                b"\x8e",
                b"\x96",
                b"X",
                b"T",
                b"\x8b",
                b"p9999999999\n",
                b"2",
                b"\x86",
                b"\x85",
                b"R",
                b"b",
            )
        )
        if chance.random() < 0.7:
            piece += struct.pack("<Q", chance.choice((0, 1, 255, 2**16, 2**28, 2**31, 2**32 - 1, 2**40, 2**63)))[
                : chance.choice((1, 4, 8))
            ]
        if chance.random() < 0.5:
            content[at:at] = piece
        else:
            content[at : at + len(piece)] = piece
    return mutated([bytes(content)], chance.randrange(1 << 30), 0) if chance.random() < 0.3 else bytes(content)


def take(content: bytes, folder: Path) -> None:
    """Read it in every way there is; a StructPEError where none succeeds."""
    file = folder / "a"
    file.write_bytes(content)
    found: list[StructPEError] = []
    for take in (pickled_numbers, pickled_array, pickled_lists, lambda file: arrays(file, "a", "b")):
        try:
            take(file)
        except StructPEError as error:
            if str(file) not in str(error):
                raise AssertionError(f"{error} names no file") from error
            found.append(error)
    if len(found) == 4:
        raise found[0]

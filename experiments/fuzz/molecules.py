"""SMILES with atoms that are extreme, beside a molecule that must be read."""

from __future__ import annotations

import random
from pathlib import Path

from mutate import GROWN, grown

from structpe.formats import read

__all__ = ["make", "take"]

ATOMS = (
    "[CH2000000]",
    "[#200]",
    "[#0]",
    "[999999999C]",
    "[C+99999]",
    "[C-2147483649]",
    "[C@@@@]",
    "[C@TH9]",
    "[C:99999999999]",
)
PIECES = (
    *ATOMS,
    "C",
    "c1ccccc1",
    "N",
    "O",
    "=",
    "#",
    "$",
    "(",
    ")",
    "1",
    "%99",
    "%(99999)",
    ".",
    "/",
    "\\",
    "@",
    "*",
    "[*]",
    "->",
    "|",
    "~",
)


def make(chance: random.Random) -> bytes:
    """A good molecule, and one to three that may be none."""
    lines = ["".join(chance.choice(PIECES) for _ in range(chance.randint(1, 8))) for _ in range(chance.randint(1, 3))]
    bad = "\n".join(lines).encode()
    return b"CCO good\n" + (grown(bad, chance) if chance.random() < GROWN else bad)


def take(content: bytes, folder: Path) -> None:
    """Read them; the good one must be there."""
    file = folder / "a.smi"
    file.write_bytes(content)
    assert len(read(file, "smiles", on_error="skip")) >= 1, "the good molecule was not read"
